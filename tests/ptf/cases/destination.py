# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""destination.p4: behind which port a destination vertex is, and which slot sums for it."""

from switchgnn.controller import Outcome
from tests.ptf.switchgnn_ptf.packets import fetch, recall
from tests.ptf.switchgnn_ptf.recovery_test import RecoveryTest

SOURCES = {101: 0, 102: 1}


class UnknownDestinationIsRefused(RecoveryTest):
    """A vertex without an entry cannot be recalled, fetched for, or sent to; 900 can."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.UNKNOWN_VERTEX, 3):
            self.send(3, recall(901, port=3), fetch(101, 901, port=3))
            self.send_feature(101, worker=0, Resend=1, Dst_id=901, Echo=1)
        self.check_missing(900, count=0)
        self.check_resent(101, 900, worker=0, owner=2)
        self.check_fetch(101, 900, owner=0)


class DestinationOfAnotherBlock(RecoveryTest):
    """A destination is one of its block: in another it is unknown."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.UNKNOWN_VERTEX, 3):
            self.send(3, recall(900, port=3, block=2), fetch(101, 900, port=3, block=2))
            self.send_feature(101, worker=0, block=2, Resend=1, Dst_id=900)
        with self.counted(Outcome.AGGREGATED, 2, completed={0: 1}):
            self.check_sum(900, SOURCES)


class PlaceDependsOnBlockAndVertex(RecoveryTest):
    """The same vertex has another slot in another block; its neighbour has another worker."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES, slot=7, bank=0, block=1)
        self.add_sum(900, SOURCES, slot=8, bank=3, block=2, known=True)
        self.add_source(103, worker=1)
        self.entries.add_fanout(block=1, source=103, slots={5: (7, 2)})
        self.add_destination(901, worker=0, slot=7, bank=5, expected=2)
        with self.counted(Outcome.AGGREGATED, 4, completed={0: 1}):
            first = [self.send_feature(s, worker=own) for s, own in SOURCES.items()]
            self.expect_sum(900, first)
            self.send_feature(103, worker=1)
            self.send_feature(101, worker=0, block=2)
        self.check_recalled(900, first)
        self.check_missing(901, count=1, worker=0)
        self.check_missing(900, count=1, block=2)
