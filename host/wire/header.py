"""The format of SwitchGNN packets: all else follows from the table of fields, ``Header``.

`p4src/headers.p4` declares the same fields and `docs/protocol.md` draws them; a test compares them.
Packing and parsing, Scapy's layers, and native code read fields and offsets from the table, and a
test compares the Wireshark dissector with it. ``write_fields`` writes many headers at a time.
"""

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.base.operations import Operation
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


class Header(NamedTuple):
    """One SwitchGNN header, and the table of its fields, with their names and bits on the wire.

    `fragment` is the word with number, pool and width of a fragment, see `fragment_words`; `bits`
    are those of a number in the body, and in a RECALL any but 32 allow a narrow sum. A
    tuple is created in a third of the time of a frozen dataclass, and each frame needs one.
    """

    # The paper's fields (section 4).
    src_id: Annotated[int, "Src_id", 32] = 0
    dst_id: Annotated[int, "Dst_id", 32] = 0
    block_id: Annotated[int, "Block_id", 16] = 0
    count: Annotated[int, "Count", 16] = 0  # type: ignore[assignment]  # hides a tuple's method
    is_ack: Annotated[bool, "Is_ACK", 1] = False
    is_fetch: Annotated[bool, "Is_Fetch", 1] = False
    ecn: Annotated[bool, "ECN", 1] = False
    resend: Annotated[bool, "Resend", 1] = False
    # Our extension.
    kind: Annotated[Kind, "Kind", 4] = Kind.FEATURE
    version: Annotated[int, "Version", 4] = VERSION
    bits: Annotated[int, "Bits", 2] = 32
    level: Annotated[int, "Level", 1] = 0
    echo: Annotated[bool, "Echo", 1] = False
    fragment: Annotated[int, "Fragment", 9, "Pool", 2, "Width", 5] = 0
    feature_group: Annotated[int, "Feature_group", 16] = 0
    session: Annotated[int, "Session", 8] = 0
    round: Annotated[int, "Round", 24] = 0

    @property
    def unit(self) -> "Unit":
        """What a packet of an exchange over the switch belongs to."""
        return Unit(self.round, self.block_id, self.fragment)

    def pack(self, body: bytes) -> bytes:
        """Return the header with the checksum over itself and ``body``, then ``body``."""
        head = _pack(self)
        return head + zlib.crc32(body, zlib.crc32(head)).to_bytes(4, "big") + body


