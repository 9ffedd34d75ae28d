# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""barrier.p4: all workers, or none, go on to the next block (invariant 5)."""

import itertools
from typing import Any

from scapy.packet import Packet

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import Kind, Refusal
from tests.ptf.switchgnn_ptf.packets import (
    PLAN,
    STRANGER_PORT,
    WORKERS,
    barrier_answer,
    done,
    feature,
    port_of,
    random_lanes,
)
from tests.ptf.switchgnn_ptf.switch_test import MEMBERS, SwitchTest


class BarrierTest(SwitchTest):
    """Cases that report DONE."""

    def report(self, worker: int, **fields: Any) -> Packet:
        """Send a DONE from its worker and return it."""
        packet = done(worker, **fields)
        self.send(port_of(worker), packet)
        return packet

    def collect(self, *workers: int, **fields: Any) -> None:
        """Report DONE for workers who are not the last; nobody must get an answer."""
        with self.counted(Outcome.DONE_COLLECTED, len(workers)):
            for worker in workers:
                self.report(worker, **fields)

    def complete(
        self,
        worker: int,
        *,
        magnitude: int = 0,
        round_: int = 1,
        largest: int = 0,
        **fields: Any,
    ) -> None:
        """Report DONE for the last worker; everybody must get ADVANCE, once."""
        with self.counted(Outcome.DONE_COLLECTED):
            packet = self.report(worker, magnitude=magnitude, round_=round_, **fields)
            self.expect_advance(packet, round_=round_, magnitude=magnitude, largest=largest)

    def expect_advance(self, last: Packet, **body: int) -> None:
        """Expect ADVANCE on every worker's port."""
        for worker in WORKERS:
            to = port_of(worker)
            answer = barrier_answer(Kind.ADVANCE, last, to=to, workers=MEMBERS, **body)
            self.expect(to, answer)

    def expect_refusal(
        self,
        packet: Packet,
        refusal: Refusal,
        *,
        magnitude: int = 0,
        largest: int,
        round_: int | None = 1,
    ) -> None:
        """Expect WAITING at worker 1 alone; a round of None is not known yet."""
        body = {"magnitude": magnitude, "round_": round_ or 0, "largest": largest}
        answer = barrier_answer(Kind.WAITING, packet, to=2, workers=0, refusal=refusal, **body)
        self.expect(2, answer)

    def ask(
        self, worker: int, kind: Kind, *, workers: int, answer: Any = None, **fields: Any
    ) -> None:
        """Repeat a DONE; its worker alone must get this answer."""
        with self.counted(Outcome.DONE_REPEATED):
            packet = self.report(worker, **fields)
            body = {"round_": fields.get("round_", 1), **(answer or {})}
            to = port_of(worker)
            self.expect(to, barrier_answer(kind, packet, to=to, workers=workers, **body))

    def open(self, **fields: Any) -> None:
        """Let all workers open a round."""
        self.collect(0, 1, block=0, **fields)
        self.complete(2, block=0, **fields)


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
    """A DONE for a later block proves the earlier one complete; bits are not carried over."""

    def runTest(self) -> None:
        self.open()
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
            self.open(round_=round_)
            for block in blocks:
                self.collect(0, 1, round_=round_, block=block)
                self.ask(1, Kind.WAITING, workers=0b011, round_=round_, block=block)
                self.complete(2, round_=round_, block=block)
                self.ask(0, Kind.ADVANCE, workers=MEMBERS, round_=round_, block=block)


class FragmentsAndRoundsAreApart(BarrierTest):
    """Every (round, block, fragment) is a barrier of its own."""

    def runTest(self) -> None:
        self.open()
        for fragment in (0, 1, 0xFFFF):
            self.collect(1, 2, block=1, fragment=fragment)
            self.complete(0, block=1, fragment=fragment)
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


class MagnitudeIsTheLargest(BarrierTest):
    """Whoever has the largest, first, middle or last: all learn it."""

    def runTest(self) -> None:
        for round_, values in enumerate(((30, 20, 10), (5, 7, 6), (1, 2, 3), (0, 0, 0)), 1):
            self.collect(0, block=0, round_=round_, magnitude=values[0])
            self.collect(1, block=0, round_=round_, magnitude=values[1])
            with self.counted(Outcome.DONE_COLLECTED):
                packet = self.report(2, block=0, round_=round_, magnitude=values[2])
                largest = {"magnitude": max(values), "largest": values.index(max(values))}
                self.expect_advance(packet, round_=round_, **largest)


class MagnitudesCompareLikeFloats(BarrierTest):
    """From the smallest float32 to the largest."""

    def runTest(self) -> None:
        bits = [0x00000001, 0x00800000, 0x3F800000, 0x7F7FFFFF]
        for round_, (low, high) in enumerate(itertools.pairwise(bits), 1):
            self.collect(0, block=0, round_=round_, magnitude=high)
            self.collect(1, block=0, round_=round_, magnitude=low)
            with self.counted(Outcome.DONE_COLLECTED):
                packet = self.report(2, block=0, round_=round_, magnitude=0)
                self.expect_advance(packet, round_=round_, magnitude=high)


class RepeatedOpeningKeepsTheMagnitude(BarrierTest):
    """Repeated, late and smaller openings of a round do not change its magnitude."""

    def runTest(self) -> None:
        largest = {"magnitude": 50}
        self.collect(0, block=0, magnitude=50)
        self.ask(0, Kind.WAITING, workers=0b001, answer=largest, block=0, magnitude=50)
        self.collect(1, block=0, magnitude=20)
        self.ask(1, Kind.WAITING, workers=0b011, answer=largest, block=0, magnitude=20)
        with self.counted(Outcome.DONE_COLLECTED):
            self.expect_advance(self.report(2, block=0, magnitude=30), **largest)
        self.ask(1, Kind.ADVANCE, workers=MEMBERS, answer=largest, block=0, magnitude=20)
        self.collect(0, block=1, magnitude=50)
        self.ask(2, Kind.ADVANCE, workers=MEMBERS, answer=largest, block=0, magnitude=30)
        self.ask(0, Kind.WAITING, workers=0b001, answer=largest, block=1, magnitude=50)


