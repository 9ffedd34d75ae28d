# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How much may be in flight, and how fast: DCQCN in spirit.

A mark halves the window, at most once per round trip. Afterwards half of what is
missing to the old window comes back per round trip, five times; then the window grows
by a constant (Zhu et al., SIGCOMM 2015, section 3.1: fast recovery, then additive
increase). The window matters as much as the rate, because a software switch's queues
are short; the rate follows from it, so that a window does not leave as one burst.
"""

from switchgnn.host.pace import Pace
from switchgnn.host.round_trip import RoundTrip

# In features. TCP grows by one segment of 1,448 bytes per round trip; a sender that grows
# by one feature of 188 bytes starves beside it.
SEGMENT = 8.0
_RECOVERY_STEPS = 5
_BURST = 8.0
_FIRST_WINDOW = 16.0
# Above 1, so that it is the window that limits when the round trip is overestimated.
_RATE_GAIN = 1.25


class Congestion:
    """Window and rate of one worker.

    Args:
        pace: the widest window, and whether it is narrowed.
        round_trip: how long answers take.
        segment: features that it grows by in a round trip.

    Attributes:
        window: features that may be in flight.
        cuts: how often it was halved.
    """

    def __init__(self, pace: Pace, round_trip: RoundTrip, segment: float = SEGMENT) -> None:
        self._segment = segment
        self._controlled = pace.congestion_control
        self._widest = float(pace.window)
        self._narrowest = float(pace.group_size)
        self._round_trip = round_trip
        self.window = min(self._widest, _FIRST_WINDOW) if self._controlled else self._widest
        self.cuts = 0
        self._target = self.window
        self._steps = 0
        self._acknowledged = 0
        self._last_cut = float("-inf")
        self._tokens = _BURST
        self._refilled = float("-inf")

    @property
    def rate(self) -> float | None:
        """Features per second, or None while the window is as wide as it may be."""
        if not self._controlled or self.window >= self._widest:
            return None
        return _RATE_GAIN * self.window / max(self._round_trip.smoothed, 1e-4)

    def allowance(self, in_flight: int, now: float) -> int:
        """Return how many features may be sent now."""
        room = int(self.window) - in_flight
        rate = self.rate
        if rate is None or room <= 0:
            return max(0, room)
        self._tokens = min(_BURST, self._tokens + (now - self._refilled) * rate)
        self._refilled = now
        return min(room, int(self._tokens))

    def sent(self, features: int) -> None:
        """Take note of features that were sent."""
        self._tokens = max(0.0, self._tokens - features)

    def wait(self) -> float:
        """Return the seconds until the rate lets the next feature go."""
        rate = self.rate
        if rate is None or self._tokens >= 1:
            return 0.0
        return (1 - self._tokens) / rate

    def acknowledged(self, features: int) -> None:
        """Grow, once for each window of features that came through unmarked."""
        self._acknowledged += features
        if not self._controlled or self._acknowledged < self.window:
            return
        self._acknowledged = 0
        if not self.cuts:
            self._target = min(self._widest, 2 * self.window)
            self.window = self._target
            return
        self._steps += 1
        if self._steps > _RECOVERY_STEPS:
            self._target = min(self._widest, self._target + self._segment)
        self.window = (self.window + self._target) / 2

    def lost(self, now: float) -> None:
        """Halve when features did not arrive, unless the window is one that every ring holds.

        BMv2 loses what does not fit the ring of a port, without a mark; a narrower
        window loses packets for other reasons.
        """
        if self.window > _FIRST_WINDOW:
            self.slow_down(now)

    def slow_down(self, now: float) -> None:
        """Halve: a packet came marked, here or at another worker."""
        if not self._controlled or now - self._last_cut < self._round_trip.smoothed:
            return
        self._last_cut = now
        self.cuts += 1
        self._target = self.window
        self.window = max(self._narrowest, self.window / 2)
        self._steps = 0
        self._acknowledged = 0
