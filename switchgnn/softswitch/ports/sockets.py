# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Ports over packet sockets, and over UDP sockets that carry frames."""

import socket
import struct
from collections.abc import Callable
from ipaddress import ip_address

from switchgnn.base.udp_socket import connected_udp
from switchgnn.softswitch.errors import PortError
from switchgnn.softswitch.ports.interface import Interface, find_interface
from switchgnn.softswitch.ports.specs import EthernetSpec, UdpSpec

RECEIVE_BUFFER_BYTES = 32 << 20
_SEND_BUFFER_FRAMES = 3
_UDP_FRAME_BYTES = 65_535
ETHERNET_OVERHEAD_BYTES = 18

_ETH_P_ALL = 3
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


class SocketPort:
    """A port over a non-blocking socket.

    Args:
        sock: the socket.
        frame_bytes: the length of the longest frame.
        may_refuse: whether the kernel may take no more frames for a time.
    """

    def __init__(self, sock: socket.socket, frame_bytes: int, *, may_refuse: bool = True) -> None:
        self._socket = sock
        self._send = sock.send
        self.receive: Callable[[int], bytes] = sock.recv
        self.frame_bytes = frame_bytes
        self.may_refuse = may_refuse

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

    Args:
        sock: the packet socket.
        frame_bytes: the length of the longest frame.
        may_refuse: whether frames may wait in the interface.
    """

    def __init__(self, sock: socket.socket, frame_bytes: int, *, may_refuse: bool = True) -> None:
        super().__init__(sock, frame_bytes, may_refuse=may_refuse)
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


def open_ethernet(number: int, spec: EthernetSpec) -> EthernetPort:
    """Attach a port to an interface.

    Raises:
        PortError: the interface is not there, is down, or may not be used.
    """
    sock = packet_socket(number)
    try:
        sock.setblocking(False)
        _enlarge_buffer(sock)
        _ignore_outgoing(sock)
        sock.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)
        # The socket receives only after bind, when it knows its one interface.
        sock.bind((spec.interface, _ETH_P_ALL))
        interface = find_interface(spec.interface)
        if not interface.up:
            raise PortError(
                f"Port {number} cannot use interface '{spec.interface}', which is down: "
                f"ip link set {spec.interface} up."
            )
        promiscuous(sock, interface)
        frame_bytes = interface.mtu + ETHERNET_OVERHEAD_BYTES
        # Frames should wait in the egress queue, whose depth the program reads, and not in
        # the kernel, which holds hundreds of small frames for a shaped interface. An
        # unshaped veth releases the buffer before send returns, so the smallest buffer does
        # not slow it. The kernel doubles the number to allow for what it adds to each frame
        # and reports "writable" when half is free, that is with one long frame left to send.
        # https://man7.org/linux/man-pages/man7/socket.7.html
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_FRAMES * frame_bytes)
        return EthernetPort(sock, frame_bytes, may_refuse=interface.queues)
    except PortError:
        sock.close()
        raise
    except OSError as error:
        sock.close()
        raise PortError(
            f"Port {number} cannot use interface '{spec.interface}': "
            f"{error.strerror or error}; check the name and that it exists."
        ) from None


def packet_socket(number: int) -> socket.socket:
    """Return a packet socket that receives nothing yet.

    Raises:
        PortError: packet sockets may not be opened.
    """
    try:
        return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except PermissionError:
        raise PortError(
            f"Port {number} needs the right to open packet sockets: run as root or with "
            "CAP_NET_RAW."
        ) from None


def _ignore_outgoing(sock: socket.socket) -> None:
    sock.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)


def promiscuous(sock: socket.socket, interface: Interface) -> None:
    """Have an interface receive what is for others, as long as a packet socket is open."""
    request = struct.pack("iHH8s", interface.index, _PACKET_MR_PROMISC, 0, b"")
    sock.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, request)


def open_udp(spec: UdpSpec) -> SocketPort:
    """Attach a port to a UDP socket.

    Raises:
        PortError: its address cannot be used.
    """
    try:
        sock = connected_udp(spec.local, spec.peer)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no such name"
        raise PortError(
            f"UDP address {spec.local[0]}:{spec.local[1]} cannot be used: "
            f"{why or error}; stop what uses it or choose another port."
        ) from None
    sock.setblocking(False)
    _enlarge_buffer(sock)
    # On this machine a datagram is with its receiver when the call returns.
    local = ip_address(sock.getpeername()[0]).is_loopback
    return SocketPort(sock, _UDP_FRAME_BYTES, may_refuse=not local)


def _enlarge_buffer(sock: socket.socket) -> None:
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
    except PermissionError:
        # Without the right to exceed the kernel's limit, that limit applies.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
