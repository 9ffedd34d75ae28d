"""Signs of life of workers, and a switch that does not answer, noticed before the timeout."""

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


class HeartbeatBit:
    """A bit that changes while its worker is alive.

    It stays for at least two intervals, so that a reader that looks once per interval sees each
    change. A worker that sends less often changes it each time.
    """

    def __init__(self, interval: float) -> None:
        self._stays = 2 * interval
        self._bit = False
        self._changed = float("-inf")

    def bit(self, now: float) -> bool:
        """Return the bit to send now, in seconds of a clock."""
        if now - self._changed >= self._stays:
            self._bit, self._changed = not self._bit, now
        return self._bit


class SignsOfLife:
    """The workers that are not done with a barrier, and since when they have been silent."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._heartbeats: int | None = None
        self._quiet_since: dict[int, float] = {}

    @property
    def awaited(self) -> list[int]:
        """The workers that are not done, as far as the switch has named them."""
        return list(self._quiet_since)

    def take(self, done: int, heartbeats: int, now: float) -> None:
        """Take a WAITING; bit w of `done`: worker w is done."""
        changed = -1 if self._heartbeats is None else heartbeats ^ self._heartbeats
        self._heartbeats = heartbeats
        self._quiet_since = {
            worker: now if changed >> worker & 1 else self._quiet_since.get(worker, now)
            for worker in range(self._workers)
            if not done >> worker & 1
        }

    def silent(self, seconds: float, now: float) -> list[int]:
        """Return the workers that are not done and have been silent for longer than that."""
        return [worker for worker, since in self._quiet_since.items() if now - since > seconds]
