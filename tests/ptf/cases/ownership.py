# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""ownership.p4: a worker speaks for its own vertices only (invariant 6)."""

from switchgnn.controller import Outcome
from tests.ptf.switchgnn_ptf.packets import (
    PORTS,
    STRANGER_PORT,
    feature,
    fetch,
    random_lanes,
    recall,
)
from tests.ptf.switchgnn_ptf.recovery_test import RecoveryTest
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1}
OWNER = 3  # the port of the destination's worker
OTHERS = [port for port in PORTS if port != OWNER]


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


class ForeignSumIsNotRecalled(RecoveryTest):
    """Neither a source's worker nor a stranger is told anything of another worker's sum."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.AGGREGATED):
            sent = [self.send_feature(101, worker=0)]
        self._try()
        self.check_missing(900, count=1)
        with self.counted(Outcome.AGGREGATED):
            sent.append(self.send_feature(102, worker=1))
            self.expect_sum(900, sent)
        self._try()
        self.check_recalled(900, sent)

    def _try(self) -> None:
        with self.counted(Outcome.WRONG_PORT, len(OTHERS), completed={}):
            for port in OTHERS:
                self.send(port, recall(900, port=port))


class ForeignRecallOfANewTag(RecoveryTest):
    """Another worker's recall does not take a slot over for a newer tag, either."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.AGGREGATED):
            sent = [self.send_feature(101, worker=0)]
        with self.counted(Outcome.WRONG_PORT, len(OTHERS)):
            for port in OTHERS:
                self.send(port, recall(900, port=port, round_=2))
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            sent.append(self.send_feature(102, worker=1))
            self.expect_sum(900, sent)


class ForeignSumIsNotFetched(RecoveryTest):
    """Nobody but its worker releases a slot, or gets at the features of its sum."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.AGGREGATED):
            sent = [self.send_feature(101, worker=0)]
        with self.counted(Outcome.WRONG_PORT, 2 * len(OTHERS)):
            for port in OTHERS:
                for source in SOURCES:
                    self.send(port, fetch(source, 900, port=port))
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            sent.append(self.send_feature(102, worker=1))
            self.expect_sum(900, sent)
        self.check_fetch(102, 900, owner=1)


class ForeignFeatureIsNotResent(RecoveryTest):
    """A resent feature comes from its source's port; the destination's helps nobody."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        lanes = random_lanes(1)
        with self.counted(Outcome.WRONG_PORT, 3):
            for port in (2, OWNER, STRANGER_PORT):
                self.send(port, feature(101, lanes, port=port, Resend=1, Dst_id=900))
        self.check_resent(101, 900, worker=0, owner=2)
        with self.counted(Outcome.AGGREGATED, 2, completed={0: 1}):
            self.check_sum(900, SOURCES)


class RecoveryDoesNotBelieveAddresses(RecoveryTest):
    """A recall or fetch under the owner's addresses, from another port, is refused."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.WRONG_PORT, 2):
            self.send(1, recall(900, port=OWNER), fetch(101, 900, port=OWNER))
        self.check_missing(900, count=0)
        with self.counted(Outcome.AGGREGATED, 2, completed={0: 1}):
            self.check_sum(900, SOURCES)
