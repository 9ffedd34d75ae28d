# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""incarnation.p4: one process after another may be a worker, in later rounds only."""

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import Refusal
from tests.ptf.switchgnn_ptf.barrier_test import BarrierTest
from tests.ptf.switchgnn_ptf.packets import (
    NEXT_ROUND,
    WORKERS,
    port_of,
)


class IncarnationTest(BarrierTest):
    """Workers that have opened round 1, each in its process number 5."""

    def setUp(self) -> None:
        super().setUp()
        for worker in WORKERS:
            self.report(worker, block=0, incarnation=5)
        for to in map(port_of, WORKERS):
            self.receive(to)


class AnotherProcessIsRefused(IncarnationTest):
    """Where a worker has been, and until a later round; then the one before it is."""

    def runTest(self) -> None:
        for block, incarnation in ((0, 6), (1, 6), (0, 0)):
            with self.counted(Outcome.WRONG_INCARNATION):
                packet = self.report(1, block=block, incarnation=incarnation)
                self.expect_refusal(packet, Refusal.INCARNATION, largest=0, round_=None)
        last = {"block": 1, "incarnation": 5, "following": NEXT_ROUND}
        self.collect(1, 0, **last)
        self.complete(2, **last)
        self.collect(1, block=0, round_=2, incarnation=6)
        with self.counted(Outcome.WRONG_INCARNATION):
            packet = self.report(1, block=1, incarnation=5)
            self.expect_refusal(packet, Refusal.INCARNATION, largest=0, round_=None)
        # A new session knows nobody.
        self.serve(session=self.session + 1)
        self.collect(1, block=0, incarnation=5)


class WhoMaySendEarlyHasBeenInTheRound(IncarnationTest):
    """When a second process opens the round the switch may have features of the first one."""

    def runTest(self) -> None:
        last = {"block": 1, "incarnation": 5, "following": (1, 0), "early": True}
        self.collect(1, 0, **last)
        self.complete(2, **last)
        with self.counted(Outcome.WRONG_INCARNATION):
            packet = self.report(1, block=0, round_=2, incarnation=6)
            self.expect_refusal(packet, Refusal.INCARNATION, largest=0, round_=None)
        self.collect(1, block=0, round_=2, incarnation=5)
