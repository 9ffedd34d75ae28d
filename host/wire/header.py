"""The format of SwitchGNN packets: a table of its fields, and packets packed and parsed one by one.

`p4src/headers.p4` declares the same fields and `docs/protocol.md` draws them; a test compares them.
Scapy's layers, the Wireshark dissector, and native code have their fields and offsets from the
table. Features go through :mod:`switchgnn.host.innetwork.schedule`, many at a time.
"""

import struct
import zlib
from enum import IntEnum
from typing import NamedTuple, cast

import numpy as np

from switchgnn.planner.base.lanes import BANK_LANES, WIDEST_ANSWER, fragment_lanes
from switchgnn.planner.base.lanes import LANES as PLANNED_LANES


class Kind(IntEnum):
    """Packet kind; ``kind_t`` of the P4 program."""

    FEATURE = 1
    SUM = 2
    DONE = 3
    ADVANCE = 4
    WAITING = 5
    ACK = 6
    RECALL = 7
    MISSING = 8
    FETCH = 9
    NOTICE = 10
    REDUCE = 11
    REDUCED = 12
    REDUCING = 13


class Refusal(IntEnum):
    """`Count` of a WAITING: why the switch rejects a `done`."""

    NONE = 0
    INCARNATION = 1
    MAGNITUDE = 2
    TAG = 3
    NEXT = 4


VERSION = 5
# Bits of a number in a body, by their code in the header; 0: all are 0, and there is no body.
BITS = (32, 16, 8, 0)
# A body is groups of 8 words.
GROUP_BYTES = 32


class HeaderField(NamedTuple):
    """A field of `bits` bits; P4's name is the lower-case one."""

    name: str
    bits: int


def _fields(**bits: int) -> tuple[HeaderField, ...]:
    return tuple(HeaderField(*each) for each in bits.items())


HEADER_FIELDS = _fields(
    # The paper's fields (section 4).
    Src_id=32,
    Dst_id=32,
    Block_id=16,
    Count=16,
    Is_ACK=1,
    Is_Fetch=1,
    ECN=1,
    Resend=1,
    # Our extension.
    Kind=4,
    Version=4,
    Bits=2,
    Level=1,
    Echo=1,
    Fragment=9,
    Pool=2,
    Width=5,
    Feature_group=16,
    Session=8,
    Round=24,
    Checksum=32,
)
# The body of DONE, ADVANCE, WAITING and REDUCING; the last two have the heartbeats besides.
BARRIER_FIELDS = _fields(magnitude=32, plan=32, round=32, workers=128)
WAITING_FIELDS = _fields(heartbeats=128)

# The header as whole words, named by their first field but for those of several.
HEADER_WORDS = np.dtype(
    [
        *(("src_id", ">u4"), ("dst_id", ">u4"), ("block_id", ">u2"), ("count", ">u2")),
        *(("flags", "u1"), ("extension", "u1"), ("fragment", ">u2"), ("feature_group", ">u2")),
        *(("number", ">u4"), ("checksum", ">u4")),
    ]
)


class Span(NamedTuple):
    """The bytes of a field in its header, and the mask of its bits in them; 0: all."""

    at: int
    size: int
    mask: int


def spans() -> dict[str, Span]:
    """Return where each field of the header is, by its name in lower case."""
    found, begin = {}, 0
    for name, bits in HEADER_FIELDS:
        end = begin + bits
        at, last = begin // 8, (end - 1) // 8
        mask = ((1 << bits) - 1) << (8 * (last + 1) - end)
        size = last - at + 1
        found[name.lower()] = Span(at, size, 0 if bits == 8 * size else mask)
        begin = end
    return found


