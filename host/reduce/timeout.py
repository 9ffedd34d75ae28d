"""How long a worker waits for sums, and the error that says for whom it has waited in vain."""

from switchgnn.host.base.errors import named_workers
from switchgnn.host.base.silence import SignsOfLife
from switchgnn.host.innetwork.errors import ExchangeTimeoutError

# The share of the timeout for which a worker may do nothing, and still have waited.
_OWN_PAUSE = 0.25


class SumTimeout:
    """What a worker knows about the switch and the other workers while sums are missing.

    `link`: its name, for messages. `seconds`: without progress or signs of life, until it gives up.
    """

    def __init__(self, link: str, worker: int, workers: int, seconds: float, now: float) -> None:
        self._link, self._worker, self._workers = link, worker, workers
        self._seconds = seconds
        self._signs = SignsOfLife(workers)
        # `progress_at`: when the last sum came, or when there was none to wait for. `heard_at`: the
        # last answer of the switch.
        self.heard_at = self.progress_at = self._others_missing_at = now
        self._looked_at = now
        self.patient = False  # whether nobody waits for the sums
        self.foreign = 0  # packets of another session
        self.wrong = 0  # sums that did not fit

    def progressed(self, now: float) -> None:
        """Record that a sum came."""
        self.heard_at = self.progress_at = now
        if self._signs.awaited:
            self._signs = SignsOfLife(self._workers)

    def rested(self, now: float) -> None:
        """Record that no sum is awaited."""
        self._begin_again_after_a_pause(now)
        self.progress_at = now

    def _begin_again_after_a_pause(self, now: float) -> None:
        """Forget how long this worker has waited if it was suspended, and heard nobody."""
        if now - self._looked_at > _OWN_PAUSE * self._seconds:
            self.heard_at = self.progress_at = self._others_missing_at = now
            self._signs = SignsOfLife(self._workers)
        self._looked_at = now

    def looked(self, contributed: int, heartbeats: int, now: float) -> bool:
        """Take an answer about the first missing sum; return whether it awaits only others.

        `contributed`, `heartbeats`: of each worker, in the bit of its number.
        """
        own = 1 << self._worker
        self._signs.take(contributed | own, heartbeats, now)
        waits = bool(contributed & own and self._signs.awaited)
        if waits:
            self._others_missing_at = now
        return waits

    def check(self, fragment: int, now: float, timeout: float) -> None:
        """Raise ExchangeTimeoutError after that long without a sum, or without signs of life."""
        self._begin_again_after_a_pause(now)
        if self.patient:
            self.progress_at = self._others_missing_at = now
            self._signs = SignsOfLife(self._workers)
            return
        where = f"All-reduce, fragment {fragment}: worker {self._worker}"
        # As of its last answer, so that a dead switch is not taken for dead workers.
        silent = self._signs.silent(self._seconds, self.heard_at)
        if silent:
            raise ExchangeTimeoutError(
                f"{where} waited {self._seconds:g} s, without a sign of life, for "
                f"{named_workers(silent)}.",
                silent,
            )
        if now - self.progress_at > timeout:
            missing = self._signs.awaited
            whom = f" for {named_workers(missing)}" if missing else ""
            raise ExchangeTimeoutError(
                f"{where} has waited{whom} for longer than the timeout of {timeout:g} s.", missing
            )
        if now - max(self.progress_at, self._others_missing_at) <= self._seconds:
            return
        if now - self.heard_at > self._seconds:
            raise self.no_answer()
        wrong = ""
        if self.wrong:
            wrong = (
                f" {self.wrong} sums did not fit: all workers must reduce tensors of the same "
                "lengths and types, in the same order."
            )
        raise ExchangeTimeoutError(
            f"{where} has got no sum for {self._seconds:g} s although the switch answers: do "
            f"frames of that size pass {self._link} in both directions?{wrong}"
        )

    def no_answer(self) -> ExchangeTimeoutError:
        """Return the error for a switch that does not answer."""
        foreign = " It answers for another session." if self.foreign else ""
        return ExchangeTimeoutError(
            f"All-reduce: no answer from the switch on {self._link} to worker {self._worker} after "
            f"{self._seconds:g} s. Is it running, with the plan installed "
            f"(`switchgnn controller show`)?{foreign}"
        )
