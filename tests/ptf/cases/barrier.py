"""barrier.p4: all workers or none go on (invariant 5); window.py has the tags that may pass."""

from typing import Any

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import Kind, Refusal
from tests.ptf.switchgnn_ptf import packets
from tests.ptf.switchgnn_ptf.bases import ABOVE, ELSEWHERE, LEAF, BarrierTest, LeafTest, LeavesTest
from tests.ptf.switchgnn_ptf.switch_test import MEMBERS

# Bits of a faulty worker; a correct one sets its own bit or none.
ALL = 2**128 - 1


class LastDoneAdvancesAll(BarrierTest):
    """ADVANCE goes to every worker, once, when the last one is done."""

    def runTest(self) -> None:
        self.open()
        for block, (*first, last) in enumerate(((0, 1, 2), (2, 0, 1), (1, 2, 0)), 1):
            self.collect(*first, block=block)
            self.complete(last, block=block)


class RepeatedDoneIsCountedOnce(BarrierTest):
    """Before the block is complete, only the asker gets the list of workers."""

    def runTest(self) -> None:
        self.open()
        self.collect(0, block=1)
        for _ in range(2):
            self.ask(0, Kind.WAITING, workers=0b001, block=1)
        self.collect(2, block=1)
        self.ask(0, Kind.WAITING, workers=0b101, block=1)
        self.ask(2, Kind.WAITING, workers=0b101, block=1)
        self.complete(1, block=1)


class ForeignBitIsRefused(BarrierTest):
    """A worker is done for itself only; a wrong Src_id sets no bit and gets no answer."""

    def runTest(self) -> None:
        self.open()
        self.collect(0, block=1)
        with self.counted(Outcome.WRONG_PORT, 3):
            for src_id in (1, 2, 0x10000):
                self.send(1, packets.done(src_id, block=1, port=1))
        foreign = packets.done(2, block=1, port=packets.STRANGER_PORT)
        self.exchange(Outcome.NO_JOB, packets.STRANGER_PORT, foreign, packets.no_job(foreign))
        self.ask(0, Kind.WAITING, workers=0b001, block=1)


class WrongPlanIsToldTheRightOne(BarrierTest):
    """A worker with another plan gets the number of the right one, and starts no round."""

    def runTest(self) -> None:
        self.open(magnitude=4)
        self.collect(0, block=1, magnitude=4)
        wrong = {"block": 1, "plan": 0}, {"block": 1, "plan": packets.PLAN + 1}
        later = {"block": 0, "round_": 7, "magnitude": 9, "plan": 1}
        with self.counted(Outcome.WRONG_PLAN, 3):
            for fields in (*wrong, later):
                packet = self.report(1, **fields)
                answer = packets.barrier_answer(Kind.WAITING, packet, to=2, workers=0, round_=0)
                self.expect(2, answer)
        self.ask(0, Kind.WAITING, workers=0b001, answer={"magnitude": 4}, block=1, magnitude=4)


class RestartInTheMiddle(BarrierTest):
    """A switch that has forgotten everything finds the current tag by the workers' repeats."""

    def runTest(self) -> None:
        self.open(round_=4, following=(3, 0))
        last = {"block": 3, "round_": 4, "following": packets.NEXT_ROUND}
        self.collect(0, 1, **last)
        self.restart()
        self.collect(1, **last)
        first = {"largest": 1}
        self.ask(1, Kind.WAITING, workers=0b010, answer=first, **last)
        # This one, from before the restart, is late: its ADVANCE was lost.
        self.ask(2, Kind.ADVANCE, workers=MEMBERS, answer=first, block=2, round_=4)
        self.collect(0, **last)
        self.complete(2, **last, largest=1)
        self.open(round_=5)


class IncarnationTest(BarrierTest):
    """Workers that have opened round 1, each in its process number 5."""

    def setUp(self) -> None:
        super().setUp()
        self.open(incarnation=5)


