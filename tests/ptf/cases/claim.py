# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""claim.p4: which of the vertices that a packet names must be known."""

from switchgnn.controller import Outcome
from tests.ptf.switchgnn_ptf.packets import feature, fetch, random_lanes
from tests.ptf.switchgnn_ptf.recovery_test import SOURCES, SumTest


class OrdinaryFeatureNeedsNoDestination(SumTest):
    """Without Resend nobody looks at Dst_id, known, foreign or not."""

    def runTest(self) -> None:
        for number, vertex in enumerate((0, 900, 12345)):
            with self.counted(Outcome.AGGREGATED, 3, completed={0: 1}):
                self.check_sum(900, SOURCES, fragment=number, Dst_id=vertex)


class RecallNeedsNoSource(SumTest):
    """Whatever Src_id says: the source table is not asked."""

    def runTest(self) -> None:
        sent = self.contribute(101)
        for source in (0, 101, 999):
            self.check_missing(900, count=1, Src_id=source)
        self.complete(102, 103, before=sent)


class UnknownSourceIsNotFetched(SumTest):
    """Nobody is asked for it, and the slot is not released."""

    def runTest(self) -> None:
        with self.counted(Outcome.UNKNOWN_VERTEX, 2, completed={}):
            self.send(3, fetch(109, 900, port=3), fetch(900, 900, port=3))
        self.complete(*SOURCES)
        self.check_fetch(101, 900, owner=0)


class UnknownSourceIsNotResent(SumTest):
    """A source that the plan does not know reaches nobody."""

    def runTest(self) -> None:
        with self.counted(Outcome.UNKNOWN_VERTEX):
            self.send(1, feature(109, random_lanes(1), port=1, Resend=1, Dst_id=900))
        self.check_resent(101, 900, worker=0, owner=2)
