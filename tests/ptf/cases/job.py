"""job.p4: two jobs of two workers each, whose packets and entries have the same numbers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from switchgnn.controller import Outcome
from switchgnn.controller.base.place import Place
from switchgnn.controller.controls.forward import BROADCAST
from switchgnn.host.wire.header import Kind
from tests.ptf.switchgnn_ptf import packets
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

LAST_BLOCK = 3
# In each bank, for both pools.
SLOTS = 8
FIRST = Place(1, "first", 0, (1, 2), slots=SLOTS, last_block=LAST_BLOCK, sources=2, workers=2)
_BEHIND = {"first_slot": SLOTS, "first_block": LAST_BLOCK, "first_source": 2, "first_worker": 2}
SECOND = replace(FIRST, job=2, name="second", ports=(3, 4), **_BEHIND)
JOBS = (FIRST, SECOND)
BOTH = 0b11  # the members of each job
PAIR = {101: 0, 102: 1}


class JobTest(SwitchTest):
    """Cases of two jobs."""

    running = JOBS
    """The jobs whose ports are known."""

    def _lay_network(self) -> None:
        for place in JOBS:
            with self.entries.of(place):
                self.entries.admit()
                self.serve(members=BOTH, pools=2, pool_slots=SLOTS // 2)
                for port in place.ports:
                    self.add_station(port)
                if place in self.running:
                    self.connect(list(place.ports))

    def marked_from(self, port: int) -> int:
        return next((place.ports[0] for place in self.running if port in place.ports), 1)

    def each(self, set_up: Callable[[], None]) -> None:
        for place in JOBS:
            with self.entries.of(place):
                set_up()

    def contribute(self, place: Place, source: int, **fields: Any) -> tuple[Packet, packets.Lanes]:
        with self.entries.of(place):
            return self.send_feature(source, worker=PAIR[source], **fields)

    def expect_own(
        self, place: Place, vertex: int, sent: list[tuple[Packet, packets.Lanes]]
    ) -> None:
        with self.entries.of(place):
            self.expect_sum(vertex, sent, worker=1)


class SumsAreSeparate(JobTest):
    """Features of both jobs and both pools take turns."""

    def runTest(self) -> None:
        self.each(lambda: self.add_sum(900, PAIR, worker=1, slot=SLOTS // 2 - 1))
        units = [(place, pool) for place in JOBS for pool in range(2)]
        with self.counted(Outcome.AGGREGATED, len(units), completed={}):
            sent = {
                (place, pool): [self.contribute(place, 101, fragment=pool, Pool=pool)]
                for place, pool in units
            }
        for place, pool in units:
            with self.counted(Outcome.AGGREGATED, completed={0: 1}):
                last = self.contribute(place, 102, fragment=pool, Pool=pool)
                self.expect_own(place, 900, [*sent[place, pool], last])


class TheLoopStaysInTheJob(JobTest):
    """After a turn, a feature still has the slots and blocks of its job, and is counted there."""

    def runTest(self) -> None:
        def set_up() -> None:
            self.add_source(101, worker=0)
            for hop in range(2):
                self.entries.add_fanout(
                    block=LAST_BLOCK, source=101, slots={0: (hop, 1)}, hop=hop, last_hop=hop == 1
                )
                self.add_destination(900 + hop, worker=1, slot=hop, block=LAST_BLOCK)

        self.each(set_up)
        for place in JOBS:
            before = self.counters().jobs
            sent = [self.contribute(place, 101, block=LAST_BLOCK)]
            for hop in range(2):
                self.expect_own(place, 900 + hop, sent)
            # Its last pass was counted before its last sum left.
            for number, (old, new) in enumerate(zip(before, self.counters().jobs, strict=True)):
                own = number == place.job
                self.assertEqual(own, new.frames - old.frames)
                self.assertEqual(own, new.outcomes[Outcome.AGGREGATED] - old.outcomes[0])
                self.assertEqual(2 * own, new.passes.passes - old.passes.passes)


class AcknowledgementsAreSeparate(JobTest):
    """Sources and groups of equal numbers are others in each job."""

    def runTest(self) -> None:
        self.each(lambda: self.add_sum(900, {101: 0, 102: 0, 103: 0}, worker=1))
        with self.counted(Outcome.AGGREGATED, len(JOBS), completed={}):
            for place in JOBS:
                packet, _ = self.contribute(place, 101, Echo=1, Feature_group=3)
                self.expect(place.ports[0], packets.ack_of(packet, accepted=1))


class BarriersAreSeparate(JobTest):
    """A DONE neither completes nor answers the other job's barrier; magnitudes are the job's."""

    def runTest(self) -> None:
        first, second = (self.done(place, place.job - 1, heartbeat=1) for place in JOBS)
        with self.counted(Outcome.DONE_COLLECTED, 2):
            self.send(1, first)
            self.send(4, second)
        with self.counted(Outcome.DONE_REPEATED, 2):
            self.send(1, first)
            self.expect(1, self.answer(Kind.WAITING, first, 1, workers=0b01, heartbeats=0b01))
            self.send(4, second)
            self.expect(4, self.answer(Kind.WAITING, second, 4, workers=0b10, largest=1))
        for place, last in ((SECOND, 0), (FIRST, 1)):
            asked, largest = self.done(place, last), 1 - last
            with self.counted(Outcome.DONE_COLLECTED):
                self.send(place.ports[last], asked)
                for port in place.ports:
                    body = {"workers": BOTH, "largest": largest}
                    self.expect(port, self.answer(Kind.ADVANCE, asked, port, **body))
        # No case may leave a heartbeat behind.
        asked = self.done(FIRST, 0)
        answer = self.answer(Kind.ADVANCE, asked, 1, workers=BOTH)
        self.exchange(Outcome.DONE_REPEATED, 1, asked, answer)

    def done(self, place: Place, worker: int, **fields: int) -> Packet:
        """Return the DONE of a worker that opens a round; it is another process in each job."""
        own = {"magnitude": self.magnitude(place.ports[worker]), "incarnation": place.job}
        return packets.done(worker, block=0, port=place.ports[worker], **own, **fields)

    def answer(self, kind: Kind, asked: Packet, port: int, **body: int) -> Packet:
        """Return the answer that a port gets, with the largest magnitude in its job."""
        return packets.barrier_answer(kind, asked, to=port, magnitude=self.magnitude(port), **body)

    def magnitude(self, port: int) -> int:
        return 50 if port in FIRST.ports else 40


class BundlesAreSeparate(JobTest):
    """The shelf of a worker has rows of its own job only."""

    def runTest(self) -> None:
        rows, width = 2, 20
        sources = [3 << 30, 3 << 30 | 1]

        def set_up() -> None:
            self.serve(members=BOTH, rows=rows)
            for place, source in enumerate(sources):
                self.add_source(source, worker=0)
                row = {"slots": {place: (5, 1)}, "rows": {place: 1}}
                self.entries.add_fanout(source=source, **row)
                slot = {"slot": 5, "bank": place, "place": place, "sums": len(sources)}
                self.add_destination(900 + place, worker=1, **slot)

        self.each(set_up)
        row_of = {}
        for number, source in enumerate(sources):
            for place in JOBS:
                lanes = packets.random_lanes(1000 * place.job + number, rows * width)
                packet = packets.feature(source, lanes, port=place.ports[0])
                row_of[place, number] = lanes.reshape(rows, width)[1]
                with self.counted(Outcome.AGGREGATED, completed={number: 1}):
                    self.send(place.ports[0], packet)
                    if number == 1:
                        own = {each: row_of[place, each] for each in range(2)}
                        to = place.ports[1]
                        bundle = packets.bundle_to(to, own, of=rows, completed_by=packet, worker=1)
                        self.expect(to, bundle)


class AllReducesAreSeparate(JobTest):
    """Fragments of equal numbers do not meet, nor their exponents, heartbeats and senders."""

    FRAGMENT = 700

    def runTest(self) -> None:
        self.each(lambda: self.entries.set_expected(2))
        with self.counted(Outcome.REDUCE_ADDED, 2):
            for place in JOBS:
                self.reduce(place, place.job - 1)
        for place, heartbeat in ((FIRST, 1), (SECOND, 0), (FIRST, 0)):
            worker = place.job - 1
            port = place.ports[worker]
            asked = packets.reducing(worker, self.FRAGMENT, heartbeat=heartbeat, port=port)
            known = {"workers": 1 << worker, "newest": self.FRAGMENT}
            answer = packets.contributors(asked, to=port, heartbeats=heartbeat << worker, **known)
            self.exchange(Outcome.REDUCE_ASKED, port, asked, answer)
        for place in JOBS:
            with self.counted(Outcome.REDUCE_ADDED, completed={0: 1}):
                self.reduce(place, 2 - place.job)
                total = packets.sum_of(self.lanes(place, worker) for worker in range(2))
                for port in place.ports:
                    body = {"session": self.session, "exponent": 10 * place.job, "count": 2}
                    self.expect(port, packets.reduced(port, self.FRAGMENT, total, **body))

    def reduce(self, place: Place, worker: int) -> None:
        port, exponent = place.ports[worker], 10 * place.job
        lanes = self.lanes(place, worker)
        self.send(port, packets.reduce_(worker, self.FRAGMENT, lanes, exponent=exponent, port=port))

    def lanes(self, place: Place, worker: int) -> packets.Lanes:
        return packets.random_lanes(1000 * place.job + worker, packets.FULL)


class ABlockOfTheNeighbourIsUnknown(JobTest):
    """A block after the last one is nobody's, though its number would be that of a neighbour's."""

    def runTest(self) -> None:
        self.each(lambda: self.add_sum(900, PAIR, worker=1))
        # Numbers of blocks wrap at 2^16.
        for place, block in ((FIRST, LAST_BLOCK + 1), (SECOND, 2**16 - LAST_BLOCK + 1)):
            with self.counted({Outcome.UNKNOWN_BLOCK: 2, Outcome.UNKNOWN_VERTEX: 1}, completed={}):
                for source in PAIR:
                    self.contribute(place, source, block=block)
                port = place.ports[1]
                self.send(port, packets.recall(900, port=port, block=block))
        for place in JOBS:
            with self.counted(Outcome.AGGREGATED, 2, completed={0: 1}):
                self.expect_own(place, 900, [self.contribute(place, source) for source in PAIR])


class OrdinaryFramesStayInTheJob(JobTest):
    """A broadcast reaches the job's other host; of hosts of another job nothing is known."""

    def runTest(self) -> None:
        for place, foreign in ((FIRST, SECOND), (SECOND, FIRST)):
            port, other = place.ports
            frame = Ether(src=packets.station(port).mac, dst=BROADCAST, type=0x1234) / Raw(
                bytes(64)
            )
            self.exchange(Outcome.FLOODED, port, frame, {other: frame})
            with self.counted(Outcome.UNKNOWN_STATION, 2):
                for to in foreign.ports:
                    self.send(
                        port, packets.ordinary(port, packets.station(to).mac, UDP(), Raw(bytes(64)))
                    )


