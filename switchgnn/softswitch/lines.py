# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The ports that do not take every packet at once, and their turns."""

from collections import deque
from heapq import heappop, heappush
from typing import Any

Queued = tuple[Any, ...]


class Line:
    """Packets of one port, which leave one after another.

    ``interval`` is the time from one packet to the next, ``byte_time`` that of one byte
    of the frame that left; the longer of both counts. A blocked line sends nothing.
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
        """Appends a packet."""
        if not self.packets:
            self.free_at = max(self.free_at, now)
        self.packets.append(item)

    def pop(self) -> Queued:
        """Takes the first packet."""
        # The clock of departures, not of the loop, so a late wake-up loses no rate.
        self._begin = self.free_at
        self.free_at += self._interval
        return self.packets.popleft()

    def charge(self, size: int) -> None:
        """Takes the time for ``size`` bytes of the packet that was popped last."""
        self.free_at = max(self.free_at, self._begin + size * self._byte_time)

    def unblock(self, now: float) -> None:
        """Lets the packet that was popped last begin only now."""
        self.blocked = False
        self._begin = max(self._begin, now)
        self.free_at = max(self.free_at, now)


class Lines:
    """Gives one packet of each line a turn; a line that is not free waits for its time."""

    def __init__(self) -> None:
        self._by_port: dict[int, Line] = {}
        # A line with packets is in one of the two, unless it is blocked.
        self._turns: deque[Line] = deque()
        self._timed: list[tuple[float, int]] = []

    def get(self, port: int) -> Line | None:
        """The line of a port, if it has one."""
        return self._by_port.get(port)

    def add(self, port: int, line: Line) -> None:
        """Gives a port a line."""
        self._by_port[port] = line

    def push(self, line: Line, item: Queued, now: float) -> None:
        """Appends a packet to a line."""
        line.push(item, now)
        self._list(line)

    def unblock(self, line: Line, now: float) -> None:
        """Lets a blocked line send again."""
        line.unblock(now)
        self._list(line)

    def _list(self, line: Line) -> None:
        if line.packets and not line.listed and not line.blocked:
            line.listed = True
            self._turns.append(line)

    def pop(self, now: float) -> Queued | None:
        """The next packet of a line that is free at ``now``, or None."""
        while self._timed and self._timed[0][0] <= now:
            self._turns.append(self._by_port[heappop(self._timed)[1]])
        while self._turns:
            line = self._turns.popleft()
            if line.blocked:
                line.listed = False
                continue
            if line.free_at > now:
                # Known only here: what the packet before took was charged after its pop.
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
        """When :meth:`pop` is worth a try, or None when no packet waits."""
        if self._turns:
            return 0.0
        return self._timed[0][0] if self._timed else None

    def clear(self) -> None:
        """Forgets every line."""
        self._by_port.clear()
        self._turns.clear()
        self._timed.clear()
