"""Congestion control in the manner of DCTCP (Alizadeh et al., SIGCOMM 2010), or of the paper.

Once per window of acknowledged features, the window shrinks by half the share of marked ones and
grows by a constant. The gain is 1, as the share is taken over the many sums of all workers. Before
the first mark or loss the window doubles instead. The queues of a software switch are short, so the
rate follows from the window: a window does not leave as one burst.

By the paper's rule (section 3.4) a mark halves the window, at most once per round trip, and the
window grows by the same constant after a whole one without marks: DCQCN (Zhu et al., SIGCOMM 2015)
with an alpha of 1 and without its fast recovery.
"""

from switchgnn.base.clock import Clock
from switchgnn.host.base.pace import LONGEST_TIMEOUT, CongestionRule, Pace, RoundTrip

# In features. TCP grows by one segment of 1,448 bytes per round trip; next to it, a sender that
# grows by one feature of 188 bytes starves.
SEGMENT = 8.0
_BURST = 8.0
# Fits into every ring.
_SAFE_WINDOW = 16.0
# Above 1, so that the window is the limit when the round trip is overestimated.
_RATE_GAIN = 1.25


class CongestionWindow:
    """Window and rate of one worker: `window` features may be in flight."""

    def __init__(self, pace: Pace, round_trip: RoundTrip, segment: float = SEGMENT) -> None:
        self._segment = segment
        self._controlled = pace.congestion is not CongestionRule.NONE
        self._halves = pace.congestion is CongestionRule.PAPER
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
        # A longer round trip comes from a stalled process, not from the network.
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
        """Count features that were sent."""
        self._tokens = max(0.0, self._tokens - features)

    def wait(self) -> float:
        """Return the seconds until the rate lets the next feature go."""
        rate = self.rate
        if rate is None or self._tokens >= 1:
            return 0.0
        return (1 - self._tokens) / rate

    def acknowledged(self, features: int) -> None:
        """Count features that came through; adapt the window once per window of them."""
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

    def marked(self, features: float, now: float) -> None:
        """Count features that came marked, or the features of marked sums; or halve the window."""
        if self._halves and features > 0:
            self._acknowledged = 0
            self._halve(now)
        else:
            self._marked += features

    def missed(self, features: int) -> None:
        """Count features that did not come, too few to halve the window, like marked ones."""
        self._marked += features

    def lost(self, now: float) -> None:
        """Halve the window after a loss, at most once per round trip.

        BMv2 drops what does not fit the ring of a port, without a mark. Losses of a window that
        fits into every ring have other reasons.
        """
        if self.window > _SAFE_WINDOW:
            self._halve(now)

    def _halve(self, now: float) -> None:
        soon = now - self._last_cut < self._round_trip.smoothed
        if not self._controlled or soon:
            return
        self._last_cut = now
        self.cuts += 1
        self._opening = False
        self.window = max(self._narrowest, self.window / 2)
        self._acknowledged, self._marked = 0, 0.0


class StallClock:
    """Counts the seconds between starts and stops. Other threads may read it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # One tuple: both change together, so that a reader never counts a time twice.
        self._state: tuple[float, float | None] = (0.0, None)

    @property
    def seconds(self) -> float:
        """The total, including the current stall."""
        before, since = self._state
        return before if since is None else before + max(0.0, self._clock.now() - since)

    def start(self) -> None:
        """Start unless running."""
        if self._state[1] is None:
            self._state = (self._state[0], self._clock.now())

    def stop(self) -> None:
        """Stop."""
        self._state = (self.seconds, None)
