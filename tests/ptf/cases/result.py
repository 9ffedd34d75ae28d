# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""result.p4: where a complete sum goes."""

from switchgnn.controller import Outcome
from tests.ptf.switchgnn_ptf.packets import ack_of
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1}


class SumGoesToItsWorker(SwitchTest):
    """Each worker gets its own destinations, also the one that sent the last feature."""

    def runTest(self) -> None:
        for worker in (0, 1, 2):
            block, known = 1 + worker, worker != 0
            self.add_sum(900 + worker, SOURCES, worker=worker, block=block, known=known)
        for worker in (0, 1, 2):
            with self.counted(Outcome.AGGREGATED, 2, completed={0: 1}):
                self.check_sum(900 + worker, SOURCES, worker=worker, block=1 + worker)


class KeyIsBlockBankAndSlot(SwitchTest):
    """The same slot means another destination in another block or bank."""

    def runTest(self) -> None:
        places = [(1, 0, 7), (1, 1, 7), (1, 2, 8), (2, 0, 7)]
        self.add_source(101, worker=0)
        for block in (1, 2):
            slots = {bank: (slot, 1) for own, bank, slot in places if own == block}
            self.entries.add_fanout(block=block, source=101, slots=slots)
        for number, (block, bank, slot) in enumerate(places):
            self.add_destination(900 + number, worker=1, slot=slot, bank=bank, block=block)
        with self.counted(Outcome.AGGREGATED, passes={1: 3}, completed={0: 1, 1: 1, 2: 1}):
            sent = [self.send_feature(101, worker=0)]
            for number in range(3):
                self.expect_sum(900 + number, sent, worker=1)
        with self.counted(Outcome.AGGREGATED, passes={1: 1}, completed={0: 1}):
            self.expect_sum(903, [self.send_feature(101, worker=0, block=2)], worker=1)


class UnroutedSumIsCounted(SwitchTest):
    """A sum without an entry goes nowhere; the way goes on behind it, to its ACK."""

    def runTest(self) -> None:
        self.add_source(101, worker=0)
        self.entries.add_fanout(block=1, source=101, slots={1: (7, 1), 4: (7, 1), 6: (7, 1)})
        self.add_destination(900, worker=2, slot=7, bank=4)
        events = {"completed": {1: 1, 4: 1, 6: 1}, "unrouted": 2}
        with self.counted(Outcome.AGGREGATED, passes={1: 3}, **events):
            sent = self.send_feature(101, worker=0, Echo=1)
            self.expect_sum(900, [sent])
            self.expect(1, ack_of(sent[0], accepted=1))
