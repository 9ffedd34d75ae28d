# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""opening.p4: the largest magnitude of a round, whose it is, and until when it may grow."""

import itertools

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import Kind, Refusal
from tests.ptf.switchgnn_ptf.barrier_test import BarrierTest
from tests.ptf.switchgnn_ptf.packets import NEXT_ROUND
from tests.ptf.switchgnn_ptf.switch_test import MEMBERS


class MagnitudeIsTheLargest(BarrierTest):
    """Whoever has the largest, first, middle or last: all learn it."""

    def runTest(self) -> None:
        for round_, values in enumerate(((30, 20, 10), (5, 7, 6), (1, 2, 3), (0, 0, 0)), 1):
            opening = {"block": 0, "round_": round_, "following": NEXT_ROUND}
            self.collect(0, magnitude=values[0], **opening)
            self.collect(1, magnitude=values[1], **opening)
            with self.counted(Outcome.DONE_COLLECTED):
                packet = self.report(2, magnitude=values[2], **opening)
                largest = {"magnitude": max(values), "largest": values.index(max(values))}
                self.expect_advance(packet, round_=round_, **largest)


class MagnitudesCompareLikeFloats(BarrierTest):
    """From the smallest float32 to the largest."""

    def runTest(self) -> None:
        bits = [0x00000001, 0x00800000, 0x3F800000, 0x7F7FFFFF]
        for round_, (low, high) in enumerate(itertools.pairwise(bits), 1):
            opening = {"block": 0, "round_": round_, "following": NEXT_ROUND}
            self.collect(0, magnitude=high, **opening)
            self.collect(1, magnitude=low, **opening)
            with self.counted(Outcome.DONE_COLLECTED):
                packet = self.report(2, magnitude=0, **opening)
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
        self.open(magnitude=50, following=NEXT_ROUND)
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


class RestartBeforeAllHaveHeard(BarrierTest):
    """Who did not hear says its own magnitude first; who did then teaches the right one."""

    def runTest(self) -> None:
        self.collect(0, block=0, magnitude=30)
        self.collect(1, block=0, magnitude=10)
        with self.counted(Outcome.DONE_COLLECTED):
            self.expect_advance(self.report(2, block=0, magnitude=20), magnitude=30)
        self.restart()
        self.collect(2, block=0, magnitude=20)
        self.collect(0, block=1, magnitude=30)
        agreed = {"magnitude": 30}
        self.ask(2, Kind.ADVANCE, workers=MEMBERS, answer=agreed, block=0, magnitude=20)
        self.collect(1, block=1, magnitude=30)
        self.complete(2, block=1, magnitude=30)
