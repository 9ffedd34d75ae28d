# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""source.p4: a worker speaks for its own vertices only (invariant 6)."""

from switchgnn.controller import Outcome
from switchgnn_ptf.packets import feature, random_lanes
from switchgnn_ptf.switch_test import SwitchTest

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


class ForeignVertexIsDropped(SwitchTest):
    """A vertex of another worker changes nothing; its owner is still heard afterwards."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.WRONG_PORT, 3, passes={}):
            for source, port in ((101, 2), (102, 1), (101, 3)):
                self.send(port, feature(source, random_lanes(port), port=port, Echo=1))
        with self.counted(Outcome.AGGREGATED, 2):
            self.check_sum(900, SOURCES)


class AddressesAreNotBelieved(SwitchTest):
    """Whose frame it is, the port says: a forged Ethernet or IPv4 source helps nobody."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.WRONG_PORT, passes={}):
            self.send(2, feature(101, random_lanes(1), port=1))
        with self.counted(Outcome.AGGREGATED, 2):
            self.check_sum(900, SOURCES)
