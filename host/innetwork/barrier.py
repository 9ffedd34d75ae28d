# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The worker's side of the block barrier."""

import time

from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.errors import (
    BarrierError,
    ExchangeTimeoutError,
    InNetworkError,
    PlanMismatchError,
    RoundMismatchError,
)
from switchgnn.host.innetwork.inbox import Inbox
from switchgnn.host.wire.header import (
    BODY_AT,
    OPENING_BLOCK,
    BarrierBody,
    Header,
    Kind,
)

# The bits of the largest finite float32.
_LARGEST_FLOAT = 0x7F7FFFFF
# What a switch says while it serves no plan.
_NO_PLAN = 0


class Barrier:
    """Reports `done` to the switch and waits for `advance`.

    `done` is repeated until it is answered: the switch counts it once.

    Args:
        endpoint: this worker.
        inbox: where the answers come from.
        workers: the number of workers.
        plan_id: the first 32 bits of the plan's digest.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        inbox: Inbox,
        *,
        workers: int,
        plan_id: int,
    ) -> None:
        self._link = endpoint.link
        self._addresses = endpoint.addresses
        self._worker = endpoint.worker
        self._pace = endpoint.pace
        self._round_trip = endpoint.round_trip
        self._tally = endpoint.tally
        self._inbox = inbox
        self._workers = workers
        self._plan_id = plan_id
        self._magnitude = 0
        self._last: bytes | None = None

    def open_round(self, round_number: int, magnitude: int) -> int:
        """Open a round together with all workers.

        Args:
            round_number: the round, from 1.
            magnitude: float32 bits of this worker's largest magnitude.

        Returns:
            float32 bits of the largest magnitude over all workers.

        Raises:
            ExchangeTimeoutError: the switch does not answer, or a worker is not done in time.
            PlanMismatchError: the switch serves another plan.
            RoundMismatchError: the switch stands in a later round.
            BarrierError: the magnitude that came back cannot be right.
        """
        self._magnitude = magnitude
        agreed = self._meet(round_number, OPENING_BLOCK, 0).magnitude
        if not magnitude <= agreed <= _LARGEST_FLOAT:
            raise BarrierError(
                f"Round {round_number}: the largest magnitude came back as {agreed:#010x}, which "
                f"cannot be when this worker's is {magnitude:#010x}. A worker or the switch is "
                "broken."
            )
        self._magnitude = agreed
        return agreed

    def close_block(self, round_number: int, block_id: int, fragment: int) -> None:
        """Report a fragment of a block as done, and wait until all workers have.

        Args:
            round_number: the round, from 1.
            block_id: the block, from 1.
            fragment: the fragment, from 0.

        Raises:
            ExchangeTimeoutError: the switch does not answer, or a worker is not done in time.
            PlanMismatchError: the switch serves another plan.
            BarrierError: workers have used different scales.
        """
        answer = self._meet(round_number, block_id, fragment)
        if answer.round == round_number and answer.magnitude != self._magnitude:
            raise BarrierError(
                f"Round {round_number}: the largest magnitude has changed from "
                f"{self._magnitude:#010x} to {answer.magnitude:#010x} since the round was opened, "
                "so workers have used different scales. A worker reported a block before all "
                "workers had opened the round."
            )

    def repeat_last(self) -> None:
        """Repeat the `done` of the barrier that this worker has passed.

        A switch that restarted while only some workers had been told to go on has
        forgotten which workers were done; those that went on must say it again.
        """
        if self._last is not None:
            self._link.send(self._last)
            self._tally.barriers_repeated += 1

    def _meet(self, round_number: int, block_id: int, fragment: int) -> BarrierBody:
        place = (round_number, block_id, fragment)
        frame = self._last = self._done(place)
        missing: list[int] | None = None
        attempts = 0
        deadline = time.monotonic() + self._pace.patience
        while True:
            self._link.send(frame)
            repeat_at = time.monotonic() + self._round_trip.backed_off(attempts)
            self._tally.barriers_repeated += attempts > 0
            attempts += 1
            while (now := time.monotonic()) < repeat_at:
                answer = self._answer(repeat_at - now, place)
                if answer is None:
                    continue
                kind, barrier = answer
                if barrier.plan == _NO_PLAN and self._plan_id != _NO_PLAN:
                    continue  # a controller is just installing it, after a restart
                self._check(barrier, place)
                if kind is Kind.WAITING:
                    missing = self._not_done(barrier)
                    attempts = self._round_trip.answered(attempts)
                elif block_id != OPENING_BLOCK or barrier.round == round_number:
                    return barrier
            if time.monotonic() > deadline:
                raise self._timeout(place, missing)

    def _done(self, place: tuple[int, int, int]) -> bytes:
        # Every `done` carries the magnitude: a switch that was restarted learns it again.
        body = BarrierBody(magnitude=self._magnitude, plan=self._plan_id).pack()
        header = Header(
            kind=Kind.DONE,
            src_id=self._worker,
            is_ack=True,
            round=place[0],
            block_id=place[1],
            fragment=place[2],
        )
        return self._addresses.frame(header.pack(body))

    def _answer(
        self, seconds: float, place: tuple[int, int, int]
    ) -> tuple[Kind, BarrierBody] | None:
        packet = self._inbox.receive(seconds)
        if packet is None:
            return None
        header, frame = packet
        here = (header.round, header.block_id, header.fragment)
        if header.kind in (Kind.SUM, Kind.FEATURE) and here > place:
            self._inbox.keep(packet)
            return None
        if header.kind not in (Kind.ADVANCE, Kind.WAITING) or here != place:
            self._tally.ignored += 1
            return None
        self._tally.heard += 1
        return header.kind, BarrierBody.unpack(frame[BODY_AT : BODY_AT + 28])

    def _check(self, barrier: BarrierBody, place: tuple[int, int, int]) -> None:
        if barrier.plan != self._plan_id:
            raise PlanMismatchError(
                f"Worker {self._worker} holds plan {self._plan_id:08x}, the switch serves plan "
                f"{barrier.plan:08x}: install that plan, `switchgnn controller install PLAN`."
            )
        # Later barriers of a round may be answered when others have opened the next one.
        round_number, block_id, _ = place
        if block_id == OPENING_BLOCK and barrier.round > round_number:
            raise RoundMismatchError(
                f"Worker {self._worker} is in round {round_number}, the switch in round "
                f"{barrier.round}: workers that start anew need a new session, "
                "`switchgnn controller install --new-session`."
            )

    def _not_done(self, barrier: BarrierBody) -> list[int]:
        return [w for w in range(self._workers) if not barrier.workers >> w & 1]

    def _timeout(self, place: tuple[int, int, int], missing: list[int] | None) -> InNetworkError:
        where = "Round {}, block {}, fragment {}".format(*place)
        if missing is None and place[1] != OPENING_BLOCK:
            return ExchangeTimeoutError(
                f"{where}: the switch on {self._link.name} does not say whether the block is "
                f"complete, after {self._pace.patience:g} s."
            )
        if missing is None:
            return ExchangeTimeoutError(
                f"{where}: no answer from the switch on {self._link.name} after "
                f"{self._pace.patience:g} s. Is it running, with the plan installed "
                "(`switchgnn controller show`)?"
            )
        names = ", ".join(map(str, missing))
        return ExchangeTimeoutError(
            f"{where}: worker {self._worker} waited {self._pace.patience:g} s for "
            f"worker{'s' if len(missing) > 1 else ''} {names}."
        )
