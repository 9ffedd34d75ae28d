# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The SwitchGNN header: the paper's fields (section 4), then our extension.

``p4src/headers.p4`` defines the same layout and ``docs/protocol.md`` draws it.
Here control packets are packed and parsed one at a time; features go through
:mod:`switchgnn.host.innetwork.schedule`, many at a time.
"""

import struct
import zlib
from enum import IntEnum
from typing import NamedTuple

from switchgnn.planner.lanes import BANK_LANES, fragment_lanes
from switchgnn.planner.lanes import LANES as PLANNED_LANES

ETHERTYPE_IPV4 = 0x0800
PROTOCOL = 253
VERSION = 4
# A frame carries 8 << code numbers; the code is in the lower bits of the word of the fragment.
_CODE_BITS = 3
_CODE_MASK = (1 << _CODE_BITS) - 1
_LANE_BYTES = 4
# Bits of a number in a body, by their code in the header; 0: all are 0, and there is no body.
BITS = (32, 16, 8, 0)
BITS_AT = 2
BITS_MASK = 3
# A shorter body of narrow numbers does not exist: they go with more bits.
LEAST_NARROW_BYTES = 32
# Of a whole bank; what a fragment of one row has between hosts that do not pack.
LANES = BANK_LANES
FRAGMENT_BYTES = _LANE_BYTES * LANES
LAST_FRAGMENT = (1 << 16 - _CODE_BITS) - 1
# The widest row in frames of a bank.
WIDEST = LANES * (LAST_FRAGMENT + 1)

ETHERNET_BYTES = 14
IPV4_BYTES = 20
HEADER = struct.Struct(">IIHHBBHHII")
HEADER_BYTES = HEADER.size
CHECKED_BYTES = HEADER_BYTES - 4
BARRIER = struct.Struct(">III16s")
WAITING = struct.Struct(">16s")

HEADER_AT = ETHERNET_BYTES + IPV4_BYTES
BODY_AT = HEADER_AT + HEADER_BYTES
KIND_AT = HEADER_AT + 12
# More fragments, and the upper bits of the offset.
_FRAGMENT_BITS = 0x3F
KIND_MASK = 0xF
FEATURE_FRAME_BYTES = BODY_AT + FRAGMENT_BYTES
BARRIER_FRAME_BYTES = BODY_AT + BARRIER.size
OPENING_BLOCK = 0
# Of the number of a session a packet carries the lower bits.
SESSION_MASK = 0xFF
_ROUND_BITS = 24
LAST_ROUND = (1 << _ROUND_BITS) - 1


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


# The length of their bodies follows from the word of the fragment.
LANE_KINDS = (Kind.FEATURE, Kind.SUM, Kind.REDUCE, Kind.REDUCED)
# Those whose numbers may have fewer than 32 bits.
NARROW_KINDS = (Kind.FEATURE, Kind.SUM)
# The body of a barrier, alone or with pulses.
PULSE_KINDS = (Kind.WAITING, Kind.REDUCING)
BARRIER_KINDS = (Kind.DONE, Kind.ADVANCE, *PULSE_KINDS)


class Refusal(IntEnum):
    """`Count` of a WAITING: why the switch rejects a `done`."""

    NONE = 0
    INCARNATION = 1
    MAGNITUDE = 2
    TAG = 3
    NEXT = 4


# `Dst_id` of a refusal without a responsible worker.
NOBODY = 0xFFFFFFFF


def fragments_of(width: int) -> int:
    """Return how many frames of LANES a row of ``width`` elements takes."""
    return -(-width // LANES)


def fragment_words(width: int, lanes: int) -> tuple[int, ...]:
    """Return the words of a row's fragments in headers, ascending."""
    return tuple(
        number << _CODE_BITS | PLANNED_LANES.index(each)
        for number, each in enumerate(fragment_lanes(width, lanes))
    )


def fragment_number(word: int) -> int:
    """Return the number of a fragment, from 0."""
    return word >> _CODE_BITS


def width_code(word: int) -> int:
    """Return the code of a fragment's width."""
    return word & _CODE_MASK


def lanes_of(word: int) -> int:
    """Return how many numbers a fragment carries; 0 for an invalid word."""
    code = width_code(word)
    return PLANNED_LANES[code] if code < len(PLANNED_LANES) else 0


def payload_bytes(word: int, bits: int = 32) -> int:
    """Return the bytes of a fragment's numbers of some bits each."""
    return lanes_of(word) * bits // 8


