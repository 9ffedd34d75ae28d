# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How much may be in flight, and how fast: DCQCN in spirit.

A mark halves window and rate, at most once per round trip; without marks both
grow by a constant per round trip. The window matters as much as the rate,
because a software switch's queues are short.
"""

import time

from switchgnn.host.pace import Pace
from switchgnn.host.round_trip import RoundTrip

# In features. TCP grows by one segment of 1,448 bytes per round trip and never sends
# less than one; who grows by one feature of 188 bytes starves beside it.
_SEGMENT = 8.0
_BURST = 8.0
_FIRST_WINDOW = 16


class Congestion:
    """Window and rate of one worker.

    Attributes:
        window: features that may be in flight.
        rate: features per second, or None while nothing has been marked.
        cuts: how often they were halved.
    """

    def __init__(self, pace: Pace, round_trip: RoundTrip) -> None:
        self._pace = pace
        self._round_trip = round_trip
        self.window = float(min(pace.window, _FIRST_WINDOW))
        if not pace.congestion_control:
            self.window = float(pace.window)
        self.rate: float | None = None
        self.cuts = 0
        self._last_cut = float("-inf")
        self._tokens = _BURST
        self._refilled = time.monotonic()

    def allowance(self, in_flight: int, now: float) -> int:
        """Return how many features may be sent now."""
        room = int(self.window) - in_flight
        if self.rate is None or room <= 0:
            return max(0, room)
        self._tokens = min(_BURST, self._tokens + (now - self._refilled) * self.rate)
        self._refilled = now
        return min(room, int(self._tokens))

    def sent(self, features: int) -> None:
        """Take note of features that were sent."""
        if self.rate is not None:
            self._tokens -= features

    def wait(self) -> float:
        """Return the seconds until the rate lets the next feature go."""
        if self.rate is None or self._tokens >= 1:
            return 0.0
        return (1 - self._tokens) / self.rate

    def acknowledged(self, features: int, now: float) -> None:
        """Grow: these features came through unmarked."""
        if not self._pace.congestion_control:
            return
        share = features / self.window
        self.window = min(float(self._pace.window), self.window + _SEGMENT * share)
        if self.rate is not None:
            per_round_trip = 1 / max(self._round_trip.smoothed, 1e-4)
            self.rate += _SEGMENT * per_round_trip * share
            if self.window >= self._pace.window and self.rate > 2 * self.window * per_round_trip:
                self.rate = None  # the window alone is the tighter bound again

    def slow_down(self, now: float) -> None:
        """Halve: a packet came marked, here or at another worker."""
        if not self._pace.congestion_control:
            return
        if now - self._last_cut < self._round_trip.smoothed:
            return
        self._last_cut = now
        self.cuts += 1
        round_trip = max(self._round_trip.smoothed, 1e-4)
        current = self.window / round_trip if self.rate is None else self.rate
        self.rate = max(_SEGMENT / round_trip, current / 2)
        self.window = max(float(self._pace.group_size), self.window / 2)
        self._refilled = now