class AnotherProcessIsRefused(IncarnationTest):
    """Where a worker has been, and until a later round; then the one before it is."""

    def runTest(self) -> None:
        for block, incarnation in ((0, 6), (1, 6), (0, 0)):
            said = {"block": block, "incarnation": incarnation}
            self.check_refusal(Refusal.INCARNATION, said, largest=0, round_=0)
        last = {"block": 1, "incarnation": 5, "following": packets.NEXT_ROUND}
        self.collect(1, 0, **last)
        self.complete(2, **last)
        self.collect(1, block=0, round_=2, incarnation=6)
        self.check_refusal(Refusal.INCARNATION, {"block": 1, "incarnation": 5}, largest=0, round_=0)
        # A new session knows nobody.
        self.serve(session=self.session + 1)
        self.collect(1, block=0, incarnation=5)


class WhoMaySendEarlyHasBeenInTheRound(IncarnationTest):
    """When a second process opens the round the switch may have features of the first one."""

    def runTest(self) -> None:
        last = {"block": 1, "incarnation": 5, "following": (1, 0), "early": True}
        self.collect(1, 0, **last)
        self.complete(2, **last)
        said = {"block": 0, "round_": 2, "incarnation": 6}
        self.check_refusal(Refusal.INCARNATION, said, largest=0, round_=0)
        self.collect(1, block=0, round_=2, incarnation=5)


class MagnitudeIsTheLargest(BarrierTest):
    """All workers get the largest float32, from the first, middle or last one."""

    def runTest(self) -> None:
        floats = (0x00800000, 0x7F7FFFFF, 0x3F800000)
        for round_, values in enumerate(((30, 20, 10), floats, (1, 2, 3), (0, 0, 0)), 1):
            opening = {"block": 0, "round_": round_, "following": packets.NEXT_ROUND}
            self.collect(0, magnitude=values[0], **opening)
            self.collect(1, magnitude=values[1], **opening)
            with self.counted(Outcome.DONE_COLLECTED):
                packet = self.report(2, magnitude=values[2], **opening)
                largest = {"magnitude": max(values), "largest": values.index(max(values))}
                self.expect_advance(packet, round_=round_, **largest)


class RepeatedOpeningKeepsTheMagnitude(BarrierTest):
    """Repeated, late, smaller and larger openings of a round do not change its magnitude."""

    def runTest(self) -> None:
        largest = {"magnitude": 50}
        self.collect(0, block=0, magnitude=50)
        self.ask(0, Kind.WAITING, workers=0b001, answer=largest, block=0, magnitude=50)
        self.collect(1, block=0, magnitude=20)
        self.ask(1, Kind.WAITING, workers=0b011, answer=largest, block=0, magnitude=20)
        with self.counted(Outcome.DONE_COLLECTED):
            self.expect_advance(self.report(2, block=0, magnitude=30), **largest)
        self.ask(1, Kind.ADVANCE, workers=MEMBERS, answer=largest, block=0, magnitude=99)
        self.collect(0, block=1, magnitude=50)
        self.ask(2, Kind.ADVANCE, workers=MEMBERS, answer=largest, block=0, magnitude=99)
        self.ask(1, Kind.ADVANCE, workers=MEMBERS, answer=largest, block=0, magnitude=20)
        self.ask(0, Kind.WAITING, workers=0b001, answer=largest, block=1, magnitude=50)


class MagnitudeEndsWithItsRound(BarrierTest):
    """A large magnitude does not leak into the next round, and a late one not into it either."""

    def runTest(self) -> None:
        self.open(magnitude=50, following=packets.NEXT_ROUND)
        self.collect(0, block=0, round_=2, magnitude=3)
        late = {"round_": 2, "magnitude": 3}
        self.ask(1, Kind.ADVANCE, workers=MEMBERS, answer=late, block=0, magnitude=50)
        self.collect(1, block=0, round_=2, magnitude=2)
        with self.counted(Outcome.DONE_COLLECTED):
            packet = self.report(2, block=0, round_=2, magnitude=1)
            self.expect_advance(packet, round_=2, magnitude=3)


