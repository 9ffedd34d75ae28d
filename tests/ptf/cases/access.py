"""access.p4: the vertices that a packet may name, and the way of packets that add nothing."""

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import Kind
from tests.ptf.switchgnn_ptf import packets
from tests.ptf.switchgnn_ptf.bases import ABOVE, LeafTest, RecoveryTest, from_above, sum_from_above
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

PAIR = {101: 0, 102: 1}
OWNER = 3  # the port of the destination's worker
OTHERS = [port for port in packets.PORTS if port != OWNER]
QUIET = {"passes": {}, "completed": {}}


class UnknownVerticesAreDropped(RecoveryTest):
    """As sources or destinations of any kind of packet; a vertex is known in its block alone."""

    def runTest(self) -> None:
        self.add_sum(900, PAIR)
        self.add_destination(910, worker=2, slot=8, expected=2, senders=[0])
        self.add_source(packets.PARTIAL, worker=0)
        self.entries.add_fanout(source=103, slots={0: (7, 2)})
        recovering = [packets.recall(901, port=3), packets.recall(900, port=3, block=2)]
        fetched = ((109, 900), (900, 900), (101, 901))
        recovering += [packets.fetch(source, vertex, port=3) for source, vertex in fetched]
        recovering += [packets.fetch(101, 900, port=3, block=2)]
        features: list[dict[str, int]] = [
            {"source": 103},
            {"source": 103, "round_": 2},
            {"source": 109, "Dst_id": 900, "Resend": 1},
            {"source": 101, "Dst_id": 901, "Resend": 1},
            {"source": 101, "Dst_id": 900, "Resend": 1, "block": 2},
            {"source": packets.PARTIAL + 1, "Dst_id": 910},
            {"source": packets.PARTIAL, "Dst_id": 911},
            {"source": packets.PARTIAL, "Dst_id": 910, "block": 2},
        ]
        number = len(recovering) + len(features)
        with self.counted(Outcome.UNKNOWN_VERTEX, number, passes={}, completed={}):
            self.send(3, *recovering)
            for fields in features:
                self.send_feature(worker=0, Echo=1, **fields)
        self.check_sum(900, PAIR)
        self.check_resent(900, owner=2)
        self.check_fetch(101, 900, owner=0)


class SlotDependsOnBlockAndVertex(RecoveryTest):
    """The same vertex has another slot in another block; its neighbour has another worker."""

    def runTest(self) -> None:
        self.add_sum(900, PAIR, slot=7, bank=0, block=1)
        self.add_sum(900, PAIR, slot=8, bank=3, block=2, known=True)
        self.add_source(103, worker=1)
        self.entries.add_fanout(source=103, slots={5: (7, 2)})
        self.add_destination(901, worker=0, slot=7, bank=5, expected=2)
        with self.counted(Outcome.AGGREGATED, 4, completed={0: 1}):
            first = self.send_features(PAIR)
            self.expect_sum(900, first)
            self.send_feature(103, worker=1)
            self.send_feature(101, worker=0, block=2)
        self.check_recalled(900, first)
        self.check_missing(901, count=1, worker=0)
        self.check_missing(900, count=1, block=2)


class OnlyTheOwnerIsBelieved(RecoveryTest):
    """The port identifies the sender, not its addresses; the owner is still heard afterwards."""

    def runTest(self) -> None:
        self.add_sum(900, PAIR)
        with self.counted(Outcome.AGGREGATED):
            sent = [self.send_feature(101, worker=0)]
        lanes = packets.random_lanes(1)
        foreign = [
            (port, packet)
            for port in OTHERS
            for packet in (
                packets.recall(900, port=port),
                packets.recall(900, port=port, round_=2),
                packets.recall(900, port=OWNER),
                *(packets.fetch(source, 900, port=port) for source in PAIR),
                packets.fetch(101, 900, port=OWNER),
            )
        ]
        for port in (2, OWNER, packets.STRANGER_PORT):
            foreign += [
                (port, packets.feature(101, lanes, port=port, Echo=1)),
                (port, packets.feature(101, lanes, port=1)),
                (port, packets.feature(101, lanes, port=port, Resend=1, Dst_id=900)),
            ]
        strange = sum(port == packets.STRANGER_PORT for port, _ in foreign)
        outcomes = {Outcome.WRONG_PORT: len(foreign) - strange, Outcome.NO_JOB: strange}
        with self.counted(outcomes, **QUIET):
            for port, packet in foreign:
                self.send(port, packet)
        self.check_missing(900, count=1)
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            sent.append(self.send_feature(102, worker=1))
            self.expect_sum(900, sent)
        self.check_recalled(900, sent)
        self.check_resent(900, owner=2)
        self.check_fetch(102, 900, owner=1)


