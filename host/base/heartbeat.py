"""Signs of life: the bit that a worker flips, and what others learn from it."""


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
