# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The worker's side of the block barrier."""

from dataclasses import dataclass

from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.errors import (
    BarrierError,
    DisagreementError,
    ExchangeTimeoutError,
    InNetworkError,
    MagnitudeError,
    PlanMismatchError,
    RoundMismatchError,
    SessionMismatchError,
)
from switchgnn.host.innetwork.fixed_point import magnitude_from_bits
from switchgnn.host.innetwork.inbox import Inbox
from switchgnn.host.innetwork.signs import Pulse, SignsOfLife
from switchgnn.host.wire.header import (
    OPENING_BLOCK,
    SESSION_MASK,
    BarrierBody,
    Header,
    Kind,
    Refusal,
    fragment_number,
)

# The bits of the largest finite float32.
_LARGEST_FLOAT = 0x7F7FFFFF
# What a switch says while it serves no plan.
_NO_PLAN = 0
# What comes behind the last block of a round: the opening of the next one.
NEXT_ROUND = (OPENING_BLOCK, 0)
# Numbers of sessions are compared like TCP's sequence numbers: half of them are newer.
_NEWER = SESSION_MASK >> 1


@dataclass(frozen=True)
class Largest:
    """The largest magnitude of a round.

    Attributes:
        bits: it, as the bits of a float32.
        worker: who has reported it; another one if a switch was restarted in the round.
    """

    bits: int
    worker: int


@dataclass(frozen=True)
class _Report:
    """What a `done` says, however often it is repeated.

    Attributes:
        place: the round, the block and the word of the fragment.
        following: the block and the word of the fragment that come next.
        magnitude: float32 bits of the largest magnitude that the worker knew.
    """

    place: tuple[int, int, int]
    following: tuple[int, int]
    magnitude: int


