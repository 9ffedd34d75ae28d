"""Notices a switch that does not answer, long before the timeout."""

from collections.abc import Callable

from switchgnn.host.base.errors import HostError
from switchgnn.host.base.pace import Pace, RoundTrip

# A switch that answers may take this many time-outs of its usual round trips.
_TIMEOUTS = 16
# In the second half of the silence this many questions are asked; most of them must have been.
_QUESTIONS, _MOST = 8, 6
# Looks in a silence; a pause of this process is longer than two waits between them.
_LOOKS, _PAUSE = 10, 4
# Seconds without progress after which others are looked at, and between two looks.
_PATIENCE, _PERIOD = 0.25, 0.1


class SwitchSilentError(HostError):
    """The switch is silent, so workers may do without it; what has begun may go on later."""


class SilenceWatch:
    """Watches a worker that waits for answers of the switch.

    `pace`: its `silence` is the shortest one; 0: nothing is watched. `round_trip`: of the answers.
    """

    def __init__(self, pace: Pace, round_trip: RoundTrip) -> None:
        self._least, self._round_trip = pace.silence, round_trip
        # Returns whether another worker has heard nothing; called at most once per period.
        self.alarmed: Callable[[], bool] = lambda: False
        self.answered = False  # whether the switch has answered since the wait began
        self._probing = False
        self.begin(0.0)

    @property
    def seconds(self) -> float:
        """The seconds after which the switch counts as silent."""
        return max(self._least, _TIMEOUTS * self._round_trip.timeout)

    @property
    def longest_wait(self) -> float:
        """The longest time between two looks."""
        return self._least / _LOOKS if self._least else float("inf")

    def begin(self, now: float) -> None:
        """Begin to wait."""
        self._began_at = self._heard_at = self._progress_at = self._looked_at = now
        self._asked_at, self._peeked_at, self._asked = now, now, 0
        self.answered = False

    def probe(self) -> None:
        """Interrupt the next wait at the first answer, or after a short silence."""
        self._probing = True

    def look(self, now: float, *, heard: bool, progress: bool, ask: Callable[[], object]) -> None:
        """Note whether the switch has answered since the last look.

        `progress`: whether the worker has got on. `ask`: asks once more. SwitchSilentError: the
        switch is silent, or was to another worker.
        """
        if not self._least:
            return
        # A pause of this process is nobody's silence.
        if heard or now - self._looked_at > self.seconds / _PAUSE:
            self._heard_at, self._asked = now, 0
        self.answered |= heard
        self._looked_at = now
        if progress:
            self._progress_at = now
        silent = now - self._heard_at
        if silent > self.seconds / 2 and now - self._asked_at > self.seconds / 2 / _QUESTIONS:
            self._asked_at, self._asked = now, self._asked + 1
            ask()
        if self._probing and (self.answered or now - self._began_at > _PERIOD / 2):
            self._probing = False
        elif not (silent > self.seconds and self._asked >= _MOST) and not self._peek(now):
            return
        raise SwitchSilentError("The switch is silent.")

    def _peek(self, now: float) -> bool:
        if now - self._progress_at < _PATIENCE or now - self._peeked_at < _PERIOD:
            return False
        self._peeked_at = now
        return self.alarmed()
