"""The switch's ports (packet sockets on interfaces, UDP sockets), their limits and counts."""

import select
import socket
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from ipaddress import ip_address

from switchgnn.base.udp_socket import connected_udp, enlarge_receive_buffer, why_not_bound
from switchgnn.softswitch.base.errors import PortError
from switchgnn.softswitch.base.program import DROP_PORT

_MOST_UDP = 65535
RECEIVE_BUFFER_BYTES = 32 << 20
_SEND_BUFFER_FRAMES = 3
_UDP_FRAME_BYTES = 65_535
_ETHERNET_OVERHEAD_BYTES = 18
# To send a frame, between which there is at most that time, in seconds, for room.
_TRIES, _LONGEST_WAIT = 2, 1.0

_ETH_P_ALL = 3
_SOL_PACKET = 263
_PACKET_ADD_MEMBERSHIP = 1
_PACKET_AUXDATA = 8
_PACKET_IGNORE_OUTGOING = 23
_PACKET_MR_PROMISC = 1
# struct tpacket_auxdata: status, len, snaplen, mac, net, VLAN tag, its protocol.
_AUXDATA = struct.Struct("IIIHHHH")
_VLAN_VALID = 1 << 4
_VLAN_PROTOCOL_VALID = 1 << 6
_ETHERTYPE_VLAN = 0x8100
_ADDRESSES_BYTES = 12

_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
_LINK = struct.Struct("=BxHiII")  # struct ifinfomsg: family, type, index, flags, change
_ATTRIBUTE = struct.Struct("=HH")  # struct nlattr: length, type
_REQUEST = 1
_GET_LINK, _NEW_LINK = 18, 16
_MTU, _QDISC = 4, 6
_UP = 1  # IFF_UP
_TYPE_BITS = 0x3FFF
_ANSWER_BYTES = 1 << 16


Sender = Callable[[bytes], bool]
# The sums of a block to one worker; 2.6 MB of frames with 64 features each. BMv2 has 64.
DEFAULT_DEPTH = 8192
CLASSES = 8


@dataclass
class ForwardingCounts:
    """Packets by their fate; the Counters are by port, ``tail_drops`` those of full queues."""

    received: Counter[int] = field(default_factory=Counter)
    sent: Counter[int] = field(default_factory=Counter)
    unattached: Counter[int] = field(default_factory=Counter)
    send_errors: Counter[int] = field(default_factory=Counter)
    tail_drops: Counter[int] = field(default_factory=Counter)
    ingress_drops: int = 0
    egress_drops: int = 0
    recirculated: int = 0
    resubmitted: int = 0
    again_drops: int = 0
    without_program: int = 0
    failures: int = 0

    def __add__(self, other: "ForwardingCounts") -> "ForwardingCounts":
        pairs = {f.name: (getattr(self, f.name), getattr(other, f.name)) for f in fields(self)}
        return ForwardingCounts(**{name: one + two for name, (one, two) in pairs.items()})


@dataclass(frozen=True)
class EthernetSpec:
    """A port on a network interface."""

    interface: str


@dataclass(frozen=True)
class UdpSpec:
    """A port on a UDP socket: one Ethernet frame per datagram."""

    local: tuple[str, int]
    peer: tuple[str, int]


PortSpec = EthernetSpec | UdpSpec


def parse_port(text: str) -> tuple[int, PortSpec]:
    """Parse ``1=eth:NAME`` or ``1=udp:IP:PORT:IP:PORT``."""
    number, _, target = text.partition("=")
    kind, *parts = target.split(":")
    try:
        port = int(number)
        if not 0 <= port < DROP_PORT:
            raise PortError(f"Port '{text}' needs a number from 0 to {DROP_PORT - 1}.")
        if kind == "eth" and len(parts) == 1 and parts[0]:
            return port, EthernetSpec(parts[0])
        if kind == "udp" and len(parts) == 4:
            local, peer = int(parts[1]), int(parts[3])
            if not (0 <= local <= _MOST_UDP and 0 <= peer <= _MOST_UDP):
                raise PortError(f"Port '{text}' needs UDP ports from 0 to {_MOST_UDP}.")
            return port, UdpSpec((parts[0], local), (parts[2], peer))
    except ValueError:
        pass
    raise PortError(
        f"Invalid port '{text}': write NUMBER=eth:INTERFACE or "
        "NUMBER=udp:LOCAL_IP:PORT:PEER_IP:PORT."
    )


