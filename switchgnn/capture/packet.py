# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Decoding of captured frames, whether they are valid or not.

A packet takes a few microseconds here, and a hundred times as long with the Scapy layers of
``switchgnn.capture.layers``; tests compare the two.
"""

import ipaddress
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from switchgnn.base.described import DescribedNetwork
from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.network import Station, leaf_spine_networks, mac_number, star_network
from switchgnn.host.direct.frames import PROTOCOL as DIRECT_PROTOCOL
from switchgnn.host.direct.frames import data_bytes
from switchgnn.host.wire.header import (
    BARRIER,
    BARRIER_KINDS,
    BITS,
    BODY_AT,
    CHECKED_BYTES,
    ETHERNET_BYTES,
    HEADER,
    HEADER_AT,
    HEADER_BYTES,
    KIND_MASK,
    LANE_KINDS,
    LAST_ROUND,
    NARROW_KINDS,
    PROTOCOL,
    PULSE_KINDS,
    VERSION,
    WAITING,
    BarrierBody,
    Kind,
    allowed_bits,
    fragment_number,
    lanes_of,
    payload_bytes,
    width_code,
)

# The limit of tcpdump and Wireshark.
LONGEST_FRAME = 1 << 18


class CaptureError(SwitchGNNError):
    """A capture cannot be made, or cannot be read."""


class DamageError(CaptureError):
    """A capture file is damaged from some position on."""


class Captured(NamedTuple):
    """A frame, and when and where it was seen.

    Attributes:
        time: nanoseconds since 1970.
        link: the name of the interface, or of the file without its ending.
        frame: the captured bytes, from the Ethernet header on.
        size: the length of the whole frame in bytes.
    """

    time: int
    link: str
    frame: bytes
    size: int


_MOST = 128
_IP_BYTES = 4
SWITCH = "switch"


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
_SESSION_SHIFT = LAST_ROUND.bit_length()
# Kinds with lanes depend on their width.
_BODY_BYTES = {
    **dict.fromkeys(set(map(int, Kind)) - set(LANE_KINDS), 0),
    int(Kind.DONE): BARRIER.size,
    int(Kind.ADVANCE): BARRIER.size,
    **dict.fromkeys(map(int, PULSE_KINDS), BARRIER.size + WAITING.size),
}
# Between hosts DONE has no body, and a FEATURE has the length in IPv4.
_DIRECT_BODY_BYTES = {
    int(Kind.DONE): 0,
    int(Kind.ACK): 0,
    int(Kind.RECALL): 0,
}
KIND_NAMES = {int(kind): kind.name.lower() for kind in Kind}
_REDUCE_KINDS = (Kind.REDUCE, Kind.REDUCED, Kind.REDUCING)


class Fields(NamedTuple):
    """The header's fields, by their names in ``docs/protocol.md`` in lower case.

    `bits` are those of a number, not their code. Between hosts there is no `width`, and `fragment`
    has its bits.
    """

    src_id: int
    dst_id: int
    block_id: int
    count: int  # type: ignore[assignment]    # hides a method of tuple
    is_ack: bool
    is_fetch: bool
    ecn: bool
    resend: bool
    kind: int
    version: int
    bits: int
    level: int
    echo: bool
    fragment: int
    width: int | None
    feature_group: int
    session: int
    round: int
    checksum: int

    @property
    def kind_name(self) -> str:
        """The kind's name, or its number if it is unknown."""
        return KIND_NAMES.get(self.kind) or str(self.kind)

    @property
    def lanes(self) -> int | None:
        """The numbers in a fragment of that width; 0 for an unknown width."""
        return None if self.width is None else lanes_of(self.width)

    @property
    def number(self) -> int | None:
        """The number of a fragment of an all-reduce; None in other packets."""
        of_reduce = self.width is not None and self.kind in _REDUCE_KINDS
        return self.round << 16 | self.block_id if of_reduce else None

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of the set flags."""
        named = {
            "ack": self.is_ack,
            "fetch": self.is_fetch,
            "ecn": self.ecn,
            "resend": self.resend,
            "echo": self.echo,
        }
        return tuple(name for name, value in named.items() if value)


class DecodedPacket(NamedTuple):
    """A decoded SwitchGNN packet.

    Attributes:
        captured: the frame.
        sender, receiver: names of its Ethernet addresses.
        direct: whether it travels between workers, without the switch.
        fields: the header, if all of it was captured.
        body: the body of DONE, ADVANCE, WAITING and REDUCING, if all of it was captured.
        cut: whether the capture is truncated, so that the packet cannot be validated.
        problem: why it is invalid; None if no problem was found.
    """

    captured: Captured
    sender: str
    receiver: str
    direct: bool
    fields: Fields | None
    body: BarrierBody | None
    cut: bool
    problem: str | None


def is_ours(frame: bytes) -> bool:
    """Return whether a frame is IPv4 with a protocol of SwitchGNN."""
    if len(frame) <= PROTOCOL_AT or frame[12:14] != IPV4 or frame[14] >> 4 != 4:
        return False
    return frame[PROTOCOL_AT] in (PROTOCOL, DIRECT_PROTOCOL)


def decode(captured: Captured, names: Mapping[bytes, str]) -> DecodedPacket | None:
    """Return the packet in a frame, valid or not; None for other traffic.

    `names` maps Ethernet addresses to workers and switches.
    """
    frame = captured.frame
    if not is_ours(frame):
        return None
    direct = frame[PROTOCOL_AT] == DIRECT_PROTOCOL
    cut = len(frame) < captured.size
    fields, body, problem = None, None, _envelope_problem(frame)
    if problem is None and len(frame) < BODY_AT:
        there = max(0, captured.size - HEADER_AT)
        if there < HEADER_BYTES:
            problem = f"short: {there} bytes of a header of {HEADER_BYTES}"
    elif problem is None:
        fields = read_fields(frame, direct=direct)
        problem = _problem(captured, fields, direct=direct)
        body = None if direct else _barrier_body(frame, fields)
    # A cooked capture has no address of the receiver but in IPv4.
    to = frame[:6] if any(frame[:6]) else frame[_RECEIVER_IP_AT : _RECEIVER_IP_AT + _IP_BYTES]
    sender, receiver = name_of(frame[6:12], names), name_of(to, names)
    return DecodedPacket(captured, sender, receiver, direct, fields, body, cut, problem)


def _envelope_problem(frame: bytes) -> str | None:
    if frame[14] != _PLAIN_IPV4:
        return "IPv4 options before it"
    # More fragments, or an offset.
    if frame[20] & 0x3F or frame[21]:
        return "a fragment of IPv4"
    return None


def read_fields(frame: bytes, *, direct: bool) -> Fields:
    """Return the header's fields in a frame, which must hold all of the header."""
    src, dst, block, count, flags, extension, word, group, number, checksum = HEADER.unpack_from(
        frame, HEADER_AT
    )
    return Fields(
        src,
        dst,
        block,
        count,
        bool(flags & 0x80),
        bool(flags & 0x40),
        bool(flags & 0x20),
        bool(flags & 0x10),
        flags & KIND_MASK,
        extension >> 4,
        BITS[extension >> 2 & 3],
        extension >> 1 & 1,
        bool(extension & 1),
        word if direct else fragment_number(word),
        None if direct else width_code(word),
        group,
        number >> _SESSION_SHIFT,
        number & LAST_ROUND,
        checksum,
    )


