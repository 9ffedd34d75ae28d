"""Captured frames, out of what they travel in, and their decoding, whether valid or not.

A packet takes a few microseconds here, and a hundred times as long with the Scapy layers of
``switchgnn.host.scapy_host.layers``; tests compare the two.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.network import Station, leaf_spine_networks, mac_number, star_network
from switchgnn.base.network_file import DescribedNetwork
from switchgnn.host.direct.frames import PROTOCOL as DIRECT_PROTOCOL
from switchgnn.host.direct.frames import direct_body_bytes
from switchgnn.host.wire.header import (
    BARRIER_KINDS,
    BODY_AT,
    ETHERNET_BYTES,
    HEADER_AT,
    HEADER_BYTES,
    LANE_KINDS,
    PROTOCOL,
    VERSION,
    BarrierBody,
    Header,
    Kind,
    ParsedHeader,
    body_bytes,
    frame_checksum,
    lanes_of,
    parse_header,
)

# The limit of tcpdump and Wireshark.
LONGEST_FRAME = 1 << 18
_MOST = 128
_IP_BYTES = 4
SWITCH = "switch"
_TAGS = (b"\x81\x00", b"\x88\xa8")
_TAG_BYTES = 4
_UDP = 17
_UDP_BYTES = 8


class CaptureError(SwitchGNNError):
    """A capture cannot be made, or cannot be read."""


class DamageError(CaptureError):
    """A capture file is damaged from some position on."""


class Captured(NamedTuple):
    """A frame, and when and where it was seen."""

    time: int  # Nanoseconds since 1970.
    link: str  # The name of the interface, or of the file without its ending.
    frame: bytes  # The captured bytes, from the Ethernet header on.
    size: int  # The length of the whole frame in bytes.


def usual_names() -> Mapping[bytes, str]:
    """Return the names of workers and switches in runs on one machine, by Ethernet and IP address.

    Workers have the names of their links (``w3``), switches ``switch``, ``leaf-0``, ``spine-1``.
    """
    return _by_address(_usual_stations())


def names_in(network: DescribedNetwork) -> Mapping[bytes, str]:
    """Return the names of workers and switches of a network file, by address."""
    return _by_address(
        [
            *((switch.name, switch.station) for switch in network.switches),
            *((f"w{number}", worker.station) for number, worker in enumerate(network.workers)),
        ]
    )


def name_of(address: bytes, names: Mapping[bytes, str]) -> str:
    """Return the name of an Ethernet or IP address, or the address itself if it is unknown."""
    is_ip = len(address) == _IP_BYTES
    return names.get(address) or (".".join(map(str, address)) if is_ip else address.hex(":"))


def _by_address(stations: Iterable[tuple[str, Station]]) -> Mapping[bytes, str]:
    return {
        address: name
        for name, station in stations
        for address in (
            mac_number(station.mac).to_bytes(6, "big"),
            ipaddress.IPv4Address(station.ip).packed,
        )
    }


def _usual_stations() -> Iterator[tuple[str, Station]]:
    star = star_network(_MOST)
    yield SWITCH, star.switch
    for worker, neighbour in enumerate(star.neighbours):
        yield f"w{worker}", neighbour.station
    # One leaf has a link to each spine, and one spine to each leaf.
    (spined,) = leaf_spine_networks([0], _MOST).leaves
    for spine, neighbour in enumerate(spined.neighbours[1:]):
        yield f"spine-{spine}", neighbour.station
    (leaved,) = leaf_spine_networks(range(_MOST), 1).spines
    for leaf, neighbour in enumerate(leaved.neighbours):
        yield f"leaf-{leaf}", neighbour.station


IPV4 = b"\x08\x00"
PROTOCOL_AT = ETHERNET_BYTES + 9
_RECEIVER_IP_AT = ETHERNET_BYTES + 16
_PLAIN_IPV4 = 0x45
KIND_NAMES = {int(kind): kind.name.lower() for kind in Kind}
_REDUCE_KINDS = (Kind.REDUCE, Kind.REDUCED, Kind.REDUCING)


def kind_name(header: Header) -> str:
    """Return the name of a kind, or its number if it is unknown."""
    return KIND_NAMES.get(header.kind) or str(int(header.kind))


class DecodedPacket(NamedTuple):
    """A decoded SwitchGNN packet; `sender` and `receiver` are names of its Ethernet addresses."""

    captured: Captured
    sender: str
    receiver: str
    direct: bool  # Whether it travels between workers, without the switch.
    parsed: ParsedHeader | None  # The header, if all of it was captured.
    body: BarrierBody | None  # The body of a barrier, if all of it was captured.
    cut: bool  # Whether the capture is truncated, so that the packet cannot be validated.
    problem: str | None  # Why it is invalid; None if no problem was found.

    @property
    def number(self) -> int | None:
        """The number of a fragment of an all-reduce; None in other packets."""
        if self.parsed is None or self.direct or self.parsed.header.kind not in _REDUCE_KINDS:
            return None
        return self.parsed.header.round << 16 | self.parsed.header.block_id


def is_ours(frame: bytes) -> bool:
    """Return whether a frame is IPv4 with a protocol of SwitchGNN."""
    if len(frame) <= PROTOCOL_AT or frame[12:14] != IPV4 or frame[14] >> 4 != 4:
        return False
    return frame[PROTOCOL_AT] in (PROTOCOL, DIRECT_PROTOCOL)


def decode(captured: Captured, names: Mapping[bytes, str]) -> DecodedPacket | None:
    """Return the packet in a frame, valid or not; None for other traffic; `names`: by address."""
    frame = captured.frame
    if not is_ours(frame):
        return None
    direct = frame[PROTOCOL_AT] == DIRECT_PROTOCOL
    cut = len(frame) < captured.size
    parsed, body, problem = None, None, _envelope_problem(frame)
    if problem is None and len(frame) < BODY_AT:
        there = max(0, captured.size - HEADER_AT)
        if there < HEADER_BYTES:
            problem = f"short: {there} bytes of a header of {HEADER_BYTES}"
    elif problem is None:
        parsed = parse_header(frame)
        problem = _problem(captured, parsed, direct=direct)
        header = parsed.header
        whole = len(frame) >= BODY_AT + (body_bytes(header) or 0)
        if not direct and header.kind in BARRIER_KINDS and whole:
            body = BarrierBody.unpack(frame, header.kind)
    # A cooked capture has no address of the receiver but in IPv4.
    to = frame[:6] if any(frame[:6]) else frame[_RECEIVER_IP_AT : _RECEIVER_IP_AT + _IP_BYTES]
    sender, receiver = name_of(frame[6:12], names), name_of(to, names)
    return DecodedPacket(captured, sender, receiver, direct, parsed, body, cut, problem)


def _envelope_problem(frame: bytes) -> str | None:
    if frame[14] != _PLAIN_IPV4:
        return "IPv4 options before it"
    # More fragments, or an offset.
    if frame[20] & 0x3F or frame[21]:
        return "a fragment of IPv4"
    return None


def _problem(captured: Captured, parsed: ParsedHeader, *, direct: bool) -> str | None:
    header, frame = parsed.header, captured.frame
    if header.version != VERSION:
        return f"version {header.version}, not {VERSION}"
    size = direct_body_bytes(header.kind, frame) if direct else body_bytes(header)
    if size is None:
        return _unknown(header, direct=direct)
    if captured.size < BODY_AT + size:
        return f"short: {captured.size - BODY_AT} bytes of a body of {size}"
    if len(frame) < BODY_AT + size:
        return None
    checksum = frame_checksum(frame, size)
    if checksum != parsed.checksum:
        return f"checksum {parsed.checksum:#010x}, should be {checksum:#010x}"
    return None


def _unknown(header: Header, *, direct: bool) -> str:
    if direct and header.kind == Kind.FEATURE:
        return "no rows: IPv4 tells of another length"
    if not direct and header.kind in LANE_KINDS:
        return f"{header.bits} bits are not known here for {lanes_of(header.fragment)} lanes"
    return f"kind {kind_name(header)} is not known here"


@dataclass(frozen=True)
class Wanted:
    """A filter of packets by kind, round, block and worker; an empty set matches all.

    Packets between hosts have no block; a worker may be sender or receiver.
    """

    kinds: frozenset[int] = frozenset()
    rounds: frozenset[int] = frozenset()
    blocks: frozenset[int] = frozenset()
    workers: frozenset[int] = frozenset()

    def takes(self, packet: DecodedPacket) -> bool:
        """Return whether a packet matches."""
        ends = (packet.sender, packet.receiver)
        if self.workers and not any(f"w{worker}" in ends for worker in self.workers):
            return False
        if packet.parsed is None:
            return not (self.kinds or self.rounds or self.blocks)
        header = packet.parsed.header
        block = None if packet.direct else header.block_id
        found = (self.kinds, header.kind), (self.rounds, header.round), (self.blocks, block)
        return all(not wanted or it in wanted for wanted, it in found)


class _LinkHeader(NamedTuple):
    """A header with a protocol, as EtherType, and the address of the sender."""

    size: int
    protocol_at: int
    sender_at: int


# By link type; those of cooked captures: https://www.tcpdump.org/linktypes/LINKTYPE_LINUX_SLL2.html
_ETHERNET = 1
_COOKED = {113: _LinkHeader(16, 14, 6), 276: _LinkHeader(20, 0, 12)}
# An address that is not in a cooked header.
_UNKNOWN = bytes(6)
LINK_TYPES = frozenset({_ETHERNET, *_COOKED})


def as_ethernet(captured: Captured, link_type: int) -> Captured:
    """Return a frame of a link type with the header of Ethernet; empty for an unknown type.

    Cooked headers lack the receiver's address, which becomes 0.
    """
    if link_type == _ETHERNET:
        return captured
    header, frame = _COOKED.get(link_type), captured.frame
    if header is None or len(frame) < header.size:
        return captured._replace(frame=b"")
    sender = frame[header.sender_at :][:6]
    ethernet = _UNKNOWN + sender + frame[header.protocol_at :][:2]
    size = captured.size - header.size + ETHERNET_BYTES
    return captured._replace(frame=ethernet + frame[header.size :], size=size)


def frames_in(captured: Captured) -> Iterator[Captured]:
    """Yield the frames of SwitchGNN in a captured one; the frame without tags if it has none.

    The loopback fabric sends frames in UDP, several in one datagram if the kernel segments it.
    """
    while captured.frame[12:14] in _TAGS:
        frame = captured.frame[:12] + captured.frame[12 + _TAG_BYTES :]
        captured = captured._replace(frame=frame, size=captured.size - _TAG_BYTES)
    inner = _after_udp(captured)
    if not is_ours(inner.frame):
        yield captured
    while is_ours(inner.frame):
        length = ETHERNET_BYTES + int.from_bytes(inner.frame[16:18], "big")
        yield inner._replace(frame=inner.frame[:length], size=min(length, inner.size))
        inner = inner._replace(frame=inner.frame[length:], size=inner.size - length)


def _after_udp(captured: Captured) -> Captured:
    frame = captured.frame
    is_udp = frame[12:14] == IPV4 and frame[PROTOCOL_AT : PROTOCOL_AT + 1] == bytes([_UDP])
    begin = ETHERNET_BYTES + 4 * (frame[14] & 0xF) + _UDP_BYTES if is_udp else len(frame)
    return captured._replace(frame=frame[begin:], size=captured.size - begin)
