# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""barrier.p4: all workers, or none, go on to the next block (invariant 5)."""

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import LAST_FRAGMENT, Kind
from tests.ptf.switchgnn_ptf.barrier_test import BarrierTest
from tests.ptf.switchgnn_ptf.packets import (
    NEXT_ROUND,
    PLAN,
    STRANGER_PORT,
    WORKERS,
    barrier_answer,
    done,
    feature,
    random_lanes,
)
from tests.ptf.switchgnn_ptf.switch_test import MEMBERS


class LastDoneAdvancesAll(BarrierTest):
    """ADVANCE goes to every worker, once, when the last one is done, whoever that is."""

    def runTest(self) -> None:
        self.open()
        for block, (*first, last) in enumerate(((0, 1, 2), (2, 0, 1), (1, 2, 0)), 1):
            self.collect(*first, block=block)
            self.complete(last, block=block)


class RepeatedDoneIsCountedOnce(BarrierTest):
    """Before the block is complete the asker alone learns who is done."""

    def runTest(self) -> None:
        self.open()
        self.collect(0, block=1)
        self.ask(0, Kind.WAITING, workers=0b001, block=1)
        self.ask(0, Kind.WAITING, workers=0b001, block=1)
        self.collect(2, block=1)
        self.ask(0, Kind.WAITING, workers=0b101, block=1)
        self.ask(2, Kind.WAITING, workers=0b101, block=1)
        self.complete(1, block=1)


class DoneAfterCompletion(BarrierTest):
    """A lost ADVANCE can be asked for again; nobody else is bothered."""

    def runTest(self) -> None:
        self.open()
        self.collect(0, 1, block=1)
        self.complete(2, block=1)
        for worker in (*WORKERS, *WORKERS):
            self.ask(worker, Kind.ADVANCE, workers=MEMBERS, block=1)


class LateDoneForAnEarlierBlock(BarrierTest):
    """Who still asks for an earlier block may go on; the present one loses nothing."""

    def runTest(self) -> None:
        self.open()
        self.collect(0, 1, block=1)
        self.complete(2, block=1)
        self.collect(0, block=2)
        self.ask(1, Kind.ADVANCE, workers=MEMBERS, block=1)
        self.ask(2, Kind.ADVANCE, workers=MEMBERS, block=0)
        self.ask(0, Kind.WAITING, workers=0b001, block=2)
        self.collect(1, block=2)
        self.complete(2, block=2)


class LaterDoneMovesForward(BarrierTest):
    """Where no barrier has been complete, one for a later block proves the earlier one so."""

    def runTest(self) -> None:
        self.collect(0, block=1)
        self.collect(1, block=2)
        self.ask(1, Kind.WAITING, workers=0b010, block=2)
        self.ask(0, Kind.ADVANCE, workers=MEMBERS, block=1)
        self.collect(2, block=2)
        self.ask(2, Kind.WAITING, workers=0b110, block=2)
        self.complete(0, block=2)


class BlocksMayBeSkipped(BarrierTest):
    """A round may begin behind its first blocks, as backward rounds do, and end before its last."""

    def runTest(self) -> None:
        for round_, blocks in ((1, (3, 4)), (2, (1, 2)), (3, (3, 4)), (4, (4,))):
            self.open(round_=round_, following=(blocks[0], 0))
            for block, following in zip(blocks, (*blocks[1:], 0), strict=True):
                tag = {"round_": round_, "block": block, "following": (following, 0)}
                self.collect(0, 1, **tag)
                self.ask(1, Kind.WAITING, workers=0b011, **tag)
                self.complete(2, **tag)
                self.ask(0, Kind.ADVANCE, workers=MEMBERS, **tag)


