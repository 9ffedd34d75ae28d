# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How much may be in flight, and how fast: DCTCP's cut by the share of what came marked.

Once per window of features that came through, the window shrinks by half of the share of them that
came marked, and grows by a constant (Alizadeh et al., SIGCOMM 2010, with a gain of 1: the share is
taken over the sums of all workers, which are many). Before the first mark or loss it doubles
instead. The window matters as much as the rate, because a software switch's queues
are short; the rate follows from it, so that a window does not leave as one burst.
"""

from switchgnn.host.pace import Pace

_INITIAL = 0.05
SHORTEST_TIMEOUT = 0.004
LONGEST_TIMEOUT = 1.0
# The weight of one question in how many times questions are asked until they are answered.
_TRIES_WEIGHT = 0.25
# On links that lose however much, questions are repeated no sooner.
_MOST_OFTEN = 0.02
# Questions that were answered back off only so far: 8 time-outs.
_ATTEMPTS_WHEN_ANSWERED = 3


class RoundTrip:
    """Smoothed round-trip time of one worker, in seconds.

    Args:
        shortest: the least time-out.
    """

    def __init__(self, shortest: float = SHORTEST_TIMEOUT) -> None:
        self._shortest = shortest
        self._smoothed: float | None = None
        self._deviation = 0.0
        self._tries = 1.0

    @property
    def smoothed(self) -> float:
        """The smoothed round trip; a guess before the first measurement."""
        return _INITIAL if self._smoothed is None else self._smoothed

    @property
    def timeout(self) -> float:
        """The seconds without an answer after which a question is repeated for the first time."""
        if self._smoothed is None:
            return max(_INITIAL, self._shortest)
        return min(LONGEST_TIMEOUT, max(self._shortest, self._smoothed + 4 * self._deviation))

    def longest(self, legs: int = 1) -> float:
        """Return the longest time between two repetitions of a question, in seconds.

        It is shorter the more often questions had to be asked lately, so that as many answers are
        to be expected within a patience as where nothing is lost.

        Args:
            legs: how many questions an answer takes in a row, each of which may be lost.
        """
        return max(self.timeout, _MOST_OFTEN, LONGEST_TIMEOUT / self._tries**legs)

    def took(self, tries: int) -> None:
        """Take in how many times a question was asked until it was answered.

        Only answers are counted: what is dead is asked less and less often.
        """
        self._tries += _TRIES_WEIGHT * (tries - self._tries)

    def backed_off(self, attempts: int, *, bounded: bool = True, legs: int = 1) -> float:
        """Double the time-out with each attempt, within bounds.

        Args:
            attempts: how many.
            bounded: also from below; not where a packet came marked, see receiver.py.
            legs: as ``longest`` takes it.

        Returns:
            The time-out in seconds.
        """
        timeout = self.timeout
        if not bounded and self._smoothed is not None:
            timeout = min(timeout, self._smoothed + 4 * self._deviation)
        return float(min(self.longest(legs), timeout * 2 ** min(attempts, 10)))

    def answered(self, attempts: int) -> int:
        """Return the attempts to back off from after the answer "not yet".

        Backing off is for a network that may be congested, and an answer shows that it is
        not. The worker waits for another worker, and what that one sends next may be lost: the
        next question finds that out.
        """
        return min(attempts, _ATTEMPTS_WHEN_ANSWERED)

    def measured(self, seconds: float) -> None:
        """Take in one round trip; never that of a question that was repeated (Karn)."""
        if self._smoothed is None:
            self._smoothed, self._deviation = seconds, seconds / 2
            return
        self._deviation += (abs(seconds - self._smoothed) - self._deviation) / 4
        self._smoothed += (seconds - self._smoothed) / 8


# In features. TCP grows by one segment of 1,448 bytes per round trip; a sender that grows
# by one feature of 188 bytes starves beside it.
SEGMENT = 8.0
_BURST = 8.0
# What every ring holds.
_SAFE_WINDOW = 16.0
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
        cuts: how often it was narrowed.
    """

    def __init__(self, pace: Pace, round_trip: RoundTrip, segment: float = SEGMENT) -> None:
        self._segment = segment
        self._controlled = pace.congestion_control
        self._widest = float(pace.window)
        self._narrowest = float(pace.group_size)
        self._round_trip = round_trip
        # Narrower than a group, nothing would ever be acknowledged.
        first = max(self._narrowest, min(self._widest, float(pace.first_window)))
        self.window = first if self._controlled else self._widest
        self._opening = self.window < self._widest
        self.cuts = 0
        self._acknowledged = 0
        self._marked = 0.0
        self._last_cut = float("-inf")
        self._tokens = _BURST
        self._refilled = float("-inf")

    @property
    def rate(self) -> float | None:
        """Features per second, or None while the window is as wide as it may be."""
        if not self._controlled or self.window >= self._widest:
            return None
        # A longer round trip is one in which somebody stood still, which is not the network.
        round_trip = min(self._round_trip.smoothed, LONGEST_TIMEOUT)
        return _RATE_GAIN * self.window / max(round_trip, 1e-4)

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
        """Take note of features that came through; for each window of them adapt it."""
        self._acknowledged += features
        if not self._controlled or self._acknowledged < self.window:
            return
        share = min(1.0, self._marked / self._acknowledged)
        self._acknowledged, self._marked = 0, 0.0
        if share > 0:
            self.cuts += 1
            self._opening = False
        cut = self.window * (1 - share / 2)
        grown = cut + (self.window if self._opening else self._segment)
        self.window = min(self._widest, max(self._narrowest, grown))

    def marked(self, features: float) -> None:
        """Take note of features that came marked, or of sums that stand for them."""
        self._marked += features

    def lost(self, now: float) -> None:
        """Halve when features did not arrive, at most once per round trip.

        BMv2 loses what does not fit the ring of a port, without a mark; a window that every ring
        holds loses packets for other reasons.
        """
        soon = now - self._last_cut < self._round_trip.smoothed
        if not self._controlled or soon or self.window <= _SAFE_WINDOW:
            return
        self._last_cut = now
        self.cuts += 1
        self._opening = False
        self.window = max(self._narrowest, self.window / 2)
        self._acknowledged, self._marked = 0, 0.0
