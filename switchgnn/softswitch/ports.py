# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Ports: network interfaces through packet sockets, and UDP sockets that carry frames."""

import fcntl
import socket
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from switchgnn.softswitch.errors import PortError
from switchgnn.softswitch.program import DROP_PORT
from switchgnn.udp_socket import connected_udp

RECEIVE_BUFFER_BYTES = 32 << 20
_SEND_BUFFER_FRAMES = 3
_UDP_FRAME_BYTES = 65_535
_ETHERNET_OVERHEAD_BYTES = 18

_ETH_P_ALL = 3
_SIOCGIFMTU = 0x8921
_SOL_PACKET = 263
_PACKET_ADD_MEMBERSHIP = 1
_PACKET_AUXDATA = 8
_PACKET_IGNORE_OUTGOING = 23
_PACKET_MR_PROMISC = 1
_SO_RCVBUFFORCE = 33
# struct tpacket_auxdata: status, len, snaplen, mac, net, VLAN tag, its protocol.
_AUXDATA = struct.Struct("IIIHHHH")
_VLAN_VALID = 1 << 4
_VLAN_PROTOCOL_VALID = 1 << 6
_ETHERTYPE_VLAN = 0x8100
_ADDRESSES_BYTES = 12


@dataclass(frozen=True)
class EthernetSpec:
    """A port that is attached to a network interface, by its name."""

    interface: str


@dataclass(frozen=True)
class UdpSpec:
    """A port that is attached to a UDP socket: one Ethernet frame per datagram, both ways."""

    local: tuple[str, int]
    peer: tuple[str, int]


PortSpec = EthernetSpec | UdpSpec


class Port(Protocol):
    """An attached port; neither receiving nor sending ever blocks."""

    @property
    def receive(self) -> Callable[[int], bytes]:
        """Function that returns the next frame up to a length, or raises BlockingIOError."""

    @property
    def frame_bytes(self) -> int:
        """The length of the longest frame."""

    def fileno(self) -> int:
        """Return the file descriptor to wait on."""

    def send(self, frame: bytes) -> bool:
        """Send a frame and return whether the kernel took it.

        Raises:
            BlockingIOError: the port cannot take a frame now.
        """

    def close(self) -> None:
        """Detach the port."""


