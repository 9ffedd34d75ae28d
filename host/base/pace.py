"""Bounds on sending and waiting, as the user gives them, and how long an answer may take."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

# All in seconds.
_INITIAL = 0.05
SHORTEST_TIMEOUT = 0.004
LONGEST_TIMEOUT = 1.0
# On lossy links questions are repeated no sooner.
_MOST_OFTEN = 0.02
# The weight of one question in the mean number of tries.
_TRIES_WEIGHT = 0.25
# Answered questions back off only up to 8 time-outs.
_ATTEMPTS_WHEN_ANSWERED = 3
# Answers to three later questions show a loss, or to one a quarter of a round trip later; where
# answers overtake each other, up to 8 times as much.
_OVERTAKEN_BY, _MOST_REORDERING = 3, 8
# Least time before a tail is probed, as a share of the shortest time-out.
_PROBE_SHARE = 1 / 16


class RoundTrip:
    """Round-trip time of one worker, and time-outs that follow it, in seconds.

    The estimator is that of TCP (RFC 6298): a smoothed round trip and its deviation.
    """

    def __init__(self, shortest: float = SHORTEST_TIMEOUT) -> None:
        self._shortest = shortest
        self._smoothed: float | None = None
        self._deviation = 0.0
        self._tries = 1.0
        self._reordering = 1

    @property
    def smoothed(self) -> float:
        """The smoothed round trip; a guess before the first measurement."""
        return _INITIAL if self._smoothed is None else self._smoothed

    @property
    def known(self) -> bool:
        """Whether any was measured."""
        return self._smoothed is not None

    @property
    def timeout(self) -> float:
        """The seconds before an unanswered question is repeated for the first time."""
        if self._smoothed is None:
            return max(_INITIAL, self._shortest)
        return min(LONGEST_TIMEOUT, max(self._shortest, self._smoothed + 4 * self._deviation))

    @property
    def least(self) -> float:
        """The seconds before which no answer is late."""
        return max(self.smoothed, _PROBE_SHARE * self._shortest)

    def probe(self, attempts: int = 0, legs: int = 1) -> float:
        """Return the seconds after which the last question is repeated (RFC 8985, 7.2)."""
        if self._smoothed is None:
            return self.backed_off(attempts, legs)
        usual = self._smoothed + max(self._smoothed, 4 * self._deviation)
        first = min(self.timeout, max(self.least, usual))
        return float(min(self.longest(legs), first * 2 ** min(attempts, 10)))

    def overtaken(self, times: int, seconds: float) -> bool:
        """Return whether answers to later questions, by up to `seconds`, show a loss (RFC 8985)."""
        late = seconds > self._reordering * self.smoothed / 4
        return late or times >= _OVERTAKEN_BY * self._reordering

    def not_lost(self) -> None:
        """Note that a question was answered after all, so answers overtake each other."""
        self._reordering = min(2 * self._reordering, _MOST_REORDERING)

    def longest(self, legs: int = 1) -> float:
        """Return the longest time between two repetitions of a question, in seconds.

        The more tries questions needed lately, the shorter it is, so that as many answers are
        expected within a timeout as without losses.
        """
        return max(self.timeout, _MOST_OFTEN, LONGEST_TIMEOUT / self._tries**legs)

    def took(self, tries: float) -> None:
        """Count how many times a question was asked until it was answered."""
        self._tries += _TRIES_WEIGHT * (tries - self._tries)

    def backed_off(self, attempts: int, legs: int = 1) -> float:
        """Double the time-out with each attempt, within bounds."""
        return float(min(self.longest(legs), self.timeout * 2 ** min(attempts, 10)))

    def answered(self, attempts: int) -> int:
        """Return the attempts to back off from after the answer "not yet".

        Backing off is for a congested network, and an answer shows that it is not. The worker waits
        for another worker, and the next question finds out if that one's packets were lost.
        """
        return min(attempts, _ATTEMPTS_WHEN_ANSWERED)

    def measured(self, seconds: float) -> None:
        """Take one round trip, never that of a repeated question (Karn)."""
        if self._smoothed is None:
            self._smoothed, self._deviation = seconds, seconds / 2
            return
        self._deviation += (abs(seconds - self._smoothed) - self._deviation) / 4
        self._smoothed += (seconds - self._smoothed) / 8


_LARGEST_GROUP = 8
_LONGEST_INTERVAL = 0.5
# A timeout must hold many, as heartbeats are lost on bad links.
_HEARTBEATS = 20


class CongestionRule(str, Enum):
    """What a worker does when packets come marked; values of --congestion."""

    DCTCP = "dctcp"  # It narrows its window by half the marked share.
    PAPER = "paper"  # It halves its window (section 3.4 of the paper).
    NONE = "none"


@dataclass(frozen=True)
class Pace:
    """Bounds on sending and waiting."""

    # Features in flight at most. On interfaces with offloads BMv2 reads each port through a ring of
    # about 30 frames and drops the rest (docs/limitations.md).
    window: int = 16
    # Seconds of silence after which the worker gives up the switch or another worker; also seconds
    # without any progress of its own.
    timeout: float = 20.0
    congestion: CongestionRule = CongestionRule.DCTCP
    # The least seconds before an answer is asked for again. More than software switches need avoids
    # repetitions on a busy machine.
    shortest_timeout: float = SHORTEST_TIMEOUT
    # Seconds beyond the timeout that others may be silent while they may be computing: before they
    # open a round; between hosts always. A worker that computes sends nothing, so this also delays
    # the detection of its end.
    skew: float = 0.0
    first_window: int = 16  # Features in flight at most before the network is known.
    # The least seconds without an answer after which workers do without the switch; 0: never.
    silence: float = 0.0

    @property
    def group_size(self) -> int:
        """Features that are acknowledged together: half a window, and at most 8."""
        return max(1, min(self.window // 2, _LARGEST_GROUP))

    @property
    def heartbeat_interval(self) -> float:
        """The longest time between two signs of life of a worker, in seconds."""
        return min(_LONGEST_INTERVAL, self.timeout / _HEARTBEATS)


# The burst of a limited link after a pause, as of a link in Mininet.
BURST_BYTES = 15 << 10


# The highest level of bytes that wait for tokens; 0 is the lowest.
NUMBERS = 2
_LEVELS = range(NUMBERS + 1)
# Bytes of higher levels per byte of a lower one after which this one goes first.
_MOST_AHEAD = 15
# A rounded time may leave this part of a byte missing.
_ROUNDING = 1e-7


class TokenBucket:
    """Limits a rate, in bytes per second: each byte takes a token, and tokens come at the rate.

    Any thread may take tokens. While bytes of a higher level wait for theirs, those of a lower one
    get none, but for a sixteenth of the rate, so that their sender can show that it is alive.
    """

    def __init__(
        self,
        rate: float,
        burst: int = BURST_BYTES,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate, self._burst = rate, float(burst)
        self._clock, self._sleep = clock, sleep
        self._tokens, self._counted = self._burst, clock()
        # By level: tokens that waiting bytes need, and what went ahead of them.
        self._needed, self._ahead = [0.0] * len(_LEVELS), [0.0] * len(_LEVELS)
        self._lock = threading.Lock()

    def take(self, size: int, level: int = NUMBERS) -> None:
        """Wait for the tokens of `size` bytes; for more than a burst, the bucket goes into debt.

        So it does for bytes of a level above ``NUMBERS``, which do not wait.
        """
        needed = min(float(size), self._burst)
        with self._lock:
            if level > NUMBERS:
                self._tokens -= size
                return
            self._needed[level] += needed
        while (missing := self._take(size, needed, level)) > _ROUNDING:
            self._sleep(missing / self._rate)

    def _take(self, size: int, needed: float, level: int) -> float:
        """Take tokens, or return how many are missing, with those of others that go first."""
        with self._lock:
            own = self._turn(level)
            first = (each for each in _LEVELS if self._turn(each) > own)
            missing = needed + sum(self._needed[each] for each in first) - self._refilled()
            if missing <= _ROUNDING:
                self._tokens -= size
                self._needed[level] -= needed
                self._ahead[level] = 0.0
                for lower in range(level):
                    self._ahead[lower] += size * (self._needed[lower] > 0)
            return missing

    def _turn(self, level: int) -> tuple[bool, int]:
        needed = self._needed[level]
        return needed > 0 and self._ahead[level] >= _MOST_AHEAD * needed, level

    def _refilled(self) -> float:
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._counted) * self._rate)
        self._counted = now
        return self._tokens