def allowed_bits(lanes: int) -> tuple[int, ...]:
    """Return the bits that each number of a fragment may have, ascending."""
    narrow = (8, 16)
    return (0, *(bits for bits in narrow if lanes * bits // 8 >= LEAST_NARROW_BYTES), 32)


def bits_code(bits: int) -> int:
    """Return the code in the header of the bits of a number."""
    return BITS.index(bits)


def feature_frame_bytes(lanes: int, bits: int = 32) -> int:
    """Return the bytes of a FEATURE or SUM with that many numbers of some bits each."""
    return BODY_AT + lanes * bits // 8


def session_and_round(session: int, round_number: int) -> int:
    """Return both in the 32 bits of the header."""
    return (session & SESSION_MASK) << _ROUND_BITS | round_number


class Header(NamedTuple):
    """One SwitchGNN header; names and widths of the fields are those of the P4 program.

    `fragment` is the word with the number and the width of a fragment, see `fragment_words`; `bits`
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

    def pack(self, body: bytes) -> bytes:
        """Return the header with the checksum over itself and ``body``, then ``body``."""
        flags = self.is_ack << 3 | self.is_fetch << 2 | self.ecn << 1 | self.resend
        head = HEADER.pack(
            self.src_id,
            self.dst_id,
            self.block_id,
            self.count,
            flags << 4 | self.kind,
            VERSION << 4 | bits_code(self.bits) << BITS_AT | self.level << 1 | self.echo,
            self.fragment,
            self.feature_group,
            session_and_round(self.session, self.round),
            0,
        )[:CHECKED_BYTES]
        return head + zlib.crc32(body, zlib.crc32(head)).to_bytes(4, "big") + body


class BarrierBody(NamedTuple):
    """The body of DONE, ADVANCE, WAITING and REDUCING.

    Attributes:
        magnitude: float32 bits of the largest magnitude of the round; in a REDUCING the upper 8
            bits of the newest fragment's number.
        plan: first 32 bits of the plan's digest.
        round: the round of the switch; in a REDUCING the lower 32 bits of the newest number.
        workers: bit w: worker w is done; in a DONE the sender's pulse, in the same bit.
        pulses: the latest pulse of each worker in a WAITING or REDUCING; otherwise None.
    """

    magnitude: int = 0
    plan: int = 0
    round: int = 0
    workers: int = 0
    pulses: int | None = None

    def pack(self) -> bytes:
        """Return the 28 bytes on the wire, 44 of a WAITING or REDUCING."""
        workers = self.workers.to_bytes(16, "big")
        body = BARRIER.pack(self.magnitude, self.plan, self.round, workers)
        if self.pulses is None:
            return body
        return body + WAITING.pack(self.pulses.to_bytes(16, "big"))

    @classmethod
    def unpack(cls, frame: bytes | memoryview, kind: Kind) -> "BarrierBody":
        """Parse the body of a sound frame of a kind."""
        magnitude, plan, round_number, workers = BARRIER.unpack_from(frame, BODY_AT)
        pulses = None
        if kind in PULSE_KINDS:
            (latest,) = WAITING.unpack_from(frame, BODY_AT + BARRIER.size)
            pulses = int.from_bytes(latest, "big")
        return cls(magnitude, plan, round_number, int.from_bytes(workers, "big"), pulses)


def unpack_header(frame: bytes | memoryview) -> Header | None:
    """Parse the header of a frame; None when it is not a sound SwitchGNN frame.

    Sound means: Ethernet, IPv4 without options and no fragment, our protocol and
    version, a known kind, a whole body, and a right checksum.
    """
    if len(frame) < BODY_AT or frame[12] != 8 or frame[13] != 0 or frame[14] != 0x45:
        return None
    if frame[23] != PROTOCOL or frame[20] & _FRAGMENT_BITS or frame[21]:
        return None
    src, dst, block, count, flags, extension, fragment, group, number, checksum = (
        HEADER.unpack_from(frame, HEADER_AT)
    )
    kind, bits = flags & 0xF, BITS[extension >> BITS_AT & BITS_MASK]
    known, body = kind in _BODY_BYTES, _BODY_BYTES.get(kind, 0)
    if kind in LANE_KINDS:
        known, body = _fits(kind, fragment, bits), payload_bytes(fragment, bits)
    end = BODY_AT + body
    if extension >> 4 != VERSION or not known or len(frame) < end:
        return None
    checked = zlib.crc32(frame[HEADER_AT : HEADER_AT + CHECKED_BYTES])
    if zlib.crc32(frame[BODY_AT:end], checked) != checksum:
        return None
    return Header(
        kind=_KINDS[kind],
        src_id=src,
        dst_id=dst,
        block_id=block,
        count=count,
        is_ack=bool(flags & 0x80),
        is_fetch=bool(flags & 0x40),
        ecn=bool(flags & 0x20),
        resend=bool(flags & 0x10),
        bits=bits,
        level=extension >> 1 & 1,
        echo=bool(extension & 1),
        fragment=fragment,
        feature_group=group,
        session=number >> _ROUND_BITS,
        round=number & LAST_ROUND,
    )


def _fits(kind: int, word: int, bits: int) -> bool:
    """Return whether a body of this kind may have these numbers; those of an all-reduce have 32."""
    lanes = lanes_of(word)
    return lanes > 0 and bits in (allowed_bits(lanes) if kind in NARROW_KINDS else (32,))


_KINDS = {int(kind): kind for kind in Kind}
_BODY_BYTES = {
    int(Kind.DONE): BARRIER.size,
    int(Kind.ADVANCE): BARRIER.size,
    **{int(kind): BARRIER.size + WAITING.size for kind in PULSE_KINDS},
    **{int(kind): 0 for kind in (Kind.ACK, Kind.RECALL, Kind.MISSING, Kind.FETCH, Kind.NOTICE)},
}