class FragmentsAndRoundsAreApart(BarrierTest):
    """Every (round, block, fragment) is a barrier of its own."""

    def runTest(self) -> None:
        self.open()
        for fragment, following in (
            (0, (1, 1)),
            (1, (1, LAST_FRAGMENT)),
            (LAST_FRAGMENT, NEXT_ROUND),
        ):
            self.collect(1, 2, block=1, fragment=fragment, following=following)
            self.complete(0, block=1, fragment=fragment, following=following)
        self.open(round_=2)
        self.collect(0, 1, block=1, round_=2)
        self.complete(2, block=1, round_=2)


class ForeignBitIsRefused(BarrierTest):
    """A worker is done for itself only; a wrong Src_id sets no bit and gets no answer."""

    def runTest(self) -> None:
        self.open()
        self.collect(0, block=1)
        with self.counted(Outcome.WRONG_PORT, 4):
            for src_id, port in ((1, 1), (2, 1), (0x10000, 1), (2, STRANGER_PORT)):
                self.send(port, done(src_id, block=1, port=port))
        self.ask(0, Kind.WAITING, workers=0b001, block=1)


class WrongPlanIsToldTheRightOne(BarrierTest):
    """A worker with another plan is told which one the switch serves, and is not counted."""

    def runTest(self) -> None:
        self.open(magnitude=4)
        self.collect(0, block=1, magnitude=4)
        with self.counted(Outcome.WRONG_PLAN, 2):
            for plan in (0, PLAN + 1):
                packet = self.report(1, block=1, plan=plan)
                answer = barrier_answer(Kind.WAITING, packet, to=2, workers=0, round_=0)
                self.expect(2, answer)
        known = {"magnitude": 4}
        self.ask(0, Kind.WAITING, workers=0b001, answer=known, block=1, magnitude=4)


class WrongPlanOpensNothing(BarrierTest):
    """Neither the round nor the magnitude of another plan is taken over."""

    def runTest(self) -> None:
        self.open(magnitude=4)
        with self.counted(Outcome.WRONG_PLAN):
            packet = self.report(1, block=0, round_=7, magnitude=9, plan=1)
            self.expect(2, barrier_answer(Kind.WAITING, packet, to=2, workers=0, round_=0))
        self.ask(1, Kind.ADVANCE, workers=MEMBERS, block=0, magnitude=4, answer={"magnitude": 4})


class BarrierAndSumsAreApart(BarrierTest):
    """Features of a block change nothing at the barrier, nor the other way round."""

    def runTest(self) -> None:
        self.add_sum(900, {101: 0, 102: 1})
        self.open()
        self.collect(2, block=1)
        with self.counted(Outcome.AGGREGATED, 2, completed={0: 1}):
            self.check_sum(900, {101: 0, 102: 1})
        self.ask(2, Kind.WAITING, workers=0b100, block=1)


class RestartInTheMiddle(BarrierTest):
    """A switch that has forgotten everything finds its place by the workers' repeats."""

    def runTest(self) -> None:
        self.open(round_=4, following=(3, 0))
        last = {"block": 3, "round_": 4, "following": NEXT_ROUND}
        self.collect(0, 1, **last)
        self.restart()
        self.collect(1, **last)
        first = {"largest": 1}
        self.ask(1, Kind.WAITING, workers=0b010, answer=first, **last)
        # This one was before the restart, its ADVANCE was lost, and it is behind.
        self.ask(2, Kind.ADVANCE, workers=MEMBERS, answer=first, block=2, round_=4)
        self.collect(0, **last)
        self.complete(2, **last, largest=1)
        self.open(round_=5)


class RestartLosesHalfASum(BarrierTest):
    """After a restart a sum begins anew; nothing of what was there before is counted."""

    def runTest(self) -> None:
        sources = {101: 0, 102: 1}
        self.add_sum(900, sources)
        with self.counted(Outcome.AGGREGATED):
            self.send(1, feature(101, random_lanes(1), port=1))
        self.restart()
        self.add_sum(900, sources)
        with self.counted(Outcome.AGGREGATED, 2, passes={1: 2}, completed={0: 1}):
            self.check_sum(900, sources)
