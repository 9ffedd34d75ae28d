# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""fanout.p4: into which slots a source's feature goes."""

from switchgnn.controller import Outcome
from tests.ptf.switchgnn_ptf.packets import RELEASED, feature, port_of, random_lanes, sum_of, sum_to
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1}


class UnknownBlockIsDropped(SwitchTest):
    """A source that the block does not have changes nothing and is not remembered."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.UNKNOWN_BLOCK, 2, passes={}):
            self.send_feature(101, worker=0, block=2)
            self.send_feature(101, worker=0, block=2, round_=2, Echo=1)
        with self.counted(Outcome.AGGREGATED, 2):
            self.check_sum(900, SOURCES)


class WrongCountIsDropped(SwitchTest):
    """A feature that claims more or fewer contributions than the plan is not remembered."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.WRONG_COUNT, 3, passes={}):
            for count in (0, 2, 0xFFFF):
                self.send_feature(101, worker=0, count=count, Echo=1)
        with self.counted(Outcome.AGGREGATED, 2):
            self.check_sum(900, SOURCES)


class PartialSumsCountAsMany(SwitchTest):
    """A partial sum of three and a raw feature complete a slot that expects four."""

    def runTest(self) -> None:
        for source, count in ((101, 3), (102, 1)):
            self.add_source(source, worker=source - 101)
            self.entries.add_fanout(block=1, source=source, slots={0: (7, 4)}, count=count)
        self.add_destination(900, worker=2, slot=7)
        with self.counted(Outcome.WRONG_COUNT, 2):
            self.send_feature(101, worker=0, count=1)
            self.send_feature(102, worker=1, count=3)
        lanes = [random_lanes(1), random_lanes(2)]
        last = feature(102, lanes[1], port=port_of(1))
        with self.counted(Outcome.AGGREGATED, 2, passes={1: 2}, completed={0: 1}):
            self.send(1, feature(101, lanes[0], port=1, count=3))
            self.send(2, last)
            self.expect(3, sum_to(3, 900, sum_of(lanes), count=4, completed_by=last))


class LargestPartialSum(SwitchTest):
    """One partial sum of 65,534 contributions completes a slot by itself."""

    def runTest(self) -> None:
        largest = RELEASED - 1
        self.add_source(101, worker=0)
        self.entries.add_fanout(block=1, source=101, slots={0: (7, largest)}, count=largest)
        self.add_destination(900, worker=2, slot=7)
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            packet, lanes = self.send_feature(101, worker=0, count=largest)
            self.expect(3, sum_to(3, 900, lanes, count=largest, completed_by=packet))


class FanoutDependsOnBlock(SwitchTest):
    """The same source goes to other slots in another block."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES, slot=7, block=1)
        self.add_sum(901, SOURCES, slot=8, block=2, worker=0, known=True)
        with self.counted(Outcome.AGGREGATED, 4, passes={1: 4}, completed={0: 2}):
            self.check_sum(900, SOURCES, block=1)
            self.check_sum(901, SOURCES, block=2, worker=0)


class PartialSumDependsOnBlock(SwitchTest):
    """The same partial sum's id stands for other rows in another block, and for its worker only."""

    def runTest(self) -> None:
        partial = 2**31 + 5
        self.add_source(partial, worker=0)
        for block, count in ((1, 3), (2, 2)):
            slots = {0: (6 + block, count)}
            self.entries.add_fanout(block=block, source=partial, slots=slots, count=count)
            self.add_destination(899 + block, worker=2, slot=6 + block, block=block)
        with self.counted({Outcome.WRONG_COUNT: 2, Outcome.WRONG_PORT: 1}):
            self.send_feature(partial, worker=0, block=1, count=2)
            self.send_feature(partial, worker=0, block=2, count=3)
            self.send_feature(partial, worker=1, block=1, count=3)
        with self.counted(Outcome.AGGREGATED, 2, passes={1: 2}, completed={0: 2}):
            for block, count in ((1, 3), (2, 2)):
                packet, lanes = self.send_feature(partial, worker=0, block=block, count=count)
                self.expect(3, sum_to(3, 899 + block, lanes, count=count, completed_by=packet))


class MissingHopEndsTheWay(SwitchTest):
    """A hole in the hops: what came before counts, nothing comes after, and no ACK tells lies."""

    def runTest(self) -> None:
        self.add_source(101, worker=0)
        self.entries.add_fanout(block=1, source=101, slots={0: (7, 1)}, last_hop=False)
        self.add_destination(900, worker=2, slot=7)
        with self.counted(Outcome.AGGREGATED, passes={1: 1}, completed={0: 1}):
            self.expect_sum(900, [self.send_feature(101, worker=0, Echo=1)])