class MagnitudeEndsWithItsRound(BarrierTest):
    """A large magnitude does not leak into the next round, and a late one not into it either."""

    def runTest(self) -> None:
        self.open(magnitude=50)
        self.collect(0, block=0, round_=2, magnitude=3)
        late = {"round_": 2, "magnitude": 3}
        self.ask(1, Kind.ADVANCE, workers=MEMBERS, answer=late, block=0, magnitude=50)
        self.collect(1, block=0, round_=2, magnitude=2)
        with self.counted(Outcome.DONE_COLLECTED):
            packet = self.report(2, block=0, round_=2, magnitude=1)
            self.expect_advance(packet, round_=2, magnitude=3)


class LaterBlocksTeachTheMagnitude(BarrierTest):
    """The first DONE of a round of which the switch knows nothing says its magnitude."""

    def runTest(self) -> None:
        self.open(magnitude=4)
        self.collect(0, 1, block=1, round_=2, magnitude=5)
        self.complete(2, block=1, round_=2, magnitude=5)


class LaterBlocksKeepTheMagnitude(BarrierTest):
    """Another magnitude than that of the opening is refused, and its worker is not counted."""

    def runTest(self) -> None:
        self.open(magnitude=4)
        self.collect(0, block=1, magnitude=4)
        for magnitude in (3, 5, 99):
            with self.counted(Outcome.WRONG_MAGNITUDE):
                packet = self.report(1, block=1, magnitude=magnitude)
                self.expect_refusal(packet, Refusal.MAGNITUDE, magnitude=4, largest=1)
        self.collect(1, block=1, magnitude=4)
        self.complete(2, block=1, magnitude=4)


class OpeningIsClosedWhenAllHaveHeard(BarrierTest):
    """Who opens the round again with more gets the magnitude that the others have."""

    def runTest(self) -> None:
        self.open(magnitude=4)
        known = {"magnitude": 4}
        self.ask(1, Kind.ADVANCE, workers=MEMBERS, answer=known, block=0, magnitude=99)
        self.collect(0, block=1, magnitude=4)
        self.ask(1, Kind.ADVANCE, workers=MEMBERS, answer=known, block=0, magnitude=99)
        self.collect(1, block=1, magnitude=4)
        self.complete(2, block=1, magnitude=4)


class MagnitudeHasALimit(BarrierTest):
    """What is installed with the plan; nobody else hears of what is above it."""

    def runTest(self) -> None:
        self.serve(magnitude_limit=100)
        self.collect(0, block=0, magnitude=100)
        with self.counted(Outcome.WRONG_MAGNITUDE):
            packet = self.report(1, block=0, magnitude=101)
            self.expect_refusal(packet, Refusal.MAGNITUDE, magnitude=100, largest=1)
        self.collect(1, block=0, magnitude=99)
        self.complete(2, block=0, magnitude=100)


class AnotherProcessIsRefused(BarrierTest):
    """Where a worker has been, and until a later round; then the one before it is."""

    def runTest(self) -> None:
        for worker in WORKERS:
            self.report(worker, block=0, incarnation=5)
        for to in map(port_of, WORKERS):
            self.receive(to)
        for block, incarnation in ((0, 6), (1, 6), (0, 0)):
            with self.counted(Outcome.WRONG_INCARNATION):
                packet = self.report(1, block=block, incarnation=incarnation)
                self.expect_refusal(packet, Refusal.INCARNATION, largest=0, round_=None)
        self.collect(1, block=1, incarnation=5)
        self.collect(1, block=0, round_=2, incarnation=6)
        with self.counted(Outcome.WRONG_INCARNATION):
            packet = self.report(1, block=1, incarnation=5)
            self.expect_refusal(packet, Refusal.INCARNATION, largest=0, round_=None)
        # A new session knows nobody.
        self.serve(session=self.session + 1)
        self.collect(1, block=0, incarnation=5)


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
        self.open(round_=4)
        self.collect(0, 1, block=3, round_=4)
        self.restart()
        self.collect(1, block=3, round_=4)
        first = {"largest": 1}
        self.ask(1, Kind.WAITING, workers=0b010, answer=first, block=3, round_=4)
        # This one was before the restart, its ADVANCE was lost, and it is behind.
        self.ask(2, Kind.ADVANCE, workers=MEMBERS, answer=first, block=2, round_=4)
        self.collect(0, block=3, round_=4)
        self.complete(2, block=3, round_=4, largest=1)
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


class RestartKeepsTheMagnitude(BarrierTest):
    """Who asks for the opening after a restart must not be told another magnitude."""

    def runTest(self) -> None:
        self.collect(0, block=0, magnitude=30)
        self.collect(1, block=0, magnitude=10)
        with self.counted(Outcome.DONE_COLLECTED):
            self.expect_advance(self.report(2, block=0, magnitude=20), magnitude=30)
        # Say that worker 2 did not get this ADVANCE, and has no part in block 1.
        self.collect(0, block=1, magnitude=30)
        self.restart()
        self.collect(0, block=1, magnitude=30)
        agreed = {"magnitude": 30}
        self.ask(2, Kind.ADVANCE, workers=MEMBERS, answer=agreed, block=0, magnitude=20)
        self.ask(0, Kind.WAITING, workers=0b001, answer=agreed, block=1, magnitude=30)