ETHERTYPE_IPV4 = 0x0800
PROTOCOL = 253
# A frame carries 1 + code groups of 8 numbers; the code is in the lower bits of the word of the
# fragment, and the pool of its slots before it.
_CODE_BITS = 5
LAST_WIDTH = (1 << _CODE_BITS) - 1
_NUMBER_AT = _CODE_BITS + 2
_POOL_MASK = (1 << _NUMBER_AT) - 1 - LAST_WIDTH
_LANE_BYTES = 4
# Of a whole bank; what a fragment of one row has between hosts that do not pack.
LANES = BANK_LANES
FRAGMENT_BYTES = _LANE_BYTES * LANES
# The word of a fragment of maxima has this bit, before the number.
MAXIMUM = 1 << 15
LAST_FRAGMENT = (MAXIMUM >> _NUMBER_AT) - 1
# The widest row in frames that every switch can make.
WIDEST = WIDEST_ANSWER * (LAST_FRAGMENT + 1)

ETHERNET_BYTES = 14
IPV4_BYTES = 20
# HEADER_WORDS.
HEADER = struct.Struct(">IIHHBBHHII")
HEADER_BYTES = HEADER_WORDS.itemsize
CHECKED_BYTES = HEADER_BYTES - 4
BARRIER_BYTES = sum(field.bits for field in BARRIER_FIELDS) // 8
HEARTBEATS_BYTES = sum(field.bits for field in WAITING_FIELDS) // 8
_BARRIER = struct.Struct(">III16s")

HEADER_AT = ETHERNET_BYTES + IPV4_BYTES
BODY_AT = HEADER_AT + HEADER_BYTES
KIND_AT = HEADER_AT + spans()["kind"].at
# More fragments, and the upper bits of the offset.
_FRAGMENT_BITS = 0x3F
KIND_MASK = 0xF
FEATURE_FRAME_BYTES = BODY_AT + FRAGMENT_BYTES
BARRIER_FRAME_BYTES = BODY_AT + BARRIER_BYTES
OPENING_BLOCK = 0
# Of the number of a session a packet carries the lower bits.
SESSION_MASK = 0xFF
_ROUND_BITS = 24
LAST_ROUND = (1 << _ROUND_BITS) - 1

# The length of their bodies follows from the word of the fragment.
LANE_KINDS = (Kind.FEATURE, Kind.SUM, Kind.REDUCE, Kind.REDUCED)
# The body of a barrier, alone or with heartbeats.
HEARTBEAT_KINDS = (Kind.WAITING, Kind.REDUCING)
BARRIER_KINDS = (Kind.DONE, Kind.ADVANCE, *HEARTBEAT_KINDS)

# `Dst_id` of a bundle of sums for worker 0. Places of destinations, one for each row, precede the
# numbers.
SUM_BUNDLES = 0xFFFFFF00
PLACES = 8
PLACE_BYTES = 2
NO_PLACE = 0xFFFF
# `Dst_id` of a refusal without a responsible worker.
NOBODY = 0xFFFFFFFF


