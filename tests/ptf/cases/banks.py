# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""banks.p4: all banks in one pass, each touched at most once."""

from switchgnn.controller import Outcome
from tests.ptf.switchgnn_ptf.entries import BANKS
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1}


class EveryBankSums(SwitchTest):
    """A slot of the same number in each bank keeps its own sum."""

    def runTest(self) -> None:
        for bank in range(BANKS):
            known = bank != 0
            self.add_sum(900 + bank, SOURCES, bank=bank, block=1 + bank, known=known)
        for bank in range(BANKS):
            with self.counted(Outcome.AGGREGATED, 2, passes={1: 2}, completed={bank: 1}):
                self.check_sum(900 + bank, SOURCES, block=1 + bank)


class UpToEightContributionsPerPass(SwitchTest):
    """One pass contributes to as many banks as the entry names; the histogram tells."""

    def runTest(self) -> None:
        uses = {1: [3], 2: [0, 7], 3: [1, 4, 6], 8: list(range(BANKS))}
        self.add_source(101, worker=0)
        for number, banks in uses.items():
            slots = {bank: (10 + bank, 2) for bank in banks}
            self.entries.add_fanout(block=number, source=101, slots=slots)
        for number in uses:
            with self.counted(Outcome.AGGREGATED, passes={number: 1}, completed={}):
                self.send_feature(101, worker=0, block=number)


class NoBankAtAll(SwitchTest):
    """An entry without slots is a pass without contributions, and is acknowledged."""

    def runTest(self) -> None:
        self.add_source(101, worker=0)
        self.entries.add_fanout(block=1, source=101, slots={})
        with self.counted(Outcome.AGGREGATED, passes={0: 1}, completed={}):
            self.send_feature(101, worker=0)


class CompletionInTheMiddle(SwitchTest):
    """A sum leaves from a middle bank, and the way goes on behind that bank."""

    def runTest(self) -> None:
        for source, worker in {101: 0, 102: 1, 103: 2}.items():
            self.add_source(source, worker=worker)
        # 103 is no neighbour of bank 1's destination.
        for source, banks in {101: (0, 1, 2), 102: (0, 1, 2), 103: (0, 2)}.items():
            slots = {bank: (5, 2 if bank == 1 else 3) for bank in banks}
            self.entries.add_fanout(block=1, source=source, slots=slots)
        for bank, worker in enumerate((2, 0, 1)):
            self.add_destination(900 + bank, worker=worker, slot=5, bank=bank)
        with self.counted(Outcome.AGGREGATED, passes={3: 1}, completed={}):
            sent = [self.send_feature(101, worker=0)]
        with self.counted(Outcome.AGGREGATED, passes={2: 1, 1: 1}, completed={1: 1}):
            sent.append(self.send_feature(102, worker=1))
            self.expect_sum(901, sent, worker=0)
        with self.counted(Outcome.AGGREGATED, passes={1: 2}, completed={0: 1, 2: 1}):
            sent.append(self.send_feature(103, worker=2))
            self.expect_sum(900, sent, worker=2)
            self.expect_sum(902, sent, worker=1)


class CompletionInTheLastBank(SwitchTest):
    """Behind the last bank of the entry there is nothing: one pass is enough."""

    def runTest(self) -> None:
        for source, worker in SOURCES.items():
            self.add_source(source, worker=worker)
            slots = {2: (5, 3), 6: (5, 2)}
            self.entries.add_fanout(block=1, source=source, slots=slots)
        self.add_destination(900, worker=2, slot=5, bank=6)
        with self.counted(Outcome.AGGREGATED, 2, passes={2: 2}, completed={6: 1}):
            self.check_sum(900, SOURCES)


class EveryBankCompletes(SwitchTest):
    """One source completes all eight banks: eight passes, eight sums to three workers."""

    def runTest(self) -> None:
        for source, worker in SOURCES.items():
            self.add_source(source, worker=worker)
            slots = {bank: (bank, 2) for bank in range(BANKS)}
            self.entries.add_fanout(block=1, source=source, slots=slots)
        for bank in range(BANKS):
            self.add_destination(900 + bank, worker=bank % 3, slot=bank, bank=bank)
        completed = dict.fromkeys(range(BANKS), 1)
        with self.counted(Outcome.AGGREGATED, 2, passes={8: 1, 1: 8}, completed=completed):
            sent = [self.send_feature(source, worker=own) for source, own in SOURCES.items()]
            for bank in range(BANKS):
                self.expect_sum(900 + bank, sent, worker=bank % 3)


class StaleBankDoesNotStopTheWay(SwitchTest):
    """One bank's slot is newer already; the others still count the contribution."""

    def runTest(self) -> None:
        self.add_sum(900, {103: 2}, slot=5, bank=1, block=2)
        for source, worker in SOURCES.items():
            self.add_source(source, worker=worker)
            slots = dict.fromkeys(range(3), (5, 2))
            self.entries.add_fanout(block=1, source=source, slots=slots)
        for bank in (0, 2):
            self.add_destination(910 + bank, worker=bank, slot=5, bank=bank)
        with self.counted(Outcome.AGGREGATED, completed={1: 1}):
            self.check_sum(900, {103: 2}, block=2)
        events = {"completed": {0: 1, 2: 1}, "stale": {1: 2}}
        with self.counted(Outcome.AGGREGATED, 2, passes={3: 1, 1: 1, 2: 1}, **events):
            sent = [self.send_feature(source, worker=own) for source, own in SOURCES.items()]
            self.expect_sum(910, sent, worker=0)
            self.expect_sum(912, sent, worker=2)