class LaterBlocksKeepTheMagnitude(BarrierTest):
    """Another magnitude than that of the opening is refused, and its worker is not counted."""

    def runTest(self) -> None:
        self.open(magnitude=4)
        self.collect(0, block=1, magnitude=4)
        for magnitude in (3, 5, 99):
            said = {"block": 1, "magnitude": magnitude}
            self.check_refusal(Refusal.MAGNITUDE, said, magnitude=4, largest=1)
        self.collect(1, block=1, magnitude=4)
        self.complete(2, block=1, magnitude=4)


class MagnitudeHasALimit(BarrierTest):
    """The limit of the plan; a magnitude above it is not passed on."""

    def runTest(self) -> None:
        self.serve(magnitude_limit=100)
        self.collect(0, block=0, magnitude=100)
        said = {"block": 0, "magnitude": 101}
        self.check_refusal(Refusal.MAGNITUDE, said, magnitude=100, largest=1)
        self.collect(1, block=0, magnitude=99)
        self.complete(2, block=0, magnitude=100)


class RestartBeforeAllHaveHeard(BarrierTest):
    """A worker without the ADVANCE sends its own magnitude; one with it corrects that."""

    def runTest(self) -> None:
        self.collect(0, block=0, magnitude=30)
        self.collect(1, block=0, magnitude=10)
        with self.counted(Outcome.DONE_COLLECTED):
            self.expect_advance(self.report(2, block=0, magnitude=20), magnitude=30)
        self.restart()
        self.collect(2, block=0, magnitude=20)
        self.collect(0, block=1, magnitude=30)
        self.ask(2, Kind.ADVANCE, workers=MEMBERS, answer={"magnitude": 30}, block=0, magnitude=20)
        self.collect(1, block=1, magnitude=30)
        self.complete(2, block=1, magnitude=30)


class HeartbeatTest(BarrierTest):
    """Cases in which worker 0 waits for the others in block 1."""

    def setUp(self) -> None:
        super().setUp()
        self.open()
        self.collect(0, block=1)

    def expect_heartbeats(self, heartbeats: int, workers: int = 0b001) -> None:
        """Worker 0 asks, and gets these heartbeats; its own is 0."""
        self.ask(0, Kind.WAITING, workers=workers, answer={"heartbeats": heartbeats}, block=1)

    def busy(self, worker: int, heartbeat: int, **fields: Any) -> None:
        """Repeat the `done` of the last barrier, as a worker does that is busy with a block."""
        unit = {"block": 0, **fields}
        self.ask(worker, Kind.ADVANCE, workers=MEMBERS, heartbeat=heartbeat << worker, **unit)

    def rest(self) -> None:
        """Leave no heartbeat to the next case: there is no restart between them."""
        for worker in (1, 2):
            self.busy(worker, 0)
        self.expect_heartbeats(0)


class EachChangeIsSeen(HeartbeatTest):
    """The latest heartbeat of each worker, even if repeated."""

    def runTest(self) -> None:
        self.expect_heartbeats(0)
        for worker, bit, known in ((1, 1, 0b010), (2, 1, 0b110), (1, 0, 0b100), (1, 0, 0b100)):
            self.busy(worker, bit)
            self.expect_heartbeats(known)
            self.expect_heartbeats(known)
        self.rest()


class WhoIsDoneSaysItToo(HeartbeatTest):
    """Every `done` has a heartbeat: the first of a block, and those that are repeated."""

    def runTest(self) -> None:
        self.collect(1, block=1, heartbeat=0b010)
        self.expect_heartbeats(0b010, workers=0b011)
        own = {"answer": {"heartbeats": 0b011}, "heartbeat": 0b001}
        self.ask(0, Kind.WAITING, workers=0b011, block=1, **own)
        self.ask(1, Kind.WAITING, workers=0b011, answer={"heartbeats": 0b001}, block=1)
        self.expect_heartbeats(0, workers=0b011)


