# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The link of a worker in virtual time."""

from collections import deque
from random import Random

from switchgnn.host.errors import LinkError
from switchgnn.host.wire.batches import FrameBatch, FrameRows, new_batch
from switchgnn.host.wire.link import Link, Traffic
from switchgnn.virtual.network.wire import Wire
from switchgnn.virtual.timing.task import Task

_AT_ONCE = 64
_LONGEST_FRAME = 2048


class VirtualLink(Link):
    """What a worker sends and receives through; who waits lets virtual time go on.

    Args:
        name: for messages.
        task: the worker.
        up: takes its frames.
        random: where it is drawn from how long the worker takes to wake.
        wakes: nanoseconds that it takes at most.
    """

    def __init__(self, name: str, task: Task, up: Wire, random: Random, wakes: int) -> None:
        self._name = name
        self._task = task
        self._up = up
        self._random = random
        self._wakes = wakes
        self._arrived: deque[bytes] = deque()
        self._batch = new_batch(_AT_ONCE, _LONGEST_FRAME)
        self._closed = False
        self._frames_up = self._bytes_up = self._frames_down = self._bytes_down = 0

    @property
    def name(self) -> str:
        """What the link is attached to, for messages."""
        return self._name

    @property
    def traffic(self) -> Traffic:
        """What has passed."""
        return Traffic(self._frames_up, self._bytes_up, self._frames_down, self._bytes_down)

    def arrive(self, frames: list[bytes]) -> None:
        """Take frames for the worker."""
        if self._closed:
            return
        self._arrived.extend(frames)
        self._task.tell(int(self._wakes * self._random.random()))

    def send(self, frame: bytes | memoryview) -> None:
        """Send one frame."""
        self._send([bytes(frame)])

    def send_rows(self, rows: FrameRows, first: int, count: int) -> None:
        """Send some frames in their order.

        Args:
            rows: the frames.
            first: the first of them that leaves.
            count: how many leave.

        Raises:
            LinkError: the link is closed.
        """
        self._send([bytes(rows.frame(place)) for place in range(first, first + count)])

    def _send(self, frames: list[bytes]) -> None:
        if self._closed:
            raise LinkError(f"{self._name} is closed.")
        self._frames_up += len(frames)
        self._bytes_up += sum(map(len, frames))
        self._up.send(frames)

    def receive(self, seconds: float) -> memoryview | None:
        """Return the next frame, or None after ``seconds``."""
        if not self._wait(seconds):
            return None
        return memoryview(self._take())

    def receive_batch(self, seconds: float) -> FrameBatch | None:
        """Return the next frames, valid until the next call, or None after ``seconds``."""
        if not self._wait(seconds):
            return None
        batch = self._batch
        batch.first = batch.count = 0
        while self._arrived and batch.count < _AT_ONCE:
            batch.put(self._take())
        return batch

    def _take(self) -> bytes:
        frame = self._arrived.popleft()
        self._frames_down += 1
        self._bytes_down += len(frame)
        return frame

    def _wait(self, seconds: float) -> bool:
        if not self._arrived:
            if seconds <= 0:
                self._task.look()
                return False
            self._task.wait(seconds)
        return bool(self._arrived)

    def close(self) -> None:
        """Receive nothing any more."""
        self._closed = True
        self._arrived.clear()