class Port:
    """An attached port over a non-blocking socket; ``frame_bytes`` is the longest frame's length.

    If ``may_refuse``, the kernel may queue frames, or refuse them for a time. Such a port gets one
    frame at a time, so that others wait in the egress queue, whose depth the program reads.
    """

    def __init__(
        self,
        sock: socket.socket,
        frame_bytes: int,
        *,
        may_refuse: bool = True,
        is_packet: bool = False,
    ) -> None:
        self._socket = sock
        # Returns the next frame, cut to a length, or raises BlockingIOError.
        self.receive: Callable[[int], bytes] = self._receive_tagged if is_packet else sock.recv
        self.frame_bytes = frame_bytes
        self.may_refuse = may_refuse
        self.is_packet = is_packet

    def fileno(self) -> int:
        """Return the file descriptor to wait on."""
        return self._socket.fileno()

    def _receive_tagged(self, size: int) -> bytes:
        # The kernel delivers a VLAN tag separately. The program sees it as it was on the wire.
        frame, ancillary, _, _ = self._socket.recvmsg(size, socket.CMSG_SPACE(_AUXDATA.size))
        if not (ancillary and ancillary[0][2][0] & _VLAN_VALID):
            return frame
        status, *_, tag, protocol = _AUXDATA.unpack_from(ancillary[0][2])
        ethertype = protocol if status & _VLAN_PROTOCOL_VALID else _ETHERTYPE_VLAN
        header = struct.pack(">HH", ethertype, tag)
        return frame[:_ADDRESSES_BYTES] + header + frame[_ADDRESSES_BYTES:]

    def send(self, frame: bytes) -> bool:
        """Send a frame, when there is room for it; return False if it is lost."""
        for _ in range(_TRIES):
            try:
                self._socket.send(frame)
            except BlockingIOError:
                select.select([], [self._socket], [], _LONGEST_WAIT)
            except OSError:
                return False
            else:
                return True
        return False

    def close(self) -> None:
        """Detach the port."""
        self._socket.close()


def open_ethernet(number: int, spec: EthernetSpec) -> Port:
    """Open a packet socket on an interface that is up."""
    try:
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except PermissionError:
        raise PortError(
            f"Port {number} may not open packet sockets: run as root or with CAP_NET_RAW."
        ) from None
    try:
        sock.setblocking(False)
        enlarge_receive_buffer(sock, RECEIVE_BUFFER_BYTES)
        sock.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        sock.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)
        # The socket receives only after bind, when it knows its one interface.
        sock.bind((spec.interface, _ETH_P_ALL))
        interface = find_interface(spec.interface)
        if not interface.up:
            raise PortError(
                f"Port {number} cannot use interface '{spec.interface}', which is down: "
                f"ip link set {spec.interface} up."
            )
        # The interface stays promiscuous as long as the socket is open.
        request = struct.pack("iHH8s", interface.index, _PACKET_MR_PROMISC, 0, b"")
        sock.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, request)
        frame_bytes = interface.mtu + _ETHERNET_OVERHEAD_BYTES
        # Frames should wait in the egress queue, whose depth the program reads, and not in
        # the kernel, which holds hundreds of small frames for a shaped interface. An
        # unshaped veth releases the buffer before send returns, so the smallest buffer does
        # not slow it. The kernel doubles the number to allow for what it adds to each frame
        # and reports "writable" when half is free, that is with one long frame left to send.
        # https://man7.org/linux/man-pages/man7/socket.7.html
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_FRAMES * frame_bytes)
        return Port(sock, frame_bytes, may_refuse=interface.queues, is_packet=True)
    except PortError:
        sock.close()
        raise
    except OSError as error:
        sock.close()
        raise PortError(
            f"Port {number} cannot use interface '{spec.interface}': "
            f"{error.strerror or error}; check the name and that it exists."
        ) from None