class SocketPort:
    """A port over a non-blocking socket."""

    def __init__(self, sock: socket.socket, frame_bytes: int) -> None:
        self._socket = sock
        self._send = sock.send
        self.receive: Callable[[int], bytes] = sock.recv
        self.frame_bytes = frame_bytes

    def fileno(self) -> int:
        """Return the file descriptor to wait on."""
        return self._socket.fileno()

    def send(self, frame: bytes) -> bool:
        """Send a frame and return whether the kernel took it.

        Raises:
            BlockingIOError: the port cannot take a frame now.
        """
        try:
            self._send(frame)
        except BlockingIOError:
            raise
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Detach the port."""
        self._socket.close()


class EthernetPort(SocketPort):
    """A port over a packet socket.

    The kernel takes a VLAN tag out of the frame and delivers it separately; the port puts
    it back, so that the program sees the frame as it was on the wire.
    """

    def __init__(self, sock: socket.socket, frame_bytes: int) -> None:
        super().__init__(sock, frame_bytes)
        self._receive_with_tag = sock.recvmsg
        self.receive = self._receive
        self._ancillary_bytes = socket.CMSG_SPACE(_AUXDATA.size)

    def _receive(self, size: int) -> bytes:
        frame, ancillary, _, _ = self._receive_with_tag(size, self._ancillary_bytes)
        if ancillary and ancillary[0][2][0] & _VLAN_VALID:
            return _with_tag(frame, ancillary[0][2])
        return frame


def _with_tag(frame: bytes, auxdata: bytes) -> bytes:
    status, *_, tag, protocol = _AUXDATA.unpack_from(auxdata)
    ethertype = protocol if status & _VLAN_PROTOCOL_VALID else _ETHERTYPE_VLAN
    header = struct.pack(">HH", ethertype, tag)
    return frame[:_ADDRESSES_BYTES] + header + frame[_ADDRESSES_BYTES:]


def parse_port(text: str) -> tuple[int, PortSpec]:
    """Read a port number and its attachment from ``1=eth:NAME`` or ``1=udp:IP:PORT:IP:PORT``.

    Raises:
        PortError: the text has another form.
    """
    number, _, target = text.partition("=")
    kind, *parts = target.split(":")
    try:
        port = _port_number(int(number), text)
        if kind == "eth" and len(parts) == 1 and parts[0]:
            return port, EthernetSpec(parts[0])
        if kind == "udp" and len(parts) == 4:
            return port, UdpSpec((parts[0], int(parts[1])), (parts[2], int(parts[3])))
    except ValueError:
        pass
    raise PortError(
        f"Port '{text}' is not understood: write NUMBER=eth:INTERFACE or "
        "NUMBER=udp:LOCAL_IP:PORT:PEER_IP:PORT."
    )


def _port_number(number: int, text: str) -> int:
    if not 0 <= number < DROP_PORT:
        raise PortError(f"Port '{text}' needs a number from 0 to {DROP_PORT - 1}.")
    return number


def open_ports(specs: Iterable[tuple[int, PortSpec]]) -> dict[int, Port]:
    """Attach every port, or none if one fails.

    Raises:
        PortError: a port is given twice or cannot be attached.
    """
    ports: dict[int, Port] = {}
    try:
        for number, spec in specs:
            if number in ports:
                raise PortError(f"Port {number} is given twice: use each number once.")
            ports[number] = _open(number, spec)
    except PortError:
        for port in ports.values():
            port.close()
        raise
    return ports


def _open(number: int, spec: PortSpec) -> Port:
    return _open_ethernet(number, spec) if isinstance(spec, EthernetSpec) else _open_udp(spec)


def _open_ethernet(number: int, spec: EthernetSpec) -> Port:
    try:
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except PermissionError:
        raise PortError(
            f"Port {number} needs the right to open packet sockets: run as root or with "
            "CAP_NET_RAW."
        ) from None
    try:
        sock.setblocking(False)
        _enlarge_buffer(sock)
        _ignore_outgoing(sock)
        sock.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)
        # The socket receives only after bind, when it knows its one interface.
        sock.bind((spec.interface, _ETH_P_ALL))
        _promiscuous(sock, spec.interface)
        frame_bytes = _mtu(sock, spec.interface) + _ETHERNET_OVERHEAD_BYTES
        # Frames should wait in the egress queue, whose depth the program reads, and not in
        # the kernel, which holds hundreds of small frames for a shaped interface. An
        # unshaped veth releases the buffer before send returns, so the smallest buffer does
        # not slow it. The kernel doubles the number to allow for what it adds to each frame
        # and reports "writable" when half is free, that is with one long frame left to send.
        # https://man7.org/linux/man-pages/man7/socket.7.html
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_FRAMES * frame_bytes)
        return EthernetPort(sock, frame_bytes)
    except OSError as error:
        sock.close()
        raise PortError(
            f"Port {number} cannot use interface '{spec.interface}': "
            f"{error.strerror or error}; check the name and that it exists."
        ) from None


def _ignore_outgoing(sock: socket.socket) -> None:
    sock.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)


def _promiscuous(sock: socket.socket, interface: str) -> None:
    index = socket.if_nametoindex(interface)
    request = struct.pack("iHH8s", index, _PACKET_MR_PROMISC, 0, b"")
    sock.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, request)


def _mtu(sock: socket.socket, interface: str) -> int:
    request = struct.pack("16si12x", interface.encode(), 0)
    answer = fcntl.ioctl(sock.fileno(), _SIOCGIFMTU, request)
    return int(struct.unpack("16si12x", answer)[1])


def _open_udp(spec: UdpSpec) -> Port:
    try:
        sock = connected_udp(spec.local, spec.peer)
    except OSError as error:
        raise PortError(
            f"UDP address {spec.local[0]}:{spec.local[1]} cannot be used: "
            f"{error.strerror or error}; stop what uses it or choose another port."
        ) from None
    sock.setblocking(False)
    _enlarge_buffer(sock)
    return SocketPort(sock, _UDP_FRAME_BYTES)


def _enlarge_buffer(sock: socket.socket) -> None:
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
    except PermissionError:
        # Without the right to exceed the kernel's limit, that limit applies.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