class ImpossibleCountIsDropped(RecoveryTest):
    """Nothing, more than the whole sum, and the count that releases a slot are not remembered."""

    def runTest(self) -> None:
        self.add_source(packets.PARTIAL, worker=0)
        self.add_destination(900, worker=2, slot=7, expected=4, senders=[0])
        with self.counted(Outcome.WRONG_COUNT, 3, passes={}):
            for count in (0, 5, packets.RELEASED):
                self.send_feature(packets.PARTIAL, worker=0, count=count, Dst_id=900, Echo=1)
        self.check_missing(900, count=0)
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            packet, lanes = self.send_feature(packets.PARTIAL, worker=0, count=4, Dst_id=900)
            self.expect(3, packets.sum_to(3, 900, lanes, count=4, completed_by=packet))


class OnlyWhoIsAwaitedSends(RecoveryTest):
    """A worker spoils no sum that awaits none of its partial sums, though the id is its own."""

    def runTest(self) -> None:
        self.add_owners({packets.PARTIAL: 0, packets.PARTIAL + 1: 1})
        self.add_sum(900, PAIR)
        self.add_destination(901, worker=2, slot=8, expected=2, senders=[1])
        with self.counted(Outcome.WRONG_PORT, 4, passes={}):
            for worker, vertex in ((0, 900), (1, 900), (0, 901)):
                self.send_feature(packets.PARTIAL + worker, worker=worker, Dst_id=vertex, Echo=1)
            # Of another worker, for one that may.
            self.send_feature(packets.PARTIAL, worker=1, Dst_id=901)
        for vertex in (900, 901):
            self.check_missing(vertex, count=0)
        with self.counted(Outcome.AGGREGATED, 3, completed={0: 2}):
            self.send_sum(900, PAIR)
            packet, lanes = self.send_feature(packets.PARTIAL + 1, worker=1, count=2, Dst_id=901)
            self.expect(3, packets.sum_to(3, 901, lanes, count=2, completed_by=packet))


class OnceForEachTag(SwitchTest):
    """An id is accepted once, even if it names another destination the second time."""

    def runTest(self) -> None:
        self.add_source(packets.PARTIAL, worker=0)
        for vertex in (900, 901):
            self.add_destination(vertex, worker=2, slot=vertex - 890, expected=2, senders=[0])
        with self.counted({Outcome.AGGREGATED: 1, Outcome.DUPLICATE: 2}, passes={1: 1}):
            for vertex in (900, 900, 901):
                self.send_feature(packets.PARTIAL, worker=0, Dst_id=vertex)


class PartOfASumGoesUp(LeafTest):
    """As the feature of a partial sum, with all that was added, once; the last one's ACK after."""

    def runTest(self) -> None:
        self.add_part(PAIR, worker=None)
        with self.counted(Outcome.AGGREGATED, 2, completed={0: 1}):
            sent = [
                self.send_feature(101, worker=0),
                self.send_feature(102, worker=1, Echo=1, Feature_group=3, Level=0),
            ]
            self.expect(ABOVE, self.part(sent, sent[-1][0]))
            self.expect(2, packets.ack_of(sent[-1][0], accepted=1))