class Barrier:
    """Reports `done` to the switch and waits for `advance`.

    `done` is repeated until it is answered: the switch counts it once. Who is not done is waited
    for while it is alive: every `done` has its worker's pulse, and the answer those of all.

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
        self._endpoint = endpoint
        self._link = endpoint.link
        self._worker = endpoint.worker
        self._pace = endpoint.pace
        self._clock = endpoint.clock
        self._round_trip = endpoint.round_trip
        self._tally = endpoint.tally
        self._inbox = inbox
        self._workers = workers
        self._plan_id = plan_id
        self._pulse = Pulse(endpoint.pace.beat)
        self._magnitude = 0
        self._last: _Report | None = None
        self._older: int | None = None
        self._left_behind: list[int] = []

    @property
    def left_behind(self) -> list[int]:
        """Who has not passed the barrier that this worker has passed last, as the switch says.

        There are some where a switch was restarted after this worker was let go on.
        """
        return self._left_behind

    def open_round(self, round_number: int, magnitude: int, following: tuple[int, int]) -> Largest:
        """Open a round together with all workers.

        Args:
            round_number: the round, from 1.
            magnitude: float32 bits of this worker's largest magnitude.
            following: the first block of the round and its fragment.

        Returns:
            The largest magnitude over all workers.

        Raises:
            ExchangeTimeoutError: the switch does not answer, or a worker is silent.
            PlanMismatchError: the switch serves another plan.
            SessionMismatchError: it serves another install of the plan.
            RoundMismatchError: the switch stands in a later round, or another process has
                been this worker in this one.
            MagnitudeError: the switch has refused a magnitude.
            DisagreementError: another worker goes on with another block or fragment.
            BarrierError: the magnitude that came back cannot be right.
        """
        self._magnitude = magnitude
        header, answer = self._meet((round_number, OPENING_BLOCK, 0), following)
        agreed = answer.magnitude
        if not magnitude <= agreed <= _LARGEST_FLOAT:
            raise BarrierError(
                f"Round {round_number}: the largest magnitude came back as {agreed:#010x}, which "
                f"cannot be when this worker's is {magnitude:#010x}. A worker or the switch is "
                "broken."
            )
        self._magnitude = agreed
        return Largest(agreed, header.dst_id)

    def close_block(self, place: tuple[int, int, int], following: tuple[int, int]) -> None:
        """Report a fragment of a block as done, and wait until all workers have.

        Args:
            place: the round, from 1, the block, from 1, and the word of the fragment.
            following: the block and the fragment that come next, or NEXT_ROUND.

        Raises:
            ExchangeTimeoutError: the switch does not answer, or a worker is silent.
            PlanMismatchError: the switch serves another plan.
            SessionMismatchError: it serves another install of the plan.
            RoundMismatchError: another process has been this worker.
            MagnitudeError: the switch has refused a magnitude.
            DisagreementError: another worker goes on with another block or fragment.
            BarrierError: workers have used different scales.
        """
        _, answer = self._meet(place, following)
        round_number = place[0]
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
        forgotten which workers were done; those that went on must say it again. And
        who waits for this worker hears its pulse.
        """
        if self._last is not None:
            self._link.send(self._done(self._last))
            self._tally.barriers_repeated += 1

    def heed(self, header: Header, frame: memoryview) -> None:
        """Read an answer that comes while no barrier is waited for, if it is of the last one.

        Raises:
            InNetworkError: the switch says that this worker cannot go on.
        """
        barrier = BarrierBody.unpack(frame, header.kind)
        last = self._last is not None and _place(header) == self._last.place
        if not last or not self._counts(header, barrier):
            return
        if header.kind is Kind.ADVANCE:
            # It is what this worker went on with, and says nothing of what is wrong now.
            self._left_behind = []
            return
        self._check_refusal(header, barrier)
        self._left_behind = [
            worker for worker in range(self._workers) if not barrier.workers >> worker & 1
        ]

    def _meet(
        self, place: tuple[int, int, int], following: tuple[int, int]
    ) -> tuple[Header, BarrierBody]:
        round_number, block_id, _ = place
        self._last = _Report(place, following, self._magnitude)
        self._left_behind = []
        signs = SignsOfLife(self._workers)
        # Before they open a round, workers may be computing.
        patience = self._pace.patience + self._pace.skew * (block_id == OPENING_BLOCK)
        attempts = 0
        # The first `done` is not answered while others are not done.
        unanswered = -1
        deadline = self._clock.now() + self._pace.patience
        while True:
            self._link.send(self._done(self._last))
            timeout = min(self._round_trip.backed_off(attempts), self._pace.beat)
            repeat_at = self._clock.now() + timeout
            self._tally.barriers_repeated += attempts > 0
            attempts += 1
            unanswered += 1
            while (now := self._clock.now()) < repeat_at:
                answer = self._answer(repeat_at - now, place)
                if answer is None:
                    continue
                header, barrier = answer
                if not self._counts(header, barrier):
                    continue
                self._check_refusal(header, barrier)
                self._check_round(barrier, place)
                if unanswered > 0:
                    self._round_trip.took(unanswered)
                unanswered = 0
                if header.kind is Kind.WAITING:
                    attempts = self._round_trip.answered(attempts)
                    signs.take(barrier.workers, barrier.pulses or 0, now)
                    if signs.awaited:
                        deadline = now + self._pace.patience
                elif block_id != OPENING_BLOCK or barrier.round == round_number:
                    return answer
            if silent := signs.silent(patience, now):
                raise self._no_sign_of(silent, place, patience)
            if now > deadline:
                raise self._no_answer(place)

    def _done(self, report: _Report) -> bytes:
        # Every `done` carries the magnitude: a switch that was restarted learns it again.
        pulse = self._pulse.bit(self._clock.now()) << self._worker
        body = BarrierBody(magnitude=report.magnitude, plan=self._plan_id, workers=pulse).pack()
        header = Header(
            kind=Kind.DONE,
            src_id=self._worker,
            dst_id=self._endpoint.incarnation,
            count=report.following[0],
            is_ack=True,
            round=report.place[0],
            block_id=report.place[1],
            fragment=report.place[2],
            feature_group=report.following[1],
        )
        return self._endpoint.frame(header, body)

    def _answer(
        self, seconds: float, place: tuple[int, int, int]
    ) -> tuple[Header, BarrierBody] | None:
        packet = self._inbox.receive(seconds)
        if packet is None:
            return None
        header, frame = packet
        here = _place(header)
        if header.kind in (Kind.SUM, Kind.FEATURE) and here > place:
            self._inbox.keep(packet)
            return None
        if header.kind not in (Kind.ADVANCE, Kind.WAITING) or here != place:
            self._tally.ignored += 1
            return None
        self._tally.heard += 1
        return header, BarrierBody.unpack(frame, header.kind)

    def _counts(self, header: Header, barrier: BarrierBody) -> bool:
        """Tell whether an answer is for this worker: no old one, from a switch with a plan."""
        if barrier.plan == _NO_PLAN and self._plan_id != _NO_PLAN:
            return False  # a controller is just installing it, after a restart
        if self._ahead(header) <= _NEWER:
            return True
        self._older = header.session
        return False

    def _ahead(self, header: Header) -> int:
        return (header.session - self._endpoint.session) & SESSION_MASK

    def _check_refusal(self, header: Header, barrier: BarrierBody) -> None:
        if barrier.plan != self._plan_id:
            raise PlanMismatchError(
                f"Worker {self._worker} holds plan {self._plan_id:08x}, the switch serves plan "
                f"{barrier.plan:08x}: install that plan, `switchgnn controller install PLAN`."
            )
        if self._ahead(header):
            raise SessionMismatchError(
                f"Worker {self._worker} takes part in session {self._endpoint.session}, but the "
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
            first = f", where worker {header.dst_id} was the first" if known else ""
            raise RoundMismatchError(
                f"{_where(_place(header))} is not the next one of the switch, which stands in "
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

    def _check_round(self, barrier: BarrierBody, place: tuple[int, int, int]) -> None:
        # Later barriers of a round may be answered when others have opened the next one.
        round_number, block_id, _ = place
        if block_id == OPENING_BLOCK and barrier.round > round_number:
            raise RoundMismatchError(
                f"Worker {self._worker} is in round {round_number}, the switch in round "
                f"{barrier.round}: workers that start anew need a new session, "
                "`switchgnn controller install --new-session`."
            )

    def _other_session(self) -> str:
        if self._older is None:
            return ""
        return (
            f" The switch answers for session {self._older}, modulo {SESSION_MASK + 1}; this "
            f"worker is in session {self._endpoint.session}."
        )

    def _no_answer(self, place: tuple[int, int, int]) -> InNetworkError:
        if place[1] != OPENING_BLOCK:
            return ExchangeTimeoutError(
                f"{_where(place)}: the switch on {self._link.name} does not say whether the block "
                f"is complete, after {self._pace.patience:g} s."
            )
        return ExchangeTimeoutError(
            f"{_where(place)}: no answer from the switch on {self._link.name} after "
            f"{self._pace.patience:g} s. Is it running, with the plan installed "
            f"(`switchgnn controller show`)?{self._other_session()}"
        )

    def _no_sign_of(
        self, silent: list[int], place: tuple[int, int, int], seconds: float
    ) -> InNetworkError:
        names = ", ".join(map(str, silent))
        slow = " One that only computes needs a longer patience." * (place[1] == OPENING_BLOCK)
        return ExchangeTimeoutError(
            f"{_where(place)}: worker {self._worker} waited {seconds:g} s, without a sign of life, "
            f"for worker{'s' if len(silent) > 1 else ''} {names}.{slow}"
        )


def _place(header: Header) -> tuple[int, int, int]:
    return header.round, header.block_id, header.fragment


def _where(place: tuple[int, int, int]) -> str:
    round_number, block, fragment = place
    return f"Round {round_number}, block {block}, fragment {fragment_number(fragment)}"
