"""Slots of strawman/banks.p4 that two jobs share: one per bank, with two destinations per job."""

from collections.abc import Iterable
from typing import Any

from scapy.packet import Packet

from switchgnn.controller import Outcome
from switchgnn.controller.base.place import Place
from tests.ptf.cases.job import FIRST, SECOND, JobTest
from tests.ptf.switchgnn_ptf.entries import BANKS
from tests.ptf.switchgnn_ptf.packets import (
    Lanes,
    feature,
    fetch,
    random_lanes,
    relayed,
    relayed_fetch,
    resigned,
    sum_of,
    sum_to,
)

Sent = list[tuple[Packet, Lanes]]
# Destination vertex to the workers of its sources; its own worker is 1.
FAN_IN = {900: {101: 0, 102: 1}, 910: {111: 0, 112: 1}}
# A source of worker 0 in two banks, with a destination in each.
WIDE, DESTINATIONS = 201, (960, 961)
NEVER, AT_ONCE = 1 << 31, 1


class SharedTest(JobTest):
    """Cases of two jobs with one slot."""

    strawman = True

    def setUp(self) -> None:
        super().setUp()
        self.age_of(NEVER)
        self.each(self._add_sums)

    def _add_sums(self) -> None:
        for number, (vertex, sources) in enumerate(FAN_IN.items()):
            self.add_sum(vertex, sources, worker=1, slot=number)
        self.add_source(WIDE, worker=0)
        self.entries.add_fanout(block=1, source=WIDE, slots={0: (2, 2), 1: (2, 2)})
        for bank, vertex in enumerate(DESTINATIONS):
            self.add_destination(vertex, worker=1, slot=2, bank=bank)

    def age_of(self, milliseconds: int) -> None:
        """Let a slot be free that was not touched so long."""
        limits = {f"limit{bank}": 1 for bank in range(BANKS)}
        self.entries.set("slot_limits", "set_limits", **limits, age=milliseconds)

    def contribute(self, place: Place, source: int, **fields: Any) -> tuple[Packet, Lanes]:
        """Send a feature, of other lanes in each job, from its worker there."""
        port = place.ports[0 if source == WIDE else FAN_IN[vertex_of(source)][source]]
        lanes = random_lanes(1000 * place.job + source)
        packet = feature(source, lanes, port=port, **fields)
        self.send(port, packet)
        return packet, lanes

    def fill(self, place: Place, source: int, **fields: int) -> Sent:
        """Send a feature that stays in the switch."""
        with self.counted(Outcome.AGGREGATED, completed={}):
            return [self.contribute(place, source, **fields)]

    def overflow(self, place: Place, source: int, **fields: int) -> None:
        """Send a feature that finds no slot: it must reach the worker as it came."""
        with self.counted(Outcome.AGGREGATED, completed={}, overflowed={0: 1}):
            packet, _ = self.contribute(place, source, **fields)
            to = place.ports[1]
            passed = resigned(packet, Dst_id=vertex_of(source), Echo=0)
            self.expect(to, relayed(passed, to=to))

    def complete(
        self, place: Place, source: int, before: Iterable[tuple[Packet, Lanes]] = (), **fields: int
    ) -> None:
        """Send the last feature for a destination: the part with those ``before`` must leave."""
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            sent = [*before, self.contribute(place, source, **fields)]
            to, total = place.ports[1], sum_of(lanes for _, lanes in sent)
            ids = sum(packet["SwitchGNN"].Src_id for packet, _ in sent)
            by = sent[-1][0]
            part = sum_to(
                to, vertex_of(source), total, count=len(sent), completed_by=by, sources=ids
            )
            self.expect(to, part)


class ASlotServesOneJobAfterTheOther(SharedTest):
    """Beside the slot of a job features of another one go to its worker, until a sum leaves."""

    def runTest(self) -> None:
        held = self.fill(FIRST, 101)
        self.overflow(SECOND, 101)
        self.overflow(FIRST, 112)
        self.complete(FIRST, 102, held)
        self.complete(SECOND, 112, self.fill(SECOND, 111))


class AFetchGivesTheSlotToOthers(SharedTest):
    """The slot of a destination that fetches is free for another job."""

    def runTest(self) -> None:
        self.fill(FIRST, 101)
        to, owner = FIRST.ports[1], FIRST.ports[0]
        packet = fetch(101, 900, port=to)
        with self.counted(Outcome.FETCHED, passes={}, completed={}, released={0: 1}):
            self.send(to, packet)
            self.expect(owner, relayed_fetch(packet, to=owner))
        self.complete(SECOND, 102, self.fill(SECOND, 101))


class ANewerTagTakesTheSlotOfItsJob(SharedTest):
    """Another job waits; what comes late for the part that is lost is added to no other one."""

    def runTest(self) -> None:
        self.fill(FIRST, 101)
        self.overflow(SECOND, 111, fragment=1)
        held = self.fill(FIRST, 111, fragment=1)
        self.overflow(FIRST, 102)
        self.complete(FIRST, 112, held, fragment=1)


class ASlotIsOwnedInLaterPassesToo(SharedTest):
    """A packet that goes around the loop has lost the time of its arrival, unless it is kept."""

    def runTest(self) -> None:
        with self.counted(Outcome.AGGREGATED, passes={2: 1}, completed={}):
            self.contribute(FIRST, WIDE)
        events = {"completed": {}, "overflowed": {0: 1, 1: 1}}
        with self.counted(Outcome.AGGREGATED, passes={1: 2}, **events):
            packet, _ = self.contribute(SECOND, WIDE)
            to = SECOND.ports[1]
            for vertex in DESTINATIONS:
                self.expect(to, relayed(resigned(packet, Dst_id=vertex, Echo=0), to=to))


class AnOldSlotIsTakenOver(SharedTest):
    """A job that is killed keeps no slot; if it was only slow, its part is lost."""

    def runTest(self) -> None:
        self.fill(FIRST, 101)
        self.overflow(SECOND, 111)
        self.age_of(AT_ONCE)
        held = self.fill(SECOND, 101)
        self.age_of(NEVER)
        self.overflow(FIRST, 102)
        self.complete(SECOND, 102, held)


def vertex_of(source: int) -> int:
    """Return the destination of a source."""
    return next(vertex for vertex, sources in FAN_IN.items() if source in sources)
