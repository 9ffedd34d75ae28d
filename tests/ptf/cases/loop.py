"""loop.p4: the way of a packet after a pass, and the answers to packets that add nothing."""

from switchgnn.controller import Outcome
from switchgnn.controller.controls.loop import LOOP_LANES
from switchgnn.host.wire.header import Kind
from tests.ptf.switchgnn_ptf import bases, packets
from tests.ptf.switchgnn_ptf.entries import BANKS
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

PAIR = {101: 0, 102: 1}
QUIET = {"passes": {}, "completed": {}}


class UnroutedSumIsCounted(SwitchTest):
    """A sum without an entry is dropped; the loop resumes after it, up to the ACK."""

    def runTest(self) -> None:
        self.add_source(101, worker=0)
        self.entries.add_fanout(source=101, slots={1: (7, 1), 4: (7, 1), 6: (7, 1)})
        self.add_destination(900, worker=2, slot=7, bank=4)
        events = {"completed": {1: 1, 4: 1, 6: 1}, "unrouted": 2}
        with self.counted(Outcome.AGGREGATED, passes={1: 3}, **events):
            sent = self.send_feature(101, worker=0, Echo=1)
            self.expect_sum(900, [sent])
            self.expect(1, packets.ack_of(sent[0], accepted=1))


class HundredDestinations(SwitchTest):
    """Thirteen hops, a hundred sums by one source: all arrive, in order, each exactly once."""

    def runTest(self) -> None:
        keys = [divmod(number, BANKS) for number in range(100)]
        for source, worker in PAIR.items():
            self.add_source(source, worker=worker)
            for hop in range(13):
                slots = {bank: (hop, 2) for own, bank in keys if own == hop}
                self.entries.add_fanout(source=source, hop=hop, slots=slots, last_hop=hop == 12)
        for number, (hop, bank) in enumerate(keys):
            self.add_destination(900 + number, worker=number % 3, slot=hop, bank=bank)
        with self.counted(Outcome.AGGREGATED, passes={8: 12, 4: 1}, completed={}):
            sent = [self.send_feature(101, worker=0)]
        completed = {bank: 13 if bank < 4 else 12 for bank in range(BANKS)}
        # A pass ends at its first completion.
        with self.counted(Outcome.AGGREGATED, passes={1: 100}, completed=completed):
            sent.append(self.send_feature(102, worker=1))
            for number in range(100):
                self.expect_sum(900 + number, sent, worker=number % 3)


class EveryLane(SwitchTest):
    """Sources of all 32 loop ports: each makes its way through three hops."""

    def runTest(self) -> None:
        vertices = range(64, 64 + LOOP_LANES)
        expected: list = []
        frames: list = []
        for number, vertex in enumerate(vertices):
            self.add_source(vertex, worker=0)
            lanes = packets.random_lanes(vertex)
            frames.append(packets.feature(vertex, lanes, port=1))
            self.stamp(frames[-1])
            for hop in range(3):
                slots = {hop: (number, 1)}
                self.entries.add_fanout(source=vertex, hop=hop, slots=slots, last_hop=hop == 2)
                self.add_destination(vertex + 1000 * hop, worker=2, slot=number, bank=hop)
                name = vertex + 1000 * hop
                expected.append(packets.sum_to(3, name, lanes, count=1, completed_by=frames[-1]))
        completed = dict.fromkeys(range(3), LOOP_LANES)
        total = 3 * LOOP_LANES
        with self.counted(Outcome.AGGREGATED, LOOP_LANES, passes={1: total}, completed=completed):
            self.send(1, *frames)
            # In any order.
            found = sorted(self.receive(3) for _ in expected)
            self.assertEqual(sorted(map(bytes, expected)), found)


class SumAgainLooksLikeTheRecall(bases.SumTest):
    """Other fields are those of the recall: Level, group, flags; never Echo."""

    def runTest(self) -> None:
        sent = self.complete(*bases.SOURCES)
        self.check_recalled(900, sent, Level=1, Feature_group=77, Echo=1, Count=9)
        self.check_recalled(900, sent, Is_Fetch=0, Src_id=101)


