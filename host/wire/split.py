# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One link for two exchanges, which tell their frames apart by the IPv4 protocol.

A frame is received once, by whichever exchange waits for one, and kept for the other if it is the
other's. Faults, recordings and counters belong to the link below, so they see each frame once.
All runs in the thread that exchanges.
"""

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.host.wire.batches import FrameBatch, FrameRows
from switchgnn.host.wire.header import ETHERNET_BYTES
from switchgnn.host.wire.link import Link, Traffic

_PROTOCOL_AT = ETHERNET_BYTES + 9
# As many as an exchange over the switch keeps; later ones are lost, as in a full socket.
_KEPT_AT_MOST = 1 << 17
# Seconds after which the second exchange has its turn, while frames of the first one never pause.
_TURN = 0.001
# For frames that were kept; it grows where that is not enough.
_ROOM_BYTES, _ROOM_FRAMES = 1 << 20, 1 << 10

Meanwhile = Callable[[], float]


class SplitLink:
    """Shares a link between two exchanges.

    Args:
        link: carries the frames of both; the caller closes it.
        protocol: the IPv4 protocol of the second exchange. The first one gets everything else.
        clock: what time it is where the link is.

    Attributes:
        first: the link of the first exchange.
        second: that of the second one.
    """

    def __init__(self, link: Link, protocol: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self.first = PartLink(self, link, clock)
        self.second = PartLink(self, link, clock)
        self._link = link
        self._protocol = protocol

    def receive(self, part: "PartLink", seconds: float) -> None:
        """Receive frames for both parts.

        Args:
            part: looks at its frames before anything else is received.
            seconds: how long to wait for a frame at most.

        Raises:
            LinkError: the link is gone.
        """
        self.first.keep_what_is_left()
        self.second.keep_what_is_left()
        batch = self._link.receive_batch(seconds)
        if batch is None:
            return
        of_second = self._of_second(batch)
        for each, own in ((self.first, ~of_second), (self.second, of_second)):
            places = batch.first + np.flatnonzero(own)
            if len(places):
                each.take(batch, places, now=each is part)

    def _of_second(self, batch: FrameBatch) -> NDArray[np.bool_]:
        """Return which of a batch's frames are the second part's."""
        begins = batch.begins[batch.first : batch.count].astype(np.int64)
        whole = batch.sizes[batch.first : batch.count] > _PROTOCOL_AT
        protocol = batch.room[np.where(whole, begins + _PROTOCOL_AT, 0)]
        own: NDArray[np.bool_] = whole & (protocol == self._protocol)
        return own


class PartLink(Link):
    """What one exchange sees of a shared link: all that is sent, and its own frames that arrive.

    Args:
        split: receives for both.
        link: sends.
        clock: what time it is where the link is.

    Attributes:
        meanwhile: called while a frame is waited for; lets the other exchange go on, and returns
            for how many seconds it has nothing to do unless a frame comes. None: nothing is done.
    """

    def __init__(self, split: SplitLink, link: Link, clock: Clock) -> None:
        self.meanwhile: Meanwhile | None = None
        self._split = split
        self._link = link
        self._clock = clock
        self._next_turn = float("-inf")
        # Frames to be handed out next: in the room of the link below, or in our own.
        self._batch: FrameBatch | None = None
        self._view: FrameBatch | None = None
        self._own: FrameBatch | None = None
        self._kept: deque[tuple[bytes, NDArray[np.uint32]]] = deque()
        self._kept_frames = 0

    @property
    def name(self) -> str:
        """What the link is attached to, for messages."""
        return self._link.name

    @property
    def traffic(self) -> Traffic:
        """What has passed the shared link, for both exchanges."""
        return self._link.traffic

    @property
    def ready(self) -> bool:
        """Whether a frame is here."""
        return self._batch is not None or bool(self._kept)

    def send(self, frame: bytes | memoryview) -> None:
        """Send one frame; waits while the link is full.

        Raises:
            LinkError: the interface is gone or down.
        """
        self._link.send(frame)

    def send_rows(self, rows: FrameRows, first: int, count: int) -> None:
        """Send some frames in their order; waits while the link is full.

        Args:
            rows: the frames.
            first: the first of them that leaves.
            count: how many leave.

        Raises:
            LinkError: the interface is gone or down.
        """
        self._link.send_rows(rows, first, count)

    def receive(self, seconds: float) -> memoryview | None:
        """Return the next frame, valid until the next call, or None after ``seconds``.

        Raises:
            LinkError: the interface is gone or down.
        """
        batch = self._next(seconds)
        if batch is None:
            return None
        batch.first += 1
        if batch.first == batch.count:
            self._batch = None
        return batch.frame(batch.first - 1)

    def receive_batch(self, seconds: float) -> FrameBatch | None:
        """Return the next frames, valid until the next call, or None after ``seconds``.

        Raises:
            LinkError: the interface is gone or down.
        """
        batch, self._batch = self._next(seconds), None
        return batch

    def close(self) -> None:
        """Do nothing: the shared link is not closed with one part of it."""

    def take(self, batch: FrameBatch, places: NDArray[np.int64], *, now: bool) -> None:
        """Take frames of a batch.

        Args:
            batch: what has come.
            places: which of its frames are this part's.
            now: whether they are handed out before the next batch comes; else they are copied.
        """
        if not now or self.ready:
            self._keep(batch, places)
            return
        if self._view is None or self._view.room is not batch.room:
            self._view = _empty(batch.room, len(batch.sizes))
        view = self._view
        view.begins[: len(places)] = batch.begins[places]
        view.sizes[: len(places)] = batch.sizes[places]
        view.first, view.count = 0, len(places)
        self._batch = view

    def keep_what_is_left(self) -> None:
        """Copy the frames that are still to be handed out: the room that they are in is reused."""
        if self._batch is None or self._batch is not self._view:
            return
        batch, self._batch = self._batch, None
        self._keep(batch, np.arange(batch.first, batch.count))

    def _keep(self, batch: FrameBatch, places: NDArray[np.int64]) -> None:
        if self._kept_frames >= _KEPT_AT_MOST:
            return
        self._kept_frames += len(places)
        frames = b"".join([batch.frame(place) for place in places.tolist()])
        self._kept.append((frames, batch.sizes[places]))

    def _next(self, seconds: float) -> FrameBatch | None:
        """Return the batch that is handed out next, after waiting for it."""
        if not self.ready:
            self._wait(seconds)
        if self._batch is None and self._kept:
            self._batch = self._unpacked(*self._kept.popleft())
        return self._batch

    def _wait(self, seconds: float) -> None:
        until = self._clock.now() + seconds
        # What is here already comes before the other exchange has its turn.
        pause = float("inf") if self.meanwhile is None else 0.0
        while True:
            left = until - self._clock.now()
            self._split.receive(self, max(0.0, min(left, pause)))
            now = self._clock.now()
            idle = not self.ready and now < until
            if self.meanwhile is not None and (idle or now >= self._next_turn):
                pause = self.meanwhile()
                self._next_turn = self._clock.now() + _TURN
            if self.ready or now >= until:
                return

    def _unpacked(self, frames: bytes, sizes: NDArray[np.uint32]) -> FrameBatch:
        """Return frames that were kept, as a batch."""
        own = self._own
        if own is None or len(own.room) < len(frames) or len(own.sizes) < len(sizes):
            room = np.zeros(max(len(frames), _ROOM_BYTES), dtype=np.uint8)
            own = self._own = _empty(room, max(len(sizes), _ROOM_FRAMES))
        self._kept_frames -= len(sizes)
        own.room[: len(frames)] = np.frombuffer(frames, dtype=np.uint8)
        own.begins[: len(sizes)] = np.cumsum(sizes) - sizes
        own.sizes[: len(sizes)] = sizes
        own.first, own.count = 0, len(sizes)
        return own


def _empty(room: NDArray[np.uint8], frames: int) -> FrameBatch:
    """Return a batch without frames that has a place for some."""
    begins, sizes = np.zeros((2, frames), dtype=np.uint32)
    return FrameBatch(room, begins, sizes)
