# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""notice.p4: who gets marked packets has all workers told, in its own name only."""

from switchgnn.controller import Outcome
from tests.ptf.switchgnn_ptf.packets import STRANGER_PORT, notice, relayed, resigned
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

WORKER_PORTS = (1, 2, 3)


class NoticeReachesAllWorkers(SwitchTest):
    """Every worker gets it, its sender too, addressed to the worker, with what it counts."""

    def runTest(self) -> None:
        for worker in range(3):
            sent = resigned(notice(worker, block=4, fragment=2, round_=9), Count=7 + worker)
            with self.counted(Outcome.NOTICED, passes={}, completed={}):
                self.send(worker + 1, sent)
                for port in WORKER_PORTS:
                    self.expect(port, relayed(sent, to=port))


class NoticeInAnothersName(SwitchTest):
    """A worker with another's number, and a host that is no worker, are not passed on."""

    def runTest(self) -> None:
        with self.counted(Outcome.WRONG_PORT, 3):
            self.send(2, notice(0))
            self.send(1, resigned(notice(0), Src_id=0x10000))
            self.send(STRANGER_PORT, resigned(notice(3), Src_id=0))


class BrokenNotice(SwitchTest):
    """A notice with a wrong checksum slows nobody down."""

    def runTest(self) -> None:
        broken = resigned(notice(0))
        broken["SwitchGNN"].Checksum = 1
        with self.counted(Outcome.MALFORMED):
            self.send(1, broken)
