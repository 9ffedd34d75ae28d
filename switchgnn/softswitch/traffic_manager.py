# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Egress queues: a depth per port with tail drop, and optional limits on their speed."""

from collections import Counter, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from switchgnn.softswitch.lines import Line, Lines, Queued

# Of 316 bytes, as features of 64 numbers have: 81 kB, little for a switch. BMv2 has 64.
DEFAULT_DEPTH = 256


@dataclass(frozen=True)
class QueueSettings:
    """Limits of the egress queues.

    Attributes:
        depth: packets that a port's queue holds.
        rate: packets per second of every port that ``port_rates`` does not name; as in
            BMv2 also of ports that nothing is attached to.
        port_rates: packets per second by port.
        bandwidth: bits per second of every attached port. Other ports have no such limit,
            so that recirculating through them stays as fast as without it.

    A limit of None is no limit; with both limits the slower one counts.
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


class TrafficManager:
    """Queues between ingress and egress.

    Items are ``(port, packet, depth when queued)``; times are in seconds of one clock.
    ``attached`` holds the ports that have a line to send on. A packet that is being sent
    has left its queue.
    """

    def __init__(self, settings: QueueSettings, attached: Collection[int] = ()) -> None:
        self.settings = settings
        self.tail_drops: Counter[int] = Counter()
        self._attached = frozenset(attached)
        # Without lines every packet may leave at once, in the order of arrival.
        self._has_lines = settings.limited
        self._ready: deque[Queued] = deque()
        self._lengths: Counter[int] = Counter()
        self._lines = Lines()

    def length(self, port: int) -> int:
        """Return the number of packets that wait for a port."""
        return self._lengths[port]

    def push(self, port: int, packet: Queued, now: float) -> None:
        """Queue a packet, or count it as dropped when the queue is full.

        Args:
            port: the egress port.
            packet: the packet.
            now: the time in seconds.
        """
        length = self._lengths[port]
        if length >= self.settings.depth:
            self.tail_drops[port] += 1
            return
        self._lengths[port] = length + 1
        line = self._line(port) if self._has_lines else None
        if line is None:
            self._ready.append((port, packet, length))
        else:
            self._lines.push(line, (port, packet, length), now)

    def _line(self, port: int) -> Line | None:
        line = self._lines.get(port)
        if line is None:
            rate = self.settings.rate_of(port)
            bandwidth = self.settings.bandwidth if port in self._attached else None
            if rate is None and bandwidth is None:
                return None
            line = Line(1.0 / rate if rate else 0.0, 8.0 / bandwidth if bandwidth else 0.0)
            self._lines.add(port, line)
        return line

    def pop(self, now: float) -> Queued | None:
        """Return the next item that may leave at ``now``, or None."""
        item = self._ready.popleft() if self._ready else self._lines.pop(now)
        if item is not None:
            self._lengths[item[0]] -= 1
        return item

    def charge(self, port: int, size: int) -> None:
        """Keep a port busy for the frame of ``size`` bytes that its last packet became.

        A packet that egress drops or recirculates is not charged, because it used no line.
        """
        line = self._lines.get(port)
        if line is not None:
            line.charge(size)

    def block(self, port: int) -> None:
        """Hold the packets of a port back until its last one can be sent."""
        line = self._lines.get(port)
        if line is None:
            line = Line()
            self._lines.add(port, line)
            self._has_lines = True
            line.packets.extend(item for item in self._ready if item[0] == port)
            self._ready = deque(item for item in self._ready if item[0] != port)
        line.blocked = True

    def unblock(self, port: int, now: float) -> None:
        """Let a port send again, beginning with what it could not send before."""
        line = self._lines.get(port)
        if line is not None:
            self._lines.unblock(line, now)

    def next_time(self) -> float | None:
        """Return the time at which the next packet may leave, or None when none waits."""
        return 0.0 if self._ready else self._lines.next_time()

    def clear(self) -> None:
        """Drop everything that waits."""
        self._ready.clear()
        self._lines.clear()
        self._has_lines = self.settings.limited
        self._lengths.clear()