class OnlyItsOwn(HeartbeatTest):
    """A worker can only set its own heartbeat (invariant 6)."""

    def runTest(self) -> None:
        self.ask(1, Kind.ADVANCE, workers=MEMBERS, heartbeat=ALL, block=0)
        self.expect_heartbeats(0b010)
        self.busy(2, 1)
        self.ask(1, Kind.ADVANCE, workers=MEMBERS, heartbeat=0, block=0)
        self.expect_heartbeats(0b100)
        self.rest()


class WhatIsRefusedIsNoSign(HeartbeatTest):
    """Another port, plan, session, process or magnitude; and a refusal has no heartbeats."""

    def runTest(self) -> None:
        with self.counted({Outcome.WRONG_PORT: 1, Outcome.NO_JOB: 1}):
            self.send(3, packets.done(1, block=0, heartbeat=0b010))
            foreign = packets.done(1, block=0, heartbeat=0b010, port=packets.STRANGER_PORT)
            self.send(packets.STRANGER_PORT, foreign)
            self.expect(packets.STRANGER_PORT, packets.no_job(foreign))
        self.expect_heartbeats(0)
        with self.counted(Outcome.WRONG_PLAN):
            packet = self.report(1, block=0, plan=packets.PLAN + 1, heartbeat=0b010)
            self.expect(2, packets.barrier_answer(Kind.WAITING, packet, to=2, workers=0, round_=0))
        said = {"block": 0, "incarnation": 7, "heartbeat": 0b010}
        self.check_refusal(Refusal.INCARNATION, said, largest=0, round_=0)
        said = {"block": 1, "magnitude": 9, "heartbeat": 0b010}
        self.check_refusal(Refusal.MAGNITUDE, said, largest=1)
        self.expect_heartbeats(0)


class LeafReportsTheHeartbeatsOfItsWorkers(LeafTest):
    """Also while one of them is busy: its last `done` goes up, and with it all heartbeats."""

    def runTest(self) -> None:
        self.report_all(block=0)
        for worker in (0, 1):
            asked = packets.done(worker, block=1, heartbeat=1 << worker)
            self.check_unanswered(Outcome.DONE_COLLECTED, packets.port_of(worker), asked)
        known = {"workers": 0b011 | ELSEWHERE, "heartbeats": 0b011}
        answer = packets.barrier_answer(Kind.WAITING, asked, to=2, **known)
        self.exchange(Outcome.DONE_REPEATED, 2, asked, answer)
        changes = ((2, 0b100, 0b111), (2, 0, 0b011), (0, 0, 0b010), (1, 0, 0))
        for worker, heartbeat, heartbeats in changes:
            busy = packets.done(worker, block=0, heartbeat=heartbeat)
            reported = packets.resigned(busy, Src_id=LEAF, Dst_id=0)
            reported["Barrier"].workers = heartbeats
            answers = {ABOVE: packets.relayed(reported, to=ABOVE)}
            self.exchange(Outcome.DONE_REPEATED, packets.port_of(worker), busy, answers)


class SpineKnowsTheHeartbeatsOfWorkers(LeavesTest):
    """A leaf reports those of its own workers only."""

    def runTest(self) -> None:
        waits = packets.done(0, block=1)
        self.check_unanswered(Outcome.DONE_COLLECTED, 1, waits)
        for said, heartbeats in ((0b1000, 0b1000), (ALL, 0b1100), (0b0100, 0b0100), (0, 0)):
            busy = packets.done(1, block=0, heartbeat=said)
            answer = packets.barrier_answer(Kind.ADVANCE, busy, to=2, workers=0b1111)
            self.exchange(Outcome.DONE_REPEATED, 2, busy, answer)
            known = {"workers": 0b0011, "heartbeats": heartbeats}
            answer = packets.barrier_answer(Kind.WAITING, waits, to=1, **known)
            self.exchange(Outcome.DONE_REPEATED, 1, waits, answer)
