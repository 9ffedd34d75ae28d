# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Egress queues: a depth per port and class with tail drop, and optional limits on their speed.

Of a port's packets those of the highest class leave first (`standard_metadata.priority`). While
packets of lower classes wait, a class has at most a tenth of the bytes, so nobody can block a port
by packets of a high class.
"""

from collections import Counter, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

Queued = tuple[Any, ...]

# The sums of a block to one worker; 2.6 MB of frames with 64 features each. BMv2 has 64.
DEFAULT_DEPTH = 8192
CLASSES = 8
# Of the bytes of lower classes that wait.
_SHARE = 0.1
# Bytes of one class that may leave ahead of them at once.
_BURST = 500.0
# Seconds by which packets may leave early, so that several leave at a time.
_AHEAD = 0.001


@dataclass(frozen=True)
class QueueSettings:
    """Limits of the egress queues.

    Attributes:
        depth: packets of one class that a port's queue holds.
        rate: packets per second of ports not in ``port_rates``, attached or not, as in BMv2.
        port_rates: packets per second by port.
        bandwidth: bits per second of each attached port; other ports are unlimited, so that
            recirculation through them is not slowed.

    None is no limit; of two limits the slower one applies.
    """

    depth: int = DEFAULT_DEPTH
    rate: float | None = None
    port_rates: Mapping[int, float] = field(default_factory=dict)
    bandwidth: float | None = None

    def rate_of(self, port: int) -> float | None:
        """Return the rate of a port in packets per second, or None."""
        return self.port_rates.get(port, self.rate)

    @property
    def limited(self) -> bool:
        """Whether any port has a limit."""
        return self.rate is not None or self.bandwidth is not None or bool(self.port_rates)


class Line:
    """The packets of one limited port.

    A packet leaves at least ``interval`` seconds after the packet before it, and not before
    the frame of that packet has passed at ``byte_time`` seconds per byte. A blocked line
    sends nothing.
    """

    def __init__(self, interval: float = 0.0, byte_time: float = 0.0) -> None:
        self.count = 0
        self.free_at = 0.0
        self.listed = False
        self.blocked = False
        self._classes: list[deque[Queued]] = [deque() for _ in range(CLASSES)]
        self._credits = [_BURST] * CLASSES
        # Of the last popped packet: its class, and whether it went ahead of others.
        self._last, self._ahead = 0, False
        self._begin = 0.0
        self._interval = interval
        self._byte_time = byte_time

    def push(self, item: Queued, now: float) -> None:
        """Append a packet."""
        if not self.count:
            self.free_at = max(self.free_at, now)
        self._classes[item[3]].append(item)
        self.count += 1

    def pop(self) -> Queued:
        """Remove the next packet and return it."""
        # Count from when the line became free: a late wake-up must not slow it.
        self._begin = self.free_at
        self.free_at += self._interval
        waiting = [each for each in range(CLASSES) if self._classes[each]]
        self._last = next((c for c in reversed(waiting[1:]) if self._credits[c] > 0), waiting[0])
        self._ahead = self._last > waiting[0]
        self.count -= 1
        return self._classes[self._last].popleft()

    def charge(self, size: int) -> None:
        """Keep the line busy for ``size`` bytes of the last popped packet."""
        self.free_at = max(self.free_at, self._begin + size * self._byte_time)
        if self._ahead:
            self._credits[self._last] -= size
        for each in range(self._last + 1, CLASSES):
            self._credits[each] = min(_BURST, self._credits[each] + _SHARE * size)

    def unblock(self, now: float) -> None:
        """Let the last popped packet begin now."""
        self.blocked = False
        self._begin = max(self._begin, now)
        self.free_at = max(self.free_at, now)


class TrafficManager:
    """Queues between ingress and egress.

    Items are ``(port, packet, depth when queued, class)``; times are in seconds of one clock.
    ``attached`` are the ports with a bandwidth. A packet being sent has left its queue.
    """

    def __init__(self, settings: QueueSettings, attached: Collection[int] = ()) -> None:
        self.settings = settings
        self.tail_drops: Counter[int] = Counter()
        self._attached = frozenset(attached)
        # Packets of ports without a line, which may leave at once, in the order of arrival.
        self._ready: deque[Queued] = deque()
        self._lengths: Counter[tuple[int, int]] = Counter()
        self._lines: dict[int, Line] = {}
        # Each unblocked line with packets is in one of these.
        self._turns: deque[int] = deque()
        self._timed: list[tuple[float, int]] = []

    def length(self, port: int, of_class: int = 0) -> int:
        """Return the number of packets of a class that are queued for a port."""
        return self._lengths[port, of_class]

    def push(self, port: int, packet: Queued, now: float, of_class: int = 0) -> None:
        """Queue a packet, or count it as dropped when the queue is full."""
        length = self._lengths[port, of_class]
        if length >= self.settings.depth:
            self.tail_drops[port] += 1
            return
        self._lengths[port, of_class] = length + 1
        item = (port, packet, length, of_class)
        line = self._line(port)
        if line is None:
            self._ready.append(item)
        else:
            line.push(item, now)
            self._list(port, line)

    def _line(self, port: int) -> Line | None:
        line = self._lines.get(port)
        if line is None and self.settings.limited:
            rate = self.settings.rate_of(port)
            bandwidth = self.settings.bandwidth if port in self._attached else None
            if rate is not None or bandwidth is not None:
                line = Line(1.0 / rate if rate else 0.0, 8.0 / bandwidth if bandwidth else 0.0)
                self._lines[port] = line
        return line

    def _list(self, port: int, line: Line) -> None:
        if line.count and not line.listed and not line.blocked:
            line.listed = True
            self._turns.append(port)

    def pop(self, now: float) -> Queued | None:
        """Return the next item that may leave at ``now``, or None."""
        item = self._ready.popleft() if self._ready else self._pop_line(now)
        if item is not None:
            self._lengths[item[0], item[3]] -= 1
        return item

    def _pop_line(self, now: float) -> Queued | None:
        while self._timed and self._timed[0][0] <= now:
            self._turns.append(heappop(self._timed)[1])
        while self._turns:
            port = self._turns.popleft()
            line = self._lines[port]
            if line.blocked:
                line.listed = False
            elif line.free_at > now + _AHEAD:
                # The packet before it was charged after its pop, so the time is known only now.
                heappush(self._timed, (line.free_at, port))
            else:
                item = line.pop()
                line.listed = False
                self._list(port, line)
                return item
        return None

    def charge(self, port: int, size: int) -> None:
        """Keep a port busy for the frame of ``size`` bytes of its last packet.

        Packets dropped or recirculated by egress are not charged.
        """
        line = self._lines.get(port)
        if line is not None:
            line.charge(size)

    def block(self, port: int) -> None:
        """Hold the packets of a port back until its last one can be sent."""
        line = self._lines.get(port)
        if line is None:
            line = self._lines[port] = Line()
            for item in self._ready:
                if item[0] == port:
                    line.push(item, 0.0)
            self._ready = deque(item for item in self._ready if item[0] != port)
        line.blocked = True

    def unblock(self, port: int, now: float) -> None:
        """Let a port send again, beginning with the frame it refused."""
        line = self._lines.get(port)
        if line is not None:
            line.unblock(now)
            self._list(port, line)

    def next_time(self) -> float | None:
        """Return when the next packet may leave, or None."""
        if self._ready or self._turns:
            return 0.0
        return self._timed[0][0] if self._timed else None

    def clear(self) -> None:
        """Drop all queued packets."""
        for queue in (self._ready, self._lines, self._turns, self._timed, self._lengths):
            queue.clear()
