# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The fields of frames as places in their bytes, so that any value can be written."""

import zlib

from switchgnn.host.wire.header import BODY_AT, CHECKED_BYTES, HEADER_AT, KIND_AT, KIND_MASK, Kind

ETHERTYPE_AT = 12
VERSION_IHL_AT = 14
LENGTH_AT = 16
OFFSET_AT = 20
PROTOCOL_AT = 23
EXTENSION_AT = HEADER_AT + 13
FRAGMENT_AT = HEADER_AT + 14
ROUND_AT = HEADER_AT + 18
CHECKSUM_AT = HEADER_AT + CHECKED_BYTES

# Every header field by name: where it is, and its bytes.
FIELDS = {
    "src_id": (HEADER_AT, 4),
    "dst_id": (HEADER_AT + 4, 4),
    "block_id": (HEADER_AT + 8, 2),
    "count": (HEADER_AT + 10, 2),
    "flags_kind": (KIND_AT, 1),
    "version_level_echo": (EXTENSION_AT, 1),
    "fragment": (FRAGMENT_AT, 2),
    "group": (HEADER_AT + 16, 2),
    "round": (ROUND_AT, 4),
}
_WIDTH_BITS, _NARROWEST, _WIDEST_CODE = 3, 8, 5
_NUMBER_BYTES = 4
# By plain numbers: checks ask for each frame.
LANE_KINDS = (int(Kind.FEATURE), int(Kind.SUM))
_BODY_BYTES: dict[int, int] = {
    Kind.DONE: 28,
    Kind.ADVANCE: 28,
    Kind.WAITING: 44,
}


def body_bytes(kind: int, word: int) -> int:
    """Return how long a body is; kinds and widths that do not exist have none.

    Args:
        kind: of the packet.
        word: the 16 bits of its fragment and its width.
    """
    if kind not in LANE_KINDS:
        return _BODY_BYTES.get(kind, 0)
    code = word & (1 << _WIDTH_BITS) - 1
    return _NARROWEST * _NUMBER_BYTES << code if code <= _WIDEST_CODE else 0


def body_end(frame: bytes | bytearray) -> int:
    """Return where the body of a frame should end."""
    return BODY_AT + body_bytes(frame[KIND_AT] & KIND_MASK, read_field(frame, "fragment"))


def words_of(width: int, lanes: int) -> tuple[int, ...]:
    """Return the words of the fragments of a row.

    Args:
        width: columns of the row.
        lanes: of the widest frame.
    """
    sizes = [min(lanes, width - begin) for begin in range(0, width, lanes)]
    codes = [max(0, (size - 1).bit_length() - _WIDTH_BITS) for size in sizes]
    return tuple(number << _WIDTH_BITS | code for number, code in enumerate(codes))


def number_of(word: int) -> int:
    """Return the number of a fragment."""
    return word >> _WIDTH_BITS


def write_header(frame: bytearray, **values: int) -> None:
    """Write header fields by name."""
    for name, value in values.items():
        at, size = FIELDS[name]
        frame[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "big")


def read_field(frame: bytes | bytearray, name: str) -> int:
    """Return the value of a header field."""
    at, size = FIELDS[name]
    return int.from_bytes(frame[at : at + size], "big")


def seal(frame: bytearray) -> None:
    """Make the CRC right, if the frame is long enough to have one."""
    if len(frame) < BODY_AT:
        return
    end = body_end(frame)
    checked = zlib.crc32(frame[HEADER_AT:CHECKSUM_AT])
    frame[CHECKSUM_AT:BODY_AT] = zlib.crc32(frame[BODY_AT:end], checked).to_bytes(4, "big")