def fragments_of(width: int) -> int:
    """Return how many frames of LANES a row of ``width`` elements takes."""
    return -(-width // LANES)


def fragment_words(width: int, lanes: int, rows: int = 1) -> tuple[int, ...]:
    """Return the words of a row's fragments in headers, ascending, in pool 0.

    `rows`: of a frame, which all have `lanes` numbers at most.
    """
    return tuple(
        number << _NUMBER_AT | PLANNED_LANES.index(each * rows)
        for number, each in enumerate(fragment_lanes(width, lanes, rows))
    )


def fragment_number(word: int) -> int:
    """Return the number of a fragment, from 0."""
    return word >> _NUMBER_AT


def combine_of(word: int) -> np.ufunc:
    """Return how two numbers of a fragment, uint32, become one."""
    return np.maximum if word & MAXIMUM else np.add


def pool_of(word: int) -> int:
    """Return the pool of a fragment's slots."""
    return (word & _POOL_MASK) >> _CODE_BITS


def in_pool(word: int, pool: int) -> int:
    """Return the word of the same fragment in a pool."""
    return word & ~_POOL_MASK | pool << _CODE_BITS


def width_code(word: int) -> int:
    """Return the code of a fragment's width."""
    return word & LAST_WIDTH


def lanes_of(word: int) -> int:
    """Return how many numbers a fragment carries."""
    return PLANNED_LANES[width_code(word)]


def payload_bytes(word: int, bits: int = 32) -> int:
    """Return the bytes of a fragment's numbers of some bits each."""
    return _lane_bytes(lanes_of(word), bits)


def allowed_bits(lanes: int) -> tuple[int, ...]:
    """Return the bits that each number of a fragment may have, ascending."""
    narrow = (bits for bits in (8, 16) if _lane_bytes(lanes, bits) < _lane_bytes(lanes, 2 * bits))
    return (0, *narrow, 32)


def feature_frame_bytes(lanes: int, bits: int = 32) -> int:
    """Return the bytes of a FEATURE or SUM with that many numbers of some bits each."""
    return BODY_AT + _lane_bytes(lanes, bits)


def _lane_bytes(lanes: int, bits: int) -> int:
    return GROUP_BYTES * -(-lanes * bits // (8 * GROUP_BYTES))


def session_and_round(session: int, round_number: int) -> int:
    """Return both in the 32 bits of the header."""
    return (session & SESSION_MASK) << _ROUND_BITS | round_number


class Unit(NamedTuple):
    """What one exchange of sums is about: a fragment, by its word, of a block in a round."""

    round: int
    block: int
    fragment: int

    @property
    def order(self) -> tuple[int, int, int]:
        """A key for comparisons: a round has all blocks of a fragment before the next one's."""
        return self.round, fragment_number(self.fragment), self.block


class Header(NamedTuple):
    """One SwitchGNN header; names and widths of the fields are those of the P4 program.

    `fragment` is the word with number, pool and width of a fragment, see `fragment_words`; `bits`
    are those of a number in the body, and in a RECALL any but 32 allow a narrow sum. A
    tuple is created in a third of the time of a frozen dataclass, and each frame needs one.
    """

    kind: Kind
    src_id: int = 0
    dst_id: int = 0
    block_id: int = 0
    count: int = 0  # type: ignore[assignment]  # a tuple's method, which nobody calls here
    is_ack: bool = False
    is_fetch: bool = False
    ecn: bool = False
    resend: bool = False
    bits: int = 32
    level: int = 0
    echo: bool = False
    fragment: int = 0
    feature_group: int = 0
    session: int = 0
    round: int = 0

    @property
    def unit(self) -> Unit:
        """What a packet of an exchange over the switch belongs to."""
        return Unit(self.round, self.block_id, self.fragment)

    def pack(self, body: bytes) -> bytes:
        """Return the header with the checksum over itself and ``body``, then ``body``."""
        flags = self.is_ack << 3 | self.is_fetch << 2 | self.ecn << 1 | self.resend
        head = HEADER.pack(
            self.src_id,
            self.dst_id,
            self.block_id,
            self.count,
            flags << 4 | self.kind,
            VERSION << 4 | BITS.index(self.bits) << 2 | self.level << 1 | self.echo,
            self.fragment,
            self.feature_group,
            session_and_round(self.session, self.round),
            0,
        )[:CHECKED_BYTES]
        return head + zlib.crc32(body, zlib.crc32(head)).to_bytes(4, "big") + body


class BarrierBody(NamedTuple):
    """The body of DONE, ADVANCE, WAITING and REDUCING."""

    # Float32 bits of the largest magnitude of the round; in a REDUCING the upper 8 bits of the
    # newest fragment's number, and `round` has its lower 32 bits.
    magnitude: int = 0
    plan: int = 0  # First 32 bits of the plan's digest.
    round: int = 0
    workers: int = 0  # Bit w: worker w is done; in a DONE the sender's heartbeat, in the same bit.
    # The latest heartbeat of each worker in a WAITING or REDUCING; otherwise None.
    heartbeats: int | None = None

    def pack(self) -> bytes:
        """Return the 28 bytes on the wire, 44 of a WAITING or REDUCING."""
        workers = self.workers.to_bytes(16, "big")
        body = _BARRIER.pack(self.magnitude, self.plan, self.round, workers)
        if self.heartbeats is not None:
            body += self.heartbeats.to_bytes(HEARTBEATS_BYTES, "big")
        return body

    @classmethod
    def unpack(cls, frame: bytes | memoryview, kind: Kind) -> "BarrierBody":
        """Parse the body of a sound frame of a kind."""
        magnitude, plan, round_number, workers = _BARRIER.unpack_from(frame, BODY_AT)
        heartbeats = None
        if kind in HEARTBEAT_KINDS:
            begin = BODY_AT + BARRIER_BYTES
            heartbeats = int.from_bytes(frame[begin : begin + HEARTBEATS_BYTES], "big")
        return cls(magnitude, plan, round_number, int.from_bytes(workers, "big"), heartbeats)


class ParsedHeader(NamedTuple):
    """The fields of a frame, valid or not; `header.kind` is a number if the kind is unknown."""

    header: Header
    version: int
    checksum: int


def is_plain(frame: bytes | memoryview, protocol: int) -> bool:
    """Return whether a frame has a whole header of a protocol, and IPv4 no options or fragments."""
    if len(frame) < BODY_AT or frame[12] != 8 or frame[13] != 0 or frame[14] != 0x45:
        return False
    return frame[23] == protocol and not (frame[20] & _FRAGMENT_BITS or frame[21])


def parse_header(frame: bytes | memoryview) -> ParsedHeader:
    """Read the fields of a frame that is plain."""
    src, dst, block, count, flags, extension, fragment, group, number, checksum = (
        HEADER.unpack_from(frame, HEADER_AT)
    )
    kind = flags & KIND_MASK
    header = Header(
        kind=_KINDS.get(kind, cast(Kind, kind)),
        src_id=src,
        dst_id=dst,
        block_id=block,
        count=count,
        is_ack=bool(flags & 0x80),
        is_fetch=bool(flags & 0x40),
        ecn=bool(flags & 0x20),
        resend=bool(flags & 0x10),
        bits=BITS[extension >> 2 & 3],
        level=extension >> 1 & 1,
        echo=bool(extension & 1),
        fragment=fragment,
        feature_group=group,
        session=number >> _ROUND_BITS,
        round=number & LAST_ROUND,
    )
    return ParsedHeader(header, extension >> 4, checksum)


def body_bytes(header: Header) -> int | None:
    """Return how long the body of a packet to or from the switch is; None: there is no such packet.

    Numbers of an all-reduce have 32 bits each.
    """
    if header.kind not in LANE_KINDS:
        return _BODY_BYTES.get(header.kind)
    lanes = lanes_of(header.fragment)
    narrow = header.kind in (Kind.FEATURE, Kind.SUM)
    known = allowed_bits(lanes) if narrow else (32,)
    if header.bits not in known:
        return None
    return payload_bytes(header.fragment, header.bits) + places_bytes(header)


def places_bytes(header: Header) -> int:
    """Return the bytes that precede the numbers of a packet: the places of a bundle of sums."""
    bundle = header.kind is Kind.SUM and header.dst_id >= SUM_BUNDLES
    return PLACES * PLACE_BYTES if bundle else 0


def frame_checksum(frame: bytes | memoryview, body_bytes: int) -> int:
    """Return the right checksum of a frame with a body of that length."""
    head = zlib.crc32(frame[HEADER_AT : HEADER_AT + CHECKED_BYTES])
    return zlib.crc32(frame[BODY_AT : BODY_AT + body_bytes], head)


def unpack_header(frame: bytes | memoryview) -> Header | None:
    """Parse the header of a frame; None when it is not a sound SwitchGNN frame.

    Sound means: Ethernet, IPv4 without options and no fragment, our protocol and
    version, a known kind, a whole body, and a right checksum.
    """
    if not is_plain(frame, PROTOCOL):
        return None
    header, version, checksum = parse_header(frame)
    size = body_bytes(header)
    if version != VERSION or size is None or len(frame) < BODY_AT + size:
        return None
    return header if frame_checksum(frame, size) == checksum else None


_KINDS = {int(kind): kind for kind in Kind}
_BODY_BYTES = {
    int(kind): (BARRIER_BYTES if kind in BARRIER_KINDS else 0)
    + HEARTBEATS_BYTES * (kind in HEARTBEAT_KINDS)
    for kind in Kind
    if kind not in LANE_KINDS
}