def _problem(captured: Captured, fields: Fields, *, direct: bool) -> str | None:
    if fields.version != VERSION:
        return f"version {fields.version}, not {VERSION}"
    size = _body_bytes(captured.frame, fields, direct=direct)
    if size is None:
        return _unknown(fields, direct=direct)
    if captured.size < BODY_AT + size:
        return f"short: {captured.size - BODY_AT} bytes of a body of {size}"
    frame = captured.frame
    if len(frame) < BODY_AT + size:
        return None
    checked = zlib.crc32(frame[HEADER_AT : HEADER_AT + CHECKED_BYTES])
    checksum = zlib.crc32(frame[BODY_AT : BODY_AT + size], checked)
    if checksum != fields.checksum:
        return f"checksum {fields.checksum:#010x}, should be {checksum:#010x}"
    return None


def _body_bytes(frame: bytes, fields: Fields, *, direct: bool) -> int | None:
    if direct:
        known = _DIRECT_BODY_BYTES.get(fields.kind)
        return data_bytes(frame) if fields.kind == Kind.FEATURE else known
    if fields.kind in LANE_KINDS:
        known = fields.bits in _bits_of(fields)
        return payload_bytes(fields.width or 0, fields.bits) if known else None
    return _BODY_BYTES.get(fields.kind)


def _bits_of(fields: Fields) -> tuple[int, ...]:
    """Return the bits that numbers of this kind and width may have."""
    if not fields.lanes:
        return ()
    return allowed_bits(fields.lanes) if fields.kind in NARROW_KINDS else (BITS[0],)


def _unknown(fields: Fields, *, direct: bool) -> str:
    if direct and fields.kind == Kind.FEATURE:
        return "no rows: IPv4 tells of another length"
    if not direct and fields.kind in LANE_KINDS:
        if fields.lanes:
            return f"{fields.bits} bits are not known here for {fields.lanes} lanes"
        return f"width {fields.width} is not known here"
    return f"kind {fields.kind_name} is not known here"


def _barrier_body(frame: bytes, fields: Fields) -> BarrierBody | None:
    if fields.kind not in BARRIER_KINDS or len(frame) < BODY_AT + _BODY_BYTES[fields.kind]:
        return None
    return BarrierBody.unpack(frame, Kind(fields.kind))


@dataclass(frozen=True)
class Wanted:
    """A filter of packets; an empty set matches all.

    Attributes:
        kinds: numbers of kinds.
        rounds: numbers of rounds.
        blocks: numbers of blocks; packets between hosts have none.
        workers: numbers of workers, as sender or receiver.
    """

    kinds: frozenset[int] = frozenset()
    rounds: frozenset[int] = frozenset()
    blocks: frozenset[int] = frozenset()
    workers: frozenset[int] = frozenset()

    def takes(self, packet: DecodedPacket) -> bool:
        """Return whether a packet matches."""
        if self.workers and not self._of_workers(packet):
            return False
        fields = packet.fields
        if fields is None:
            return not (self.kinds or self.rounds or self.blocks)
        if self.kinds and fields.kind not in self.kinds:
            return False
        if self.rounds and fields.round not in self.rounds:
            return False
        return not self.blocks or (not packet.direct and fields.block_id in self.blocks)

    def _of_workers(self, packet: DecodedPacket) -> bool:
        ends = (packet.sender, packet.receiver)
        return any(f"w{worker}" in ends for worker in self.workers)