class MissingCountsPartialSums(bases.RecoveryTest):
    """A partial sum counts as many as it holds, up to the largest; the sum again as well."""

    def runTest(self) -> None:
        most = packets.RELEASED - 1
        self.add_source(packets.PARTIAL, worker=0)
        self.add_source(102, worker=1)
        self.entries.add_fanout(source=102, slots={0: (7, most)})
        self.add_destination(900, worker=2, slot=7, expected=most, senders=[0])
        with self.counted(Outcome.AGGREGATED, completed={}):
            sent = [self.send_feature(packets.PARTIAL, worker=0, Dst_id=900, count=most - 1)]
        self.check_missing(900, count=most - 1)
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            sent.append(self.send_feature(102, worker=1))
            total = packets.sum_of(lanes for _, lanes in sent)
            self.expect(3, packets.sum_to(3, 900, total, count=most, completed_by=sent[-1][0]))
        self.check_recalled(900, sent, count=most)
        self.check_fetch(102, 900, owner=1)
        self.check_missing(900, count=packets.RELEASED, events=bases.GIVEN_BACK)


class MissingBringsThePartAgain(bases.LeafTest):
    """With Resend, as the part may have been lost on its way; any number of times."""

    def runTest(self) -> None:
        self.add_part(PAIR)
        with self.counted(Outcome.AGGREGATED, 2, completed={0: 1}):
            sent = self.send_features(PAIR)
            self.expect(bases.ABOVE, self.part(sent, sent[-1][0]))
        word = bases.from_above(Kind.MISSING, 900, Count=17)
        self.exchange(
            Outcome.PASSED_ON, bases.ABOVE, word, {3: packets.relayed(word, to=3)}, **QUIET
        )
        word = bases.from_above(Kind.MISSING, 900, Count=17, Resend=1)
        for _ in range(3):
            answers = {bases.ABOVE: self.part(sent, word), 3: packets.relayed(word, to=3)}
            self.exchange(
                Outcome.PASSED_ON, bases.ABOVE, word, answers, passes={}, completed={0: 1}
            )


class RecallFromAboveBringsThePart(bases.LeafTest):
    """When it is complete; else there is no answer."""

    def runTest(self) -> None:
        self.add_part(PAIR, worker=None)
        asked = bases.from_above(Kind.RECALL, 900)
        with self.counted(Outcome.AGGREGATED, completed={}):
            sent = [self.send_feature(101, worker=0)]
        self.check_unanswered(Outcome.RECALLED, bases.ABOVE, asked, **QUIET)
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            sent.append(self.send_feature(102, worker=1))
            self.expect(bases.ABOVE, self.part(sent, sent[-1][0]))
        answer = self.part(sent, asked)
        self.exchange(Outcome.RECALLED, bases.ABOVE, asked, answer, passes={}, completed={0: 1})


class RecallOfTheIncomplete(bases.SpineTest, bases.RecoveryTest):
    """The asker gets the count. If it asks for parts, the other leaves are asked."""

    def runTest(self) -> None:
        self.add_source(packets.PARTIAL, worker=0)
        self.add_source(packets.PARTIAL + 1, worker=1)
        self.add_destination(900, worker=2, slot=7, expected=2, senders=[0, 1])
        with self.counted(Outcome.AGGREGATED, completed={}):
            sent = [self.send_feature(packets.PARTIAL, worker=0, Dst_id=900)]
        asked = packets.recall(900, port=3)
        self.exchange(Outcome.RECALLED, 3, asked, packets.missing(asked, count=1), **QUIET)
        asked = packets.recall(900, port=3, Resend=1)
        with self.counted(Outcome.RECALLED, **QUIET):
            self.send(3, asked)
            self.expect(3, packets.missing(asked, count=1))
            for port in (1, 2):
                self.expect(port, packets.relayed(packets.resigned(asked, Count=0), to=port))
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            sent.append(self.send_feature(packets.PARTIAL + 1, worker=1, Dst_id=900))
            self.expect_sum(900, sent)
        self.check_recalled(900, sent)
