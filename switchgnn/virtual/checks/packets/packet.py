# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What checks read from frames, with nothing of the product but the layout."""

import struct
import zlib
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.wire.header import PROTOCOL
from switchgnn.virtual.network.fields import LANE_KINDS, body_bytes, number_of, words_of

_HEADER = struct.Struct(">IIHHBBHHII")
_AT = 34
_CHECKED = _AT + _HEADER.size - 4
_BODY = _AT + _HEADER.size
_KIND_AT = _AT + 12
_OFFSET, _PROTOCOL_AT = slice(20, 22), 23
# EtherType of IPv4, and the first byte of a header without options.
_ENVELOPE, _PLAIN_IPV4 = slice(12, 15), b"\x08\x00\x45"
# More fragments, and the offset.
_FRAGMENT_BITS = 0x3FFF
_FETCHED, _RESENT, _ROUND = 0x40, 0x10, 0xFFFFFF
# In the byte behind the flags: version, level and this bit.
_ECHO = 0x01


class Packet(NamedTuple):
    """The fields of a packet, with Count as ``number``; see docs/protocol.md.

    Attributes:
        frame: the frame that holds it.
        fragment: the word of its number and its width.
        place: round, block and fragment.
        resent: whether it is a raw feature for one destination.
    """

    source: int
    destination: int
    block: int
    number: int
    flags: int
    level: int
    fragment: int
    group: int
    session_and_round: int
    checksum: int
    frame: bytes
    place: tuple[int, int, int]
    resent: bool

    @property
    def envelope(self) -> bytes:
        """What is in front of the header."""
        return envelope_of(self.frame)

    @property
    def on_request(self) -> bool:
        """Whether it answers a RECALL or a FETCH."""
        return bool(self.flags & _FETCHED)

    @property
    def echo(self) -> bool:
        """Whether a FEATURE asks for an ACK, or a DONE announces early features."""
        return bool(self.level & _ECHO)

    @property
    def body(self) -> bytes:
        """What is behind the header."""
        return self.frame[_BODY:]


def envelope_of(frame: bytes) -> bytes:
    """Return what is in front of the header of a frame."""
    return frame[:_AT]


def kind_in(frame: bytes) -> int:
    """Return the kind of packet that a frame says it holds."""
    return frame[_KIND_AT] & 0xF if len(frame) >= _BODY else 0


def read_packet(frame: bytes) -> Packet:
    """Return the packet in a frame that is long enough for one."""
    fields = _HEADER.unpack_from(frame, _AT)
    _, _, block, _, flags, _, fragment, _, number, _ = fields
    place = number & _ROUND, block, fragment
    return Packet._make((*fields, frame, place, bool(flags & _RESENT)))


def is_wrapped(packet: Packet) -> bool:
    """Tell whether a host takes what is in front of the header for that of a packet."""
    frame = packet.frame
    return (
        frame[_ENVELOPE] == _PLAIN_IPV4
        and frame[_PROTOCOL_AT] == PROTOCOL
        and not int.from_bytes(frame[_OFFSET], "big") & _FRAGMENT_BITS
    )


def is_sound(packet: Packet) -> bool:
    """Tell whether checksum and length are right; what is in front of the header is not checked."""
    frame = packet.frame
    kind = packet.flags & 0xF
    size = body_bytes(kind, packet.fragment)
    end = _BODY + size
    if kind in LANE_KINDS and not size:
        return False
    checked = zlib.crc32(frame[_BODY:end], zlib.crc32(frame[_AT:_CHECKED]))
    return len(frame) >= end and checked == packet.checksum


def name_of(place: tuple[int, int, int]) -> str:
    """Return round, block and fragment as words."""
    return f"round {place[0]}, block {place[1]}, fragment {number_of(place[2])}"


class Fragments:
    """How rows are cut into fragments.

    Args:
        width: columns of the rows.
        lanes: of the widest frame.

    Attributes:
        words: of all fragments of a row.
    """

    def __init__(self, width: int, lanes: int) -> None:
        self.words = words_of(width, lanes)
        sizes = [body_bytes(LANE_KINDS[0], word) for word in self.words]
        ends = list(accumulate(sizes, initial=0))
        self._row_bytes = ends[-1]
        self._places = dict(zip(self.words, pairwise(ends), strict=True))

    def rows_of(self, values: NDArray[np.int64]) -> bytes:
        """Return rows as they are on the wire, one behind the other, each of whole fragments.

        Args:
            values: int64[n, F], integers of the scale of their exchange.

        Returns:
            n times the bytes of the fragments of F elements.
        """
        rows, width = values.shape
        padded = np.zeros((rows, self._row_bytes // 4), dtype=">i4")
        padded[:, :width] = values
        return padded.tobytes()

    def holds(self, packet: Packet, rows: bytes, row: int) -> bool:
        """Tell whether a packet has its fragment of a row.

        Args:
            packet: a feature or a sum.
            rows: of `rows_of`.
            row: which of them.

        Returns:
            Whether its body is that of the row.
        """
        if packet.fragment not in self._places:
            return False
        begin, end = (row * self._row_bytes + at for at in self._places[packet.fragment])
        return packet.body[: end - begin] == rows[begin:end]
