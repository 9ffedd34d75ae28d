# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The refusals in the switch's answers at barriers, as errors; and the workers' signs of life."""

from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.errors import (
    DisagreementError,
    MagnitudeError,
    PlanMismatchError,
    RoundMismatchError,
    SessionMismatchError,
)
from switchgnn.host.innetwork.fixed_point import magnitude_from_bits
from switchgnn.host.wire.header import (
    OPENING_BLOCK,
    SESSION_MASK,
    BarrierBody,
    Header,
    Refusal,
    Unit,
    fragment_number,
)


class Refusals:
    """Raises the error for each refusal; `plan_id`: the first 32 bits of the plan's digest."""

    def __init__(self, endpoint: Endpoint, *, workers: int, plan_id: int) -> None:
        self._worker = endpoint.worker
        self._session = endpoint.session
        self._workers = workers
        self._plan_id = plan_id

    def check(self, header: Header, barrier: BarrierBody) -> None:
        """Raise the error for an answer that refuses something."""
        if barrier.plan != self._plan_id:
            raise PlanMismatchError(
                f"Worker {self._worker} holds plan {self._plan_id:08x}, the switch serves plan "
                f"{barrier.plan:08x}: install that plan, `switchgnn controller install PLAN`."
            )
        if (header.session - self._session) & SESSION_MASK:
            raise SessionMismatchError(
                f"Worker {self._worker} takes part in session {self._session}, but the switch was "
                "installed again since: restart all workers in its session "
                "(`switchgnn controller show`)."
            )
        if header.count == Refusal.INCARNATION:
            raise RoundMismatchError(
                f"Another process was already worker {self._worker} in this round of this session: "
                f"{_NEW_SESSION}"
            )
        if header.count == Refusal.TAG:
            known = header.dst_id < self._workers
            first = f", where worker {header.dst_id} was the first" if known else ""
            raise RoundMismatchError(
                f"{where(header.unit)} is not the next one of the switch, which is in "
                f"round {barrier.round}{first}: {_NEW_SESSION}",
                [header.dst_id] * known,
            )
        if header.count == Refusal.NEXT:
            raise DisagreementError(
                f"{where(header.unit)}, worker {header.dst_id} goes on with another block or "
                f"fragment than worker {self._worker}. All workers must exchange features of the "
                "same width, in the same direction.",
                [header.dst_id],
            )
        if header.count == Refusal.MAGNITUDE:
            raise MagnitudeError(
                f"The switch has refused the largest magnitude that worker {header.dst_id} "
                f"reported; that of the round is {magnitude_from_bits(barrier.magnitude):g}. "
                "It is above the installed limit, or has changed since the round was opened.",
                [header.dst_id],
            )

    def check_round(self, barrier: BarrierBody, unit: Unit) -> None:
        """Reject the opening of a round that the switch has already left."""
        # Later barriers of a round may be answered when others have opened the next one.
        if unit.block == OPENING_BLOCK and barrier.round > unit.round:
            raise RoundMismatchError(
                f"Worker {self._worker} is in round {unit.round}, the switch in round "
                f"{barrier.round}: {_NEW_SESSION}"
            )


_NEW_SESSION = (
    "workers that restart need a new session, `switchgnn controller install --new-session`."
)


def where(unit: Unit) -> str:
    """Return round, block and the word of a fragment as text."""
    number = fragment_number(unit.fragment)
    return f"Round {unit.round}, block {unit.block}, fragment {number}"


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
