# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The ports that cannot send every packet at once, and the order in which they send."""

from collections import deque
from heapq import heappop, heappush
from typing import Any

Queued = tuple[Any, ...]


class Line:
    """Packets of one port, which leave one after another.

    A packet leaves at least ``interval`` seconds after the packet before it, and not before
    the frame of that packet has passed at ``byte_time`` seconds per byte. A blocked line
    sends nothing.
    """

    __slots__ = ("_begin", "_byte_time", "_interval", "blocked", "free_at", "listed", "packets")

    def __init__(self, interval: float = 0.0, byte_time: float = 0.0) -> None:
        self.packets: deque[Queued] = deque()
        self.free_at = 0.0
        self.listed = False
        self.blocked = False
        self._begin = 0.0
        self._interval = interval
        self._byte_time = byte_time

    def push(self, item: Queued, now: float) -> None:
        """Append a packet."""
        if not self.packets:
            self.free_at = max(self.free_at, now)
        self.packets.append(item)

    def pop(self) -> Queued:
        """Remove the first packet and return it."""
        # The time counts from when the line was free, so a late wake-up does not slow it.
        self._begin = self.free_at
        self.free_at += self._interval
        return self.packets.popleft()

    def charge(self, size: int) -> None:
        """Keep the line busy for ``size`` bytes of the packet that was popped last."""
        self.free_at = max(self.free_at, self._begin + size * self._byte_time)

    def unblock(self, now: float) -> None:
        """Let the packet that was popped last begin only now."""
        self.blocked = False
        self._begin = max(self._begin, now)
        self.free_at = max(self.free_at, now)


class Lines:
    """Takes one packet of each line in turn; a line that is not free waits for its time."""

    def __init__(self) -> None:
        self._by_port: dict[int, Line] = {}
        # A line with packets is in one of these two, unless it is blocked.
        self._turns: deque[Line] = deque()
        self._timed: list[tuple[float, int]] = []

    def get(self, port: int) -> Line | None:
        """Return the line of a port, if it has one."""
        return self._by_port.get(port)

    def add(self, port: int, line: Line) -> None:
        """Give a port a line."""
        self._by_port[port] = line

    def push(self, line: Line, item: Queued, now: float) -> None:
        """Append a packet to a line.

        Args:
            line: a line that was added.
            item: the packet.
            now: the time in seconds.
        """
        line.push(item, now)
        self._list(line)

    def unblock(self, line: Line, now: float) -> None:
        """Let a blocked line send again."""
        line.unblock(now)
        self._list(line)

    def _list(self, line: Line) -> None:
        if line.packets and not line.listed and not line.blocked:
            line.listed = True
            self._turns.append(line)

    def pop(self, now: float) -> Queued | None:
        """Return the next packet of a line that is free at ``now``, or None."""
        while self._timed and self._timed[0][0] <= now:
            self._turns.append(self._by_port[heappop(self._timed)[1]])
        while self._turns:
            line = self._turns.popleft()
            if line.blocked:
                line.listed = False
                continue
            if line.free_at > now:
                # The packet before it was charged after its pop, so the time is known only now.
                heappush(self._timed, (line.free_at, line.packets[0][0]))
                continue
            item = line.pop()
            if line.packets:
                self._turns.append(line)
            else:
                line.listed = False
            return item
        return None

    def next_time(self) -> float | None:
        """Return the time at which to call :meth:`pop` again, or None when no packet waits."""
        if self._turns:
            return 0.0
        return self._timed[0][0] if self._timed else None

    def clear(self) -> None:
        """Forget every line."""
        self._by_port.clear()
        self._turns.clear()
        self._timed.clear()