def open_udp(spec: UdpSpec) -> Port:
    """Open a connected UDP socket."""
    try:
        sock = connected_udp(spec.local, spec.peer)
    except (OSError, UnicodeError) as error:
        why = why_not_bound(error, spec.local[0])
        raise PortError(
            f"UDP address {spec.local[0]}:{spec.local[1]} cannot be used: {why}."
        ) from None
    sock.setblocking(False)
    enlarge_receive_buffer(sock, RECEIVE_BUFFER_BYTES)
    # Over loopback a datagram has reached its receiver when the call returns.
    local = ip_address(sock.getpeername()[0]).is_loopback
    return Port(sock, _UDP_FRAME_BYTES, may_refuse=not local)


@dataclass(frozen=True)
class NetworkInterface:
    """A network interface."""

    index: int  # its number in the network namespace
    up: bool  # whether it is administratively up; the carrier may still be missing
    mtu: int  # bytes of the longest packet
    queues: bool  # whether sent frames may wait in it


def find_interface(name: str) -> NetworkInterface:
    """Ask the kernel for an interface, or raise OSError.

    https://man7.org/linux/man-pages/man7/rtnetlink.7.html
    """
    index = socket.if_nametoindex(name)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        length = _HEADER.size + _LINK.size
        request = _HEADER.pack(length, _GET_LINK, _REQUEST, 1, 0)
        sock.sendall(request + _LINK.pack(0, 0, index, 0, 0))
        answer = sock.recv(_ANSWER_BYTES)
    length, kind, *_ = _HEADER.unpack_from(answer)
    flags = _LINK.unpack_from(answer, _HEADER.size)[3]
    if kind != _NEW_LINK:
        raise OSError(f"the kernel does not report '{name}'")
    found = _attributes(answer[_HEADER.size + _LINK.size : length])
    return NetworkInterface(
        index=index,
        up=bool(flags & _UP),
        mtu=int.from_bytes(found.get(_MTU, b""), sys.byteorder),
        queues=found.get(_QDISC, b"").rstrip(b"\0") != b"noqueue",
    )


def _attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    place = 0
    while place + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, place)
        if length < _ATTRIBUTE.size:
            break
        found[kind & _TYPE_BITS] = data[place + _ATTRIBUTE.size : place + length]
        place += (length + 3) // 4 * 4
    return found


def open_ports(specs: Iterable[tuple[int, PortSpec]]) -> dict[int, Port]:
    """Attach every port, or none if one fails."""
    ports: dict[int, Port] = {}
    with ExitStack() as opened:
        for number, spec in specs:
            if isinstance(spec, EthernetSpec):
                ports[number] = open_ethernet(number, spec)
            else:
                ports[number] = open_udp(spec)
            opened.callback(ports[number].close)
        opened.pop_all()
    return ports


@dataclass(frozen=True)
class QueueSettings:
    """Limits of the egress queues, which native/runtime/ports.h keeps.

    Of a port's packets those of the highest class leave first (`standard_metadata.priority`). While
    packets of lower classes wait, ``shares`` bounds the bytes of a class per byte of lower ones, so
    nobody can block a port: classes 1 and 2 leave a sixteenth of the line to lower ones, and a
    higher class has at most a tenth of their bytes.

    None is no limit; of two limits the slower one applies.
    """

    depth: int = DEFAULT_DEPTH  # packets of one class that a port's queue holds
    # packets per second of ports not in ``port_rates``, attached or not, as in BMv2
    rate: float | None = None
    port_rates: Mapping[int, float] = field(default_factory=dict)  # packets per second by port
    # bits per second of each attached port; other ports are unlimited, so that recirculation
    # through them is not slowed
    bandwidth: float | None = None
    shares: tuple[float, ...] = (0.0, 15.0, 15.0, *(0.1,) * (CLASSES - 3))

    @property
    def limited(self) -> bool:
        """Whether any port has a limit."""
        return self.rate is not None or self.bandwidth is not None or bool(self.port_rates)