class APortWithoutAJob(JobTest):
    """Where a job was removed, a DONE gets a WAITING without a plan, and all else nothing."""

    running = (FIRST,)

    def runTest(self) -> None:
        self.each(lambda: self.add_sum(900, PAIR, worker=1))
        with self.entries.of(FIRST):
            for port in SECOND.ports:
                self.add_station(port)
        before = self.counters().jobs[0].outcomes
        with self.counted({Outcome.NO_JOB: 4, Outcome.UNKNOWN_STATION: 1}, passes={}):
            self.contribute(SECOND, 101)
            for asked in (
                packets.recall(900, port=4),
                packets.notice(1, port=4),
                packets.reducing(1, 700, port=4),
            ):
                self.send(4, asked)
            self.send(3, packets.ordinary(3, packets.station(4).mac, UDP(), Raw(bytes(64))))
        for block in (0, 1):
            asked = packets.done(0, block=block, port=3)
            self.exchange(Outcome.NO_JOB, 3, asked, packets.no_job(asked))
        after = self.counters().jobs[0].outcomes
        grown = {each: after[each] - before[each] for each in after if after[each] > before[each]}
        self.assertEqual({Outcome.NO_JOB: 6, Outcome.UNKNOWN_STATION: 1}, grown)


class AFetchReleasesTheOwnSlot(JobTest):
    """It counts as the own worker's, goes to the own source's owner, and spoils no other sum."""

    def runTest(self) -> None:
        self.each(lambda: self.add_sum(900, PAIR, worker=1))
        with self.counted(Outcome.AGGREGATED, 2, completed={}):
            first = self.contribute(FIRST, 101)
            self.contribute(SECOND, 101)
        before = self.counters().releases
        asked = packets.fetch(101, 900, port=4)
        answers = {3: packets.relayed_fetch(asked, to=3)}
        self.exchange(Outcome.FETCHED, 4, asked, answers, passes={}, completed={}, released={0: 1})
        grown = [new - old for old, new in zip(before, self.counters().releases, strict=True)]
        own = SECOND.first_worker + 1
        self.assertEqual({own: 1}, {cell: growth for cell, growth in enumerate(grown) if growth})
        with self.counted(Outcome.AGGREGATED, completed={}, released={0: 1}):
            self.contribute(SECOND, 102)
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            self.expect_own(FIRST, 900, [first, self.contribute(FIRST, 102)])


class ARecallBringsTheOwnSum(JobTest):
    """Not that of the other job, which has the same vertex and the same slot in its entries."""

    def runTest(self) -> None:
        self.each(lambda: self.add_sum(900, PAIR, worker=1))
        with self.counted(Outcome.AGGREGATED, 4, completed={0: 2}):
            sent = {place: [self.contribute(place, each) for each in PAIR] for place in JOBS}
            for place in JOBS:
                self.expect_own(place, 900, sent[place])
        for place in JOBS:
            to = place.ports[1]
            asked = packets.recall(900, port=to)
            total = packets.sum_of(lanes for _, lanes in sent[place])
            answer = packets.sum_to(to, 900, total, count=2, completed_by=asked)
            self.exchange(Outcome.RECALLED, to, asked, answer, passes={}, completed={0: 1})


class ANoticeStaysInTheJob(JobTest):
    """All its workers get it, with its count, its sender too, and nobody else."""

    def runTest(self) -> None:
        for place in JOBS:
            sent = packets.resigned(packets.notice(1, port=place.ports[1]), Count=7)
            answers = {port: packets.relayed(sent, to=port) for port in place.ports}
            self.exchange(Outcome.NOTICED, place.ports[1], sent, answers, passes={}, completed={})