class PartAndWholeLeaveOnePacket(LeafTest):
    """A feature may complete a part, and then a sum of this leaf's own."""

    def runTest(self) -> None:
        self.add_part({101: 0}, worker=None)
        self.add_destination(901, worker=1, slot=8, bank=1)
        self.add_source(105, worker=0)
        self.entries.add_fanout(source=105, slots={0: (9, 1), 1: (8, 1)})
        self.add_partial(902, slot=9, source=packets.PARTIAL + 1)
        with self.counted(Outcome.AGGREGATED, completed={0: 1, 1: 1}):
            sent = [self.send_feature(105, worker=0)]
            self.expect(ABOVE, self.part(sent, sent[0][0], packets.PARTIAL + 1, vertex=902))
            self.expect_sum(901, sent, worker=1)


class RecallsAndFetchesGoUp(LeafTest):
    """Where a switch above completes the sum; of a worker's own destination only."""

    def runTest(self) -> None:
        self.add_part(PAIR, worker=2)
        self.entries.add_distant(vertex=901, port=3, above=ABOVE)
        self.entries.add_distant(vertex=902, port=ABOVE, above=ABOVE)
        for asked, up in (
            (packets.recall(900, port=3), packets.relayed),
            (packets.recall(901, port=3), packets.relayed),
            # The source is of another leaf: here it is not known.
            (packets.fetch(555, 901, port=3), packets.relayed_fetch),
        ):
            self.exchange(Outcome.PASSED_ON, 3, asked, {ABOVE: up(asked, to=ABOVE)}, **QUIET)
            self.check_unanswered(Outcome.WRONG_PORT, 1, asked)
        with self.counted(Outcome.RESENT, **QUIET):
            sent, _ = self.send_feature(101, worker=0, Resend=1, Dst_id=902)
            self.expect(ABOVE, packets.relayed(sent, to=ABOVE))


class WhatComesDown(LeafTest):
    """A sum, a MISSING and a fetched feature to the worker of their destination, a FETCH to that of
    its source; nothing else, and no slot here changes.
    """

    def runTest(self) -> None:
        self.add_part(PAIR)
        self.entries.add_distant(vertex=901, port=2, above=ABOVE)
        coming = packets.feature(555, packets.random_lanes(3), port=ABOVE, Resend=1, Dst_id=901)
        fetched = from_above(Kind.FETCH, 900, Src_id=102)
        # As long as the part here is not complete, the MISSING is all.
        lost = {
            vertex: from_above(Kind.MISSING, vertex, Count=17, Resend=1) for vertex in (900, 901)
        }
        for packet, port, expected, outcome in (
            (sum_from_above(901), 2, packets.relayed, Outcome.PASSED_ON),
            (lost[901], 2, packets.relayed, Outcome.PASSED_ON),
            (lost[900], 3, packets.relayed, Outcome.PASSED_ON),
            (fetched, 2, packets.relayed_fetch, Outcome.PASSED_ON),
            (coming, 2, packets.relayed, Outcome.RESENT),
        ):
            self.exchange(outcome, ABOVE, packet, {port: expected(packet, to=port)}, **QUIET)
        self.check_unanswered(Outcome.UNKNOWN_VERTEX, ABOVE, sum_from_above(902))
        with self.counted(Outcome.UNKNOWN_KIND, 3):
            self.send(1, sum_from_above(901))
            self.send(ABOVE, packets.feature(101, packets.random_lanes(1), port=ABOVE))
            self.send(ABOVE, packets.done(0, block=1, port=ABOVE))


class ReleasesAreCountedForEachWorker(SwitchTest):
    """Released slots are counted by worker; a refused fetch is not."""

    def runTest(self) -> None:
        self.add_sum(900, PAIR, worker=2)
        self.add_destination(901, worker=1, slot=8, expected=1)
        before = self.counters().releases
        with self.counted({Outcome.FETCHED: 3, Outcome.WRONG_PORT: 1}, released={0: 3}):
            self.send(3, packets.fetch(101, 900, port=3), packets.fetch(102, 900, port=3))
            self.send(2, packets.fetch(101, 901, port=2), packets.fetch(101, 900, port=2))
            for port in (1, 2, 1):
                self.receive(port)
        grown = [late - early for early, late in zip(before, self.counters().releases, strict=True)]
        self.assertEqual([0, 1, 2], grown[:3])
        self.assertEqual([0] * len(grown[3:]), grown[3:])
