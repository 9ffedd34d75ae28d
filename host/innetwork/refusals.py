# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What the switch's answers in the barrier refuse, and the sentence for it."""

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
    fragment_number,
)


class Refusals:
    """Tells refusals apart.

    `plan_id`: the first 32 bits of the plan's digest.
    """

    def __init__(self, endpoint: Endpoint, *, workers: int, plan_id: int) -> None:
        self._worker = endpoint.worker
        self._session = endpoint.session
        self._workers = workers
        self._plan_id = plan_id

    def check(self, header: Header, barrier: BarrierBody) -> None:
        """Raise what an answer of the barrier refuses."""
        if barrier.plan != self._plan_id:
            raise PlanMismatchError(
                f"Worker {self._worker} holds plan {self._plan_id:08x}, the switch serves plan "
                f"{barrier.plan:08x}: install that plan, `switchgnn controller install PLAN`."
            )
        if (header.session - self._session) & SESSION_MASK:
            raise SessionMismatchError(
                f"Worker {self._worker} takes part in session {self._session}, but the "
                "switch was installed again since: start all workers anew, in its session "
                "(`switchgnn controller show`)."
            )
        if header.count == Refusal.INCARNATION:
            raise RoundMismatchError(
                f"Another process has been worker {self._worker} in this round of this session "
                "already: workers that start anew need a new session, "
                "`switchgnn controller install --new-session`."
            )
        if header.count == Refusal.TURN:
            known = header.dst_id < self._workers
            here = header.round, header.block_id, header.fragment
            first = f", where worker {header.dst_id} was the first" if known else ""
            raise RoundMismatchError(
                f"{where(here)} is not the next one of the switch, which stands in "
                f"round {barrier.round}{first}: workers that start anew need a new session, "
                "`switchgnn controller install --new-session`."
            )
        if header.count == Refusal.NEXT:
            raise DisagreementError(
                f"Round {header.round}: behind block {header.block_id}, fragment "
                f"{fragment_number(header.fragment)}, worker {header.dst_id} goes on with another "
                f"block or fragment than worker {self._worker}. All workers must exchange features "
                "of the same width, in the same direction."
            )
        if header.count == Refusal.MAGNITUDE:
            raise MagnitudeError(
                f"The switch has refused the largest magnitude that worker {header.dst_id} "
                f"reported; that of the round is {magnitude_from_bits(barrier.magnitude):g}. "
                "It is above what was installed, or has changed since the round was opened."
            )

    def check_round(self, barrier: BarrierBody, place: tuple[int, int, int]) -> None:
        """Refuse to open a round that the switch has left behind."""
        # Later barriers of a round may be answered when others have opened the next one.
        round_number, block_id, _ = place
        if block_id == OPENING_BLOCK and barrier.round > round_number:
            raise RoundMismatchError(
                f"Worker {self._worker} is in round {round_number}, the switch in round "
                f"{barrier.round}: workers that start anew need a new session, "
                "`switchgnn controller install --new-session`."
            )


def where(place: tuple[int, int, int]) -> str:
    """Return a place, the round, the block and the word of a fragment, for a sentence."""
    round_number, block, fragment = place
    return f"Round {round_number}, block {block}, fragment {fragment_number(fragment)}"


class Pulse:
    """A bit that changes while its worker is alive.

    It stays for two beats at least: who looks once per beat sees each change, in whatever step
    the two are. A worker that speaks less often changes it each time.

    `beat`: seconds.
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
    """The workers that are not done with a barrier, and since when nothing is heard of them."""

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

        `done`: who is done, bit w for worker w. `now`: the time, in seconds of a clock.
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