class BarrierBody(NamedTuple):
    """The body of DONE, ADVANCE, WAITING and REDUCING, and the table of its fields."""

    # Float32 bits of the largest magnitude of the round; in a REDUCING the upper 8 bits of the
    # newest fragment's number, and `round` has its lower 32 bits.
    magnitude: Annotated[int, "magnitude", 32] = 0
    plan: Annotated[int, "plan", 32] = 0  # First 32 bits of the plan's digest.
    round: Annotated[int, "round", 32] = 0
    # Bit w: worker w is done; in a DONE the sender's heartbeat, in the same bit.
    workers: Annotated[int, "workers", 128] = 0
    # The latest heartbeat of each worker in a WAITING or REDUCING; otherwise None.
    heartbeats: Annotated[int | None, "heartbeats", 128] = None

    def pack(self) -> bytes:
        """Return the 28 bytes on the wire, 44 of a WAITING or REDUCING."""
        pairs = zip(self, (*BARRIER_FIELDS, *WAITING_FIELDS), strict=True)
        return b"".join(
            value.to_bytes(bits // 8, "big") for value, (_, bits) in pairs if value is not None
        )

    @classmethod
    def unpack(cls, frame: bytes | memoryview, kind: Kind) -> "BarrierBody":
        """Parse the body of a sound frame of a kind."""
        values, begin = [], BODY_AT
        for _, bits in (*BARRIER_FIELDS, *WAITING_FIELDS * (kind in HEARTBEAT_KINDS)):
            end = begin + bits // 8
            values.append(int.from_bytes(frame[begin:end], "big"))
            begin = end
        return cls(*values)


class HeaderField(NamedTuple):
    """A field of `bits` bits; P4's name is the lower-case one."""

    name: str
    bits: int


def _fields(table: Any) -> tuple[tuple[HeaderField, ...], ...]:  # noqa: ANN401
    cells = [annotated.__metadata__ for annotated in table.__annotations__.values()]
    return tuple(
        tuple(HeaderField(*each) for each in zip(cell[::2], cell[1::2], strict=True))
        for cell in cells
    )


_CHECKSUM = HeaderField("Checksum", 32)
HEADER_FIELDS = (*sum(_fields(Header), ()), _CHECKSUM)
_OF_BODIES = sum(_fields(BarrierBody), ())
BARRIER_FIELDS, WAITING_FIELDS = _OF_BODIES[:-1], _OF_BODIES[-1:]


class Span(NamedTuple):
    """The bytes of a field in its header, and the mask of its bits in them; 0: all."""

    at: int
    size: int
    mask: int


def spans(fields: Sequence[HeaderField] = HEADER_FIELDS) -> dict[str, Span]:
    """Return where each field of the header is, by its name in lower case."""
    found, begin = {}, 0
    for name, bits in fields:
        end = begin + bits
        at, last = begin // 8, (end - 1) // 8
        mask = ((1 << bits) - 1) << (8 * (last + 1) - end)
        size = last - at + 1
        found[name.lower()] = Span(at, size, 0 if bits == 8 * size else mask)
        begin = end
    return found


_ATTRIBUTES = [
    HeaderField(name, sum(bits for _, bits in parts))
    for name, parts in zip(Header._fields, _fields(Header), strict=True)
]
_SPANS = spans(_ATTRIBUTES)
# The attributes whose values are not the codes on the wire: the values by code.
_VALUES: Mapping[str, Sequence[Any]] = {
    **dict.fromkeys(("is_ack", "is_fetch", "ecn", "resend", "echo"), (False, True)),
    "kind": [Kind(code) if code in Kind._value2member_map_ else code for code in range(16)],
    "bits": BITS,
}
_WORDS = {8: "B", 16: "H", 32: "I"}


def _in_words(fields: Sequence[HeaderField]) -> list[Sequence[HeaderField]] | None:
    """Cut fields into words that `struct` knows; None: there is no way."""
    for end in range(1, len(fields) + 1):
        if sum(bits for _, bits in fields[:end]) in _WORDS:
            rest = _in_words(fields[end:]) if end < len(fields) else []
            if rest is not None:
                return [fields[:end], *rest]
    return None


def _compiled() -> tuple[Callable[[Header], bytes], Callable[[bytes | memoryview, int], Header]]:
    """Return functions that pack a header, and parse one at an offset, made from the table.

    A loop over the table would take almost twice as long, and each packet needs one of them.
    """
    packed, parsed, form = [], [], ">"
    for index, word in enumerate(_in_words(_ATTRIBUTES) or []):
        left = sum(bits for _, bits in word)
        form += _WORDS[left]
        parts = []
        for name, bits in word:
            left -= bits
            code = f"BITS.index(header.{name})" if name == "bits" else f"header.{name}"
            parts.append(f"{code} << {left}" if left else code)
            value = f"words[{index}] >> {left} & {(1 << bits) - 1}"
            parsed.append(f"VALUES['{name}'][{value}]" if name in _VALUES else value)
        packed.append(" | ".join(parts))
    words = struct.Struct(form)
    known = {"BITS": BITS, "VALUES": _VALUES, "pack": words.pack, "make": Header._make}
    pack = eval(f"lambda header: pack({', '.join(packed)})", known)  # noqa: S307
    make = eval(f"lambda words: make(({', '.join(parsed)}))", known)  # noqa: S307
    return pack, lambda frame, at: make(words.unpack_from(frame, at))


_pack, _parse = _compiled()


def write_fields(headers: NDArray[np.uint8], **fields: Any) -> None:  # noqa: ANN401
    """Write some fields of headers, uint8[S, 26], in the codes of the wire.

    `fields`: by the attributes of ``Header``, a number for all, or integers[S].
    """
    for name, values in fields.items():
        at, size, mask = _SPANS[name]
        if mask:
            low = (mask & -mask).bit_length() - 1
            headers[:, at] &= 0xFF ^ mask
            headers[:, at] |= np.asarray(values << low, dtype=np.uint8)
        elif size == 3:
            headers[:, at] = values >> 16
            headers[:, at + 1 : at + size].view(">u2")[:, 0] = values & 0xFFFF
        else:
            headers[:, at : at + size].view(f">u{size}")[:, 0] = values


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
# The rules of operations that fragments have from some number on, the last ones first.
_RULES = sorted({each.rule.first_fragment: each.rule for each in Operation}.items(), reverse=True)


def most_fragments(operation: Operation) -> int:
    """Return how many fragments a row of an operation may have."""
    first, end = operation.rule.first_fragment, 1 << dict(HEADER_FIELDS)["Fragment"]
    return min((other for other in dict(_RULES) if other > first), default=end) - first


LAST_FRAGMENT = most_fragments(Operation.SUM) - 1
# The widest row in frames that every switch can make.
WIDEST = WIDEST_ANSWER * (LAST_FRAGMENT + 1)

ETHERNET_BYTES = 14
IPV4_BYTES = 20
HEADER_BYTES = sum(field.bits for field in HEADER_FIELDS) // 8
CHECKED_BYTES = HEADER_BYTES - _CHECKSUM.bits // 8
BARRIER_BYTES = sum(field.bits for field in BARRIER_FIELDS) // 8
HEARTBEATS_BYTES = sum(field.bits for field in WAITING_FIELDS) // 8

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


def fragment_words(
    width: int, lanes: int, rows: int = 1, operation: Operation = Operation.SUM
) -> tuple[int, ...]:
    """Return the words of a row's fragments in headers, ascending, in pool 0.

    `rows`: of a frame, which all have `lanes` numbers at most.
    """
    widths = fragment_lanes(width, lanes, rows)
    return tuple(
        number << _NUMBER_AT | PLANNED_LANES.index(each * rows)
        for number, each in enumerate(widths, operation.rule.first_fragment)
    )


def fragment_number(word: int) -> int:
    """Return the number of a fragment, from 0."""
    return word >> _NUMBER_AT


def combine_of(word: int) -> np.ufunc:
    """Return how two numbers of a fragment, uint32, become one."""
    number = fragment_number(word)
    return next(rule.combine for first, rule in _RULES if number >= first)


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


class ParsedHeader(NamedTuple):
    """The fields of a frame, valid or not; `header.kind` is a number if the kind is unknown."""

    header: Header
    checksum: int


def is_plain(frame: bytes | memoryview, protocol: int) -> bool:
    """Return whether a frame has a whole header of a protocol, and IPv4 no options or fragments."""
    if len(frame) < BODY_AT or frame[12] != 8 or frame[13] != 0 or frame[14] != 0x45:
        return False
    return frame[23] == protocol and not (frame[20] & _FRAGMENT_BITS or frame[21])


def parse_header(frame: bytes | memoryview) -> ParsedHeader:
    """Read the fields of a frame that is plain."""
    checksum = int.from_bytes(frame[HEADER_AT + CHECKED_BYTES : BODY_AT], "big")
    return ParsedHeader(_parse(frame, HEADER_AT), checksum)


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
    header, checksum = parse_header(frame)
    size = body_bytes(header)
    if header.version != VERSION or size is None or len(frame) < BODY_AT + size:
        return None
    return header if frame_checksum(frame, size) == checksum else None


_BODY_BYTES = {
    int(kind): (BARRIER_BYTES if kind in BARRIER_KINDS else 0)
    + HEARTBEATS_BYTES * (kind in HEARTBEAT_KINDS)
    for kind in Kind
    if kind not in LANE_KINDS
}
