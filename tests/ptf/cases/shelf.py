"""Limits and banks of strawman/banks.p4: slots that are handed out, first come, first served."""

from switchgnn.controller import Outcome
from tests.ptf.switchgnn_ptf.bases import ShelfTest


class SlotIsGivenBackWithTheSum(ShelfTest):
    """One slot serves one destination after the other."""

    def runTest(self) -> None:
        self.complete(102, self.fill(101))
        self.complete(113, self.fill(111, 112))
        self.complete(122, self.fill(121))


class FirstComeFirstServed(ShelfTest):
    """A feature without a free slot goes to the worker unchanged."""

    def runTest(self) -> None:
        held = self.fill(101)
        self.overflow(111, 121, 112)
        self.complete(102, held)


class AMarkIsKeptWithTheSlot(ShelfTest):
    """What finds no slot meanwhile is not marked, and neither is the next sum."""

    def runTest(self) -> None:
        for fragment, mark in enumerate((1, 0)):
            held = self.fill(101, fragment=fragment, ECN=mark)
            self.overflow(111, fragment=fragment)
            self.complete(102, held, fragment=fragment)


class LastContributionAloneIsASumOfOne(ShelfTest):
    """It needs no slot, but leaves as a sum when one is free, and as it is when none is."""

    def runTest(self) -> None:
        held = self.fill(101)
        self.overflow(121, 111, 112, 113)
        self.complete(102, held)
        self.complete(122)
        held = self.fill(111, fragment=1)
        self.overflow(121, 122, fragment=1)
        self.complete(113, [*held, *self.fill(112, fragment=1)], fragment=1)


class StaleContributionChangesNothing(ShelfTest):
    """Once a bank has seen a newer tag, an older one takes, adds and completes nothing."""

    def runTest(self) -> None:
        self.fill(101)
        newer = self.fill(111, 112, fragment=1)
        with self.counted(Outcome.AGGREGATED, stale={0: 1}, completed={}):
            self.feature(102)
        with self.counted(Outcome.AGGREGATED, stale={0: 1}, completed={}):
            self.feature(121)
        self.complete(113, newer, fragment=1)


class FetchGivesTheSlotBack(ShelfTest):
    """An abandoned destination takes nothing any more, and its slot is free for others."""

    def runTest(self) -> None:
        self.fill(101)
        self.check_fetch(101, 900, owner=0)
        self.complete(113, self.fill(111, 112))
        with self.counted(Outcome.AGGREGATED, completed={}, released={0: 1}):
            self.feature(102)
        self.check_missing(900, count=0xFFFF)


class RecallTellsWhatWasSeen(ShelfTest):
    """Never the sum, which is gone; nothing changes."""

    def runTest(self) -> None:
        self.check_missing(910, count=0)
        held = self.fill(101)
        self.overflow(111)
        self.check_missing(910, count=1)
        self.check_missing(900, count=1)
        self.complete(102, held)
        self.check_missing(900, count=2)
        self.complete(113, self.fill(112))
        self.check_missing(910, count=3)
        self.check_missing(910, count=0, fragment=1)
        self.check_missing(920, count=0)
        self.complete(122, self.fill(121))


class EveryBankHasItsOwnSlots(ShelfTest):
    """Two full banks among three: two copies leave, and the loop resumes after each."""

    def runTest(self) -> None:
        self.add_source(201, worker=0)
        self.add_source(202, worker=1)
        self.add_source(203, worker=1)
        self.entries.add_fanout(source=201, slots={0: (50, 3), 2: (50, 3)})
        self.entries.add_fanout(source=202, slots={0: (51, 3), 1: (51, 1), 2: (51, 3), 3: (51, 2)})
        self.entries.add_fanout(source=203, slots={3: (51, 2)})
        for bank in range(4):
            self.add_destination(960 + bank, worker=2, slot=51, bank=bank)
        with self.counted(Outcome.AGGREGATED, completed={}):
            self.send_feature(201, worker=0)
        events = {"overflowed": {0: 1, 2: 1}, "completed": {1: 1}}
        with self.counted(Outcome.AGGREGATED, passes={1: 4}, **events):
            sent = self.send_feature(202, worker=1)
            self.expect_overflow(sent[0], 960)
            self.expect_part(961, [sent])
            self.expect_overflow(sent[0], 962)
        with self.counted(Outcome.AGGREGATED, completed={3: 1}):
            self.expect_part(963, [sent, self.send_feature(203, worker=1)])
