"""The framing of rows between two workers: packed up to an MTU, or one by one.

All rows of a pair and round are one run of bytes, in the order of the schedule. It is cut into
frames of one length; the last one may be shorter. Both ends know how many rows there are and how
wide they are, so a frame does not name its rows.
"""

from dataclasses import dataclass, replace

import numpy as np

from switchgnn.base.array_types import Int64s
from switchgnn.host.base.congestion import SEGMENT
from switchgnn.host.base.errors import FramingError
from switchgnn.host.base.pace import Pace
from switchgnn.host.wire import header as wire
from switchgnn.host.wire.link import LARGEST_FRAME
from switchgnn.planner.base.arrays import indptr_of

# ``--mtu fragment``: one padded fragment of one row in each frame.
FRAGMENT = "fragment"
USUAL_MTU = 1500
_LANE_BYTES = 4
_HEADERS = wire.IPV4_BYTES + wire.HEADER_BYTES
LEAST_MTU = _HEADERS + _LANE_BYTES
LARGEST_MTU = LARGEST_FRAME - wire.ETHERNET_BYTES


def fragments_of(width: int) -> int:
    """Return how many frames of LANES a row of ``width`` elements takes."""
    return -(-width // wire.LANES)


@dataclass(frozen=True)
class Framing:
    """What a frame between hosts carries; `mtu`: bytes of the largest IP packet.

    None: one padded fragment of one row in each frame. FramingError: the MTU is out of range.
    """

    mtu: int | None = USUAL_MTU

    def __post_init__(self) -> None:
        if self.mtu is not None and not LEAST_MTU <= self.mtu <= LARGEST_MTU:
            raise FramingError(
                f"An MTU of {self.mtu} bytes cannot be used between hosts: choose {LEAST_MTU} to "
                f"{LARGEST_MTU:,}, or {FRAGMENT}."
            )

    @classmethod
    def parse(cls, text: str) -> "Framing":
        """Read what ``--mtu`` takes, a number of bytes or ``fragment``; else raise FramingError."""
        if text == FRAGMENT:
            return cls(None)
        # More digits than any packet has bytes are no number for us.
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise FramingError(
                f"The MTU {text!r} is no number of bytes: write one, as {USUAL_MTU}, or {FRAGMENT}."
            )
        return cls(int(text))

    @property
    def told(self) -> int | str:
        """The MTU as reports name it: a number, or ``fragment``."""
        return FRAGMENT if self.mtu is None else self.mtu

    @property
    def packed(self) -> bool:
        """Whether a frame may have parts of several rows."""
        return self.mtu is not None

    @property
    def payload_bytes(self) -> int:
        """Bytes of rows in a full frame, a multiple of 4."""
        if self.mtu is None:
            return wire.FRAGMENT_BYTES
        return (self.mtu - _HEADERS) // _LANE_BYTES * _LANE_BYTES

    @property
    def packet_bytes(self) -> int:
        """Bytes that an IP packet has at most, for which links must have room."""
        return _HEADERS + wire.FRAGMENT_BYTES if self.mtu is None else self.mtu

    def lanes(self, width: int) -> int:
        """Return how many numbers a row of ``width`` takes on the wire."""
        return width if self.packed else fragments_of(width) * wire.LANES

    def frames(self, rows: Int64s, width: int) -> Int64s:
        """Return how many frames some numbers of rows take, each in a run of its own."""
        return -(-self._run_bytes(rows, width) // self.payload_bytes)

    def frame_bytes(self, rows: Int64s, width: int) -> Int64s:
        """Return the bytes of these frames, headers and Ethernet included."""
        return wire.BODY_AT * self.frames(rows, width) + self._run_bytes(rows, width)

    def paced(self, pace: Pace) -> Pace:
        """Return a pace whose window has no more bytes than one of frames of the usual MTU.

        BMv2's rings and marking queues count frames, sockets and shaped links count bytes, so the
        window is bounded in both.
        """
        usual, full = wire.ETHERNET_BYTES + USUAL_MTU, wire.ETHERNET_BYTES + self.packet_bytes
        return replace(pace, window=min(pace.window, max(1, pace.window * usual // full)))

    @property
    def segment(self) -> float:
        """By how many frames a window grows: as much as TCP's, or as for fragments."""
        full = wire.ETHERNET_BYTES + self.packet_bytes
        return min(SEGMENT, max(1.0, SEGMENT * wire.FEATURE_FRAME_BYTES / full))

    def _run_bytes(self, rows: Int64s, width: int) -> Int64s:
        return _LANE_BYTES * self.lanes(width) * np.asarray(rows, dtype=np.int64)


class Runs:
    """The runs of all workers in a round and their frames, numbered through all workers.

    `begin`: int64[W + 1], where each run begins, in bytes, as if they followed each other. `first`:
    int64[W + 1], the first frame of each worker. `rows`, `frames`: how many there are.
    """

    def __init__(self, framing: Framing, width: int, indptr: Int64s) -> None:
        self.framing, self.width, self.indptr = framing, width, indptr
        self.lanes = framing.lanes(width)
        self.row_bytes, self.payload_bytes = _LANE_BYTES * self.lanes, framing.payload_bytes
        self.begin = self.row_bytes * indptr
        self.first = indptr_of(framing.frames(np.diff(indptr), width))
        self.rows, self.frames = int(indptr[-1]), int(self.first[-1])

    def span(self, peer: Int64s, number: Int64s) -> tuple[Int64s, Int64s]:
        """Return where frames begin and end in the runs, in bytes."""
        begin = self.begin[peer] + number * self.payload_bytes
        return begin, np.minimum(begin + self.payload_bytes, self.begin[peer + 1])

    def rows_of_frames(self) -> Int64s:
        """Return int64[frames]: how many rows each frame has a part of."""
        everything = np.arange(self.frames)
        peer = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.first))
        begin, end = self.span(peer, everything - self.first[peer])
        return (end - 1) // self.row_bytes - begin // self.row_bytes + 1

    def frames_of_rows(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Return the first frame that has a part of each of some rows, and how many have one."""
        peer = np.searchsorted(self.indptr, rows, side="right") - 1
        begin = (rows - self.indptr[peer]) * self.row_bytes
        first = begin // self.payload_bytes
        last = (begin + self.row_bytes - 1) // self.payload_bytes
        return self.first[peer] + first, last - first + 1
