# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Signs of life: what a worker says of itself, and what the switch says of the others."""


class Pulse:
    """A bit that changes while its worker is alive.

    It stays for two beats at least: who looks once per beat sees each change, in whatever step
    the two are. A worker that speaks less often changes it each time.

    Args:
        beat: seconds.
    """

    def __init__(self, beat: float) -> None:
        self._stays = 2 * beat
        self._bit = False
        self._changed = float("-inf")

    def bit(self, now: float) -> bool:
        """Return the bit to say now, in seconds of a clock."""
        if now - self._changed >= self._stays:
            self._bit, self._changed = not self._bit, now
        return self._bit


class SignsOfLife:
    """The workers that are not done with a barrier, and since when nothing is heard of them.

    Args:
        workers: the number of workers.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pulses: int | None = None
        self._quiet_since: dict[int, float] = {}

    @property
    def awaited(self) -> bool:
        """Whether the switch has named anybody who is not done."""
        return bool(self._quiet_since)

    def take(self, done: int, pulses: int, now: float) -> None:
        """Take what a WAITING says.

        Args:
            done: who is done, bit w for worker w.
            pulses: the latest pulse of each worker; one that has changed is a sign of life.
            now: the time, in seconds of a clock.
        """
        changed = -1 if self._pulses is None else pulses ^ self._pulses
        self._pulses = pulses
        self._quiet_since = {
            worker: now if changed >> worker & 1 else self._quiet_since.get(worker, now)
            for worker in range(self._workers)
            if not done >> worker & 1
        }

    def silent(self, seconds: float, now: float) -> list[int]:
        """Return the workers that are not done and have been silent for longer than that."""
        return [worker for worker, since in self._quiet_since.items() if now - since > seconds]
