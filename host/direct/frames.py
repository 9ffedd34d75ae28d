# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Frames between workers: the SwitchGNN header under another protocol number.

The switch forwards them by their MAC address like any packet. docs/transports.md says what
the fields mean here.
"""

import zlib
from typing import NamedTuple

from switchgnn.base.network import Station
from switchgnn.host.wire.addresses import ECN_CAPABLE, ipv4_envelope
from switchgnn.host.wire.header import (
    BODY_AT,
    CHECKED_BYTES,
    ETHERNET_BYTES,
    HEADER,
    HEADER_AT,
    HEADER_BYTES,
    VERSION,
    Header,
    Kind,
)

# The other protocol number for experiments (RFC 3692).
PROTOCOL = 254
# Frames that are acknowledged together; the bits of an ACK.
GROUP = 8
ALL_OF_A_GROUP = (1 << GROUP) - 1
# The question of an ACK that no question asked for.
UNASKED = 0xFFFF
CONTROL_FRAME_BYTES = BODY_AT
# `Level` of a FEATURE that has parts of any rows, and not a fragment of one.
PACKED = 1

_ECN_AT = 15
_MARKED = 3
_LENGTH_AT = ETHERNET_BYTES + 2
_BEFORE_BODY = BODY_AT - ETHERNET_BYTES
_CONTROL_BYTES = {Kind.ACK: 0, Kind.RECALL: 0, Kind.DONE: 0}


class Packet(NamedTuple):
    """What a sound frame says.

    Attributes:
        kind: FEATURE (rows, or parts of them), ACK, RECALL (what of a group has arrived?) or DONE
            (everything has arrived, and I leave).
        sender: the worker that sent it.
        number: FEATURE: of the frame, from 0 for each receiver and round. ACK, RECALL: of
            the first frame of the group.
        tag: ACK: one bit for each frame of the group. Otherwise the schedule's mark.
        question: ACK, RECALL: which question it is or answers; 0 is a FEATURE with `echo`.
        echo: FEATURE: an ACK is wanted.
        marked: FEATURE: a queue on the way was long. ACK: one was, for the frames it covers.
        round: the round.
        body: FEATURE: as long as IPv4 says.
    """

    kind: Kind
    sender: int
    number: int
    tag: int
    question: int
    echo: bool
    marked: bool
    round: int
    body: memoryview


def unpack(frame: memoryview, receiver: int) -> Packet | None:
    """Parse a frame; None when it is no sound frame for this receiver.

    Sound means: Ethernet, IPv4 without options and no fragment, our protocol and version, a
    known kind, a whole body, and a right checksum.
    """
    if len(frame) < BODY_AT or frame[12] != 8 or frame[13] != 0 or frame[14] != 0x45:
        return None
    if frame[23] != PROTOCOL or frame[20] & 0x3F or frame[21]:
        return None
    number, tag, pair, _, flags, extension, fragment, _, round_number, checksum = (
        HEADER.unpack_from(frame, HEADER_AT)
    )
    size = data_bytes(frame) if flags & 0xF == Kind.FEATURE else _CONTROL_BYTES.get(flags & 0xF)
    if extension >> 4 != VERSION or size is None or len(frame) < BODY_AT + size:
        return None
    body = frame[BODY_AT : BODY_AT + size]
    if zlib.crc32(body, zlib.crc32(frame[HEADER_AT : HEADER_AT + CHECKED_BYTES])) != checksum:
        return None
    if pair & 0xFF != receiver:
        return None
    kind = Kind(flags & 0xF)
    marked = bool(flags & 0x20) or (kind is Kind.FEATURE and frame[_ECN_AT] & 3 == _MARKED)
    echo = bool(extension & 1)
    return Packet(kind, pair >> 8, number, tag, fragment, echo, marked, round_number, body)


def data_bytes(frame: bytes | memoryview) -> int | None:
    """Return how many bytes of rows a FEATURE has, as IPv4 tells its length; None: it cannot be.

    Args:
        frame: 60 bytes at least.
    """
    size = (frame[_LENGTH_AT] << 8 | frame[_LENGTH_AT + 1]) - _BEFORE_BODY
    return size if size > 0 and size % 4 == 0 else None


def pair_number(sender: int, receiver: int) -> int:
    """Return both workers in 16 bits."""
    return sender << 8 | receiver


class Envelopes:
    """Ethernet and IPv4 headers from one worker to the others.

    Args:
        worker: the sender.
        stations: all workers.
    """

    def __init__(self, worker: int, stations: tuple[Station, ...]) -> None:
        self._worker = worker
        self._stations = stations
        own = stations[worker]
        # As pure acknowledgements of TCP are, these are not to be marked.
        self._control = [
            ipv4_envelope(own, peer, HEADER_BYTES, protocol=PROTOCOL, ecn=0) for peer in stations
        ]

    def data(self, peer: int, body_bytes: int) -> bytes:
        """Return the 34 bytes before a FEATURE with a body of that length."""
        return ipv4_envelope(
            self._stations[self._worker],
            self._stations[peer],
            HEADER_BYTES + body_bytes,
            protocol=PROTOCOL,
            ecn=ECN_CAPABLE,
        )

    def control(self, peer: int, header: Header) -> bytes:
        """Return a whole frame of 60 bytes."""
        to = pair_number(self._worker, peer)
        return self._control[peer] + header._replace(block_id=to).pack(b"")
