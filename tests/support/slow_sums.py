# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker that needs long for a block, and gets on all the time."""

import time
from collections import deque

from switchgnn.host.wire.header import KIND_AT, KIND_MASK, Kind
from switchgnn.host.wire.link import Link


class SlowSums(Link):
    """A link on which so many sums arrive per second; all other frames pass at once.

    The other workers have what they need of this one, and wait for it in the barrier.
    """

    def __init__(self, link, per_second):
        self._link = link
        self._seconds = 1 / per_second
        self._held = deque()
        self._next = 0.0

    def send(self, frame):
        self._link.send(frame)

    def receive(self, seconds):
        until = seconds + time.monotonic()
        while True:
            now = time.monotonic()
            if self._held and now >= self._next:
                self._next = now + self._seconds
                return memoryview(self._held.popleft())
            end = min(until, self._next) if self._held else until
            frame = self._link.receive(max(0.0, end - now))
            if frame is not None and frame[KIND_AT] & KIND_MASK != Kind.SUM:
                return frame
            if frame is not None:
                self._held.append(bytes(frame))
            elif time.monotonic() >= until:
                return None

    @property
    def name(self):
        return self._link.name

    @property
    def traffic(self):
        return self._link.traffic

    def close(self):
        self._link.close()
