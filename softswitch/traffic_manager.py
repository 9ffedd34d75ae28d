# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Egress queues: a depth per port with tail drop, and an optional rate per port."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DEFAULT_DEPTH = 64

Queued = tuple[Any, ...]


@dataclass(frozen=True)
class QueueSettings:
    """Queue lengths in packets and rates in packets per second.

    ``rate`` applies to every port that ``port_rates`` does not name; None is unlimited.
    """

    depth: int = DEFAULT_DEPTH
    rate: float | None = None
    port_rates: Mapping[int, float] = field(default_factory=dict)

    def rate_of(self, port: int) -> float | None:
        """Rate of a port, or None."""
        return self.port_rates.get(port, self.rate)

    @property
    def limited(self) -> bool:
        """Whether any port has a rate."""
        return self.rate is not None or bool(self.port_rates)


class _PacedQueue:
    """Packets of one port that leave no faster than its rate."""

    def __init__(self, rate: float) -> None:
        self.packets: deque[Queued] = deque()
        self._interval = 1.0 / rate
        self.next_time = 0.0

    def push(self, item: Queued, now: float) -> None:
        if not self.packets:
            self.next_time = max(self.next_time, now)
        self.packets.append(item)

    def pop(self) -> Queued:
        # The clock of departures, not of the loop, so a late wake-up loses no rate.
        self.next_time += self._interval
        return self.packets.popleft()


class TrafficManager:
    """Queues between ingress and egress.

    Items are ``(port, packet, depth when queued)``; times are seconds of one clock.
    """

    def __init__(self, settings: QueueSettings) -> None:
        self.settings = settings
        self.tail_drops: Counter[int] = Counter()
        self._ready: deque[Queued] = deque()
        self._lengths: Counter[int] = Counter()
        self._paced: dict[int, _PacedQueue] = {}

    def length(self, port: int) -> int:
        """Packets waiting for a port."""
        return self._lengths[port]

    def push(self, port: int, packet: Queued, now: float) -> None:
        """Queues a packet, or counts it as dropped when the queue is full."""
        length = self._lengths[port]
        if length >= self.settings.depth:
            self.tail_drops[port] += 1
            return
        self._lengths[port] = length + 1
        rate = self.settings.rate_of(port) if self.settings.limited else None
        if rate is None:
            self._ready.append((port, packet, length))
        else:
            queue = self._paced.setdefault(port, _PacedQueue(rate))
            queue.push((port, packet, length), now)

    def pop(self, now: float) -> Queued | None:
        """The next item that may leave at ``now``, or None."""
        item = self._ready.popleft() if self._ready else self._pop_paced(now)
        if item is not None:
            self._lengths[item[0]] -= 1
        return item

    def _pop_paced(self, now: float) -> Queued | None:
        for queue in self._paced.values():
            if queue.packets and queue.next_time <= now:
                return queue.pop()
        return None

    def next_time(self) -> float | None:
        """When the next waiting packet may leave, or None when none waits."""
        if self._ready:
            return 0.0
        times = [queue.next_time for queue in self._paced.values() if queue.packets]
        return min(times, default=None)

    def clear(self) -> None:
        """Drops everything that waits."""
        self._ready.clear()
        self._paced.clear()
        self._lengths.clear()
