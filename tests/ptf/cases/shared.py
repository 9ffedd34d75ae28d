"""Slots of strawman/banks.p4 that two jobs share: one per bank, with two destinations per job."""

from typing import ClassVar

from switchgnn.controller import Outcome
from switchgnn.controller.base.place import Place
from tests.ptf.cases.job import FIRST, SECOND, JobTest
from tests.ptf.switchgnn_ptf.bases import ShelfTest
from tests.ptf.switchgnn_ptf.entries import BANKS
from tests.ptf.switchgnn_ptf.packets import fetch, relayed_fetch

# A source of worker 0 in two banks, with a destination in each.
WIDE, DESTINATIONS = 201, (960, 961)
NEVER, AT_ONCE = 1 << 31, 1


class SharedTest(JobTest, ShelfTest):
    """Cases of two jobs with one slot."""

    # Destination vertex to the workers of its sources.
    fan_in: ClassVar = {900: {101: 0, 102: 1}, 910: {111: 0, 112: 1}}
    receiver = 1

    def setUp(self) -> None:
        super().setUp()
        self.limit(BANKS, NEVER)

    def add_sums(self) -> None:
        self.each(super().add_sums)
        self.each(self._add_wide)

    def _add_wide(self) -> None:
        self.add_source(WIDE, worker=0)
        self.entries.add_fanout(source=WIDE, slots={0: (2, 2), 1: (2, 2)})
        for bank, vertex in enumerate(DESTINATIONS):
            self.add_destination(vertex, worker=1, slot=2, bank=bank)

    def of(self, place: Place) -> "SharedTest":
        """Let all that follows be of the job at a place."""
        self.entries.place = place
        return self


class ASlotServesOneJobAfterTheOther(SharedTest):
    """Beside the slot of a job features of another one go to its worker, until a sum leaves."""

    def runTest(self) -> None:
        held = self.of(FIRST).fill(101)
        self.of(SECOND).overflow(101)
        self.of(FIRST).overflow(112)
        self.complete(102, held)
        self.of(SECOND).complete(112, self.of(SECOND).fill(111))


class AFetchGivesTheSlotToOthers(SharedTest):
    """The slot of a destination that fetches is free for another job."""

    def runTest(self) -> None:
        self.of(FIRST).fill(101)
        owner, to = FIRST.ports
        packet = fetch(101, 900, port=to)
        with self.counted(Outcome.FETCHED, passes={}, completed={}, released={0: 1}):
            self.send(to, packet)
            self.expect(owner, relayed_fetch(packet, to=owner))
        self.of(SECOND).complete(102, self.of(SECOND).fill(101))


class ANewerTagTakesTheSlotOfItsJob(SharedTest):
    """Another job waits; what comes late for the part that is lost is added to no other one."""

    def runTest(self) -> None:
        self.of(FIRST).fill(101)
        self.of(SECOND).overflow(111, fragment=1)
        held = self.of(FIRST).fill(111, fragment=1)
        self.overflow(102)
        self.complete(112, held, fragment=1)


class ASlotIsOwnedInLaterPassesToo(SharedTest):
    """A packet that goes around the loop has lost the time of its arrival, unless it is kept."""

    def runTest(self) -> None:
        with self.counted(Outcome.AGGREGATED, passes={2: 1}, completed={}):
            self.of(FIRST).send_feature(WIDE, worker=0)
        events = {"completed": {}, "overflowed": {0: 1, 1: 1}}
        with self.counted(Outcome.AGGREGATED, passes={1: 2}, **events):
            packet, _ = self.of(SECOND).send_feature(WIDE, worker=0)
            for vertex in DESTINATIONS:
                self.expect_overflow(packet, vertex)


class AnOldSlotIsTakenOver(SharedTest):
    """A job that is killed keeps no slot; if it was only slow, its part is lost."""

    def runTest(self) -> None:
        self.of(FIRST).fill(101)
        self.of(SECOND).overflow(111)
        self.limit(BANKS, AT_ONCE)
        held = self.fill(101)
        self.limit(BANKS, NEVER)
        self.of(FIRST).overflow(102)
        self.of(SECOND).complete(102, held)
