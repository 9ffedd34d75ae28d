# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""fanout.p4: into which slots a source's feature goes."""

from switchgnn.controller import Outcome
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
    """The feature of a vertex that claims to be none, or several, is not remembered."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.WRONG_COUNT, 3, passes={}):
            for count in (0, 2, 0xFFFF):
                self.send_feature(101, worker=0, count=count, Echo=1)
        with self.counted(Outcome.AGGREGATED, 2):
            self.check_sum(900, SOURCES)


class FanoutDependsOnBlock(SwitchTest):
    """The same source goes to other slots in another block."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES, slot=7, block=1)
        self.add_sum(901, SOURCES, slot=8, block=2, worker=0, known=True)
        with self.counted(Outcome.AGGREGATED, 4, passes={1: 4}, completed={0: 2}):
            self.check_sum(900, SOURCES, block=1)
            self.check_sum(901, SOURCES, block=2, worker=0)


class MissingHopEndsTheWay(SwitchTest):
    """A hole in the hops: what came before counts, nothing comes after, and no ACK tells lies."""

    def runTest(self) -> None:
        self.add_source(101, worker=0)
        self.entries.add_fanout(block=1, source=101, slots={0: (7, 1)}, last_hop=False)
        self.add_destination(900, worker=2, slot=7)
        with self.counted(Outcome.AGGREGATED, passes={1: 1}, completed={0: 1}):
            self.expect_sum(900, [self.send_feature(101, worker=0, Echo=1)])
