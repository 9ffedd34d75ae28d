# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""source.p4: behind which port a source vertex is."""

from switchgnn.controller import Outcome
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1}


class UnknownVertexIsDropped(SwitchTest):
    """A vertex without an entry changes nothing, and is not acknowledged."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        self.entries.add_fanout(block=1, source=103, slots={0: (7, 2)})
        with self.counted(Outcome.UNKNOWN_VERTEX, 2, passes={}):
            self.send_feature(103, worker=0)
            self.send_feature(103, worker=0, round_=2, Echo=1)
        with self.counted(Outcome.AGGREGATED, 2):
            self.check_sum(900, SOURCES)


class SourcesBehindOnePort(SwitchTest):
    """Many vertices of one worker, and of several, keep their own place in Seen."""

    def runTest(self) -> None:
        sources = {101: 0, 103: 0, 0: 0, 2**31 - 1: 1}
        self.add_sum(900, sources)
        with self.counted({Outcome.AGGREGATED: 4, Outcome.DUPLICATE: 4}, completed={0: 1}):
            self.check_sum(900, sources)
            for source, worker in sources.items():
                self.send_feature(source, worker=worker)
