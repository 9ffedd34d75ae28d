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
_BODY_BYTES: dict[int, int] = {
    Kind.FEATURE: 128,
    Kind.SUM: 128,
    Kind.DONE: 28,
    Kind.ADVANCE: 28,
    Kind.WAITING: 44,
}


def body_bytes(kind: int) -> int:
    """Return how long the body of a kind is; kinds that do not exist have none."""
    return _BODY_BYTES.get(kind, 0)


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
    end = BODY_AT + body_bytes(frame[KIND_AT] & KIND_MASK)
    checked = zlib.crc32(frame[HEADER_AT:CHECKSUM_AT])
    frame[CHECKSUM_AT:BODY_AT] = zlib.crc32(frame[BODY_AT:end], checked).to_bytes(4, "big")
