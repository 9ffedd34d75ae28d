"""dedup.p4: duplicates (invariants 1 and 3), and the accepted features of a group."""

from typing import Any

from scapy.packet import Packet

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import LAST_FRAGMENT
from tests.ptf.switchgnn_ptf.packets import NETWORK, PARTIAL, STRANGER_PORT, ack_of, port_of
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1, 103: 2}
GROUPS_APART = 32  # GROUPS_PER_WORKER of dedup.p4
STRANGER = 3  # the worker that the port without one gets


class RepeatedAtOnce(SwitchTest):
    """A feature that comes twice in a row is summed once."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted({Outcome.AGGREGATED: 3, Outcome.DUPLICATE: 3}, passes={1: 3}):
            sent = []
            for source, worker in SOURCES.items():
                sent.append(self.send_feature(source, worker=worker))
                self.send(worker + 1, sent[-1][0])
            self.expect_sum(900, sent)


class OlderTagsOfASourceAreStale(SwitchTest):
    """An older round, block or fragment of the same source is dropped, and not acknowledged."""

    def runTest(self) -> None:
        for block in (4, 5, 6):
            self.add_sum(900 + block, SOURCES, slot=block, block=block, known=block != 4)
        newest = {"round_": 9, "block": 5, "fragment": 3}
        older = (
            {"round_": 8},
            {"round_": 8, "block": 6, "fragment": 4},
            {"block": 4},
            {"block": 6, "fragment": 2},
            {"fragment": 2},
            {"round_": 1, "block": 4, "fragment": 0},
        )
        with self.counted(Outcome.AGGREGATED):
            sent = [self.send_feature(101, worker=0, **newest)]
        with self.counted(Outcome.STALE, len(older), passes={}):
            for change in older:
                self.send_feature(101, worker=0, Echo=1, **{**newest, **change})
        with self.counted(Outcome.AGGREGATED, 2, completed={0: 1}):
            sent += [self.send_feature(s, worker=s - 101, **newest) for s in (102, 103)]
            self.expect_sum(905, sent)


class TagsReachTheEnd(SwitchTest):
    """The largest round, block and fragment are the newest, and zero is the oldest."""

    def runTest(self) -> None:
        top = 0xFFFF
        for block in (0, top):
            self.add_sum(900, {101: 0}, slot=7, block=block, known=block == top)
        tags = [
            {"round_": 0, "block": 0, "fragment": 0},
            {"round_": 0, "block": top, "fragment": 0},
            {"round_": 0, "block": 0, "fragment": LAST_FRAGMENT},
            {"round_": 0xFFFFFFFF, "block": 0, "fragment": 0},
            {"round_": 0xFFFFFFFF, "block": top, "fragment": LAST_FRAGMENT},
        ]
        for at, tag in enumerate(tags):
            with self.counted(Outcome.AGGREGATED, completed={0: 1}):
                self.expect_sum(900, [self.send_feature(101, worker=0, **tag)])
            with self.counted({Outcome.STALE: at} if at else {}):
                for old in tags[:at]:
                    self.send_feature(101, worker=0, **old)


class AcceptedTest(SwitchTest):
    """Cases without contributions, about ACKs only."""

    def add_sources(self, *sources: int, worker: int = 0, blocks: tuple[int, ...] = (1,)) -> None:
        """Make sources known that have no slots."""
        for source in sources:
            self.add_source(source, worker=worker)
            for block in blocks:
                self.entries.add_fanout(block=block, source=source, slots={})

    def pass_on(
        self, *sources: int, worker: int = 0, group: int = 0, **fields: Any
    ) -> list[Packet]:
        """Send features without Echo, which are not answered."""
        with self.counted(Outcome.AGGREGATED, len(sources), passes={0: len(sources)}):
            return [
                self.send_feature(source, worker=worker, Feature_group=group, **fields)[0]
                for source in sources
            ]

    def check_ack(
        self,
        source: int,
        accepted: int,
        *,
        worker: int = 0,
        group: int = 0,
        outcome: Outcome = Outcome.AGGREGATED,
        **fields: Any,
    ) -> None:
        """Send a feature with Echo, and expect this count."""
        with self.counted(outcome):
            packet, _ = self.send_feature(
                source, worker=worker, Feature_group=group, Echo=1, **fields
            )
            self.expect(port_of(worker), ack_of(packet, accepted=accepted))

    def check_repeated(self, source: int, accepted: int, **fields: Any) -> None:
        """Send a feature that was let through once more, with Echo."""
        self.check_ack(source, accepted, outcome=Outcome.DUPLICATE, **fields)


class DuplicatesDoNotCount(AcceptedTest):
    """Repeated with or without Echo, each source counts once."""

    def runTest(self) -> None:
        self.add_sources(101, 102, 103)
        for source in (101, 102):
            packet = self.pass_on(source)[0]
            self.check_unanswered(Outcome.DUPLICATE, 1, packet, packet, packet)
        self.check_repeated(101, 2)
        self.check_repeated(102, 2)
        self.check_ack(103, 3)


class OlderGroupChangesNothing(AcceptedTest):
    """A delayed duplicate of an older group does not reset the count of a newer one."""

    def runTest(self) -> None:
        self.add_sources(*range(101, 108))
        late = self.pass_on(101, 102, group=1)
        self.pass_on(103, 104, group=1 + GROUPS_APART)
        self.check_unanswered(Outcome.DUPLICATE, 1, late[0])
        self.check_ack(105, 3, group=1 + GROUPS_APART)
        # Of the older group itself nothing is known any more.
        self.check_repeated(102, 0, group=1)
        self.check_ack(106, 4, group=1 + GROUPS_APART)
        self.check_ack(107, 1, group=1)
        self.check_repeated(103, 4, group=1 + GROUPS_APART)


class OlderTagChangesNothing(AcceptedTest):
    """Groups of an older fragment, block or round are older, even with a higher number."""

    def runTest(self) -> None:
        self.add_sources(*range(101, 110), blocks=(1, 2))
        older = ({"fragment": 1}, {"block": 1}, {"round_": 1, "fragment": 9})
        for number, change in enumerate(older):
            old = {"round_": 2, "block": 2, "fragment": 2, **change}
            new = {"round_": 2, "block": 2, "fragment": 2}
            source = 101 + 3 * number
            group = 1 + number  # group + 64 has the same index
            late = self.pass_on(source, group=group + 2 * GROUPS_APART, **old)[0]
            self.pass_on(source + 1, group=group, **new)
            self.check_unanswered(Outcome.DUPLICATE, 1, late)
            self.check_repeated(source, 0, group=group + 2 * GROUPS_APART, **old)
            self.check_ack(source + 2, 2, group=group, **new)


class TagsStartAnew(AcceptedTest):
    """The next fragment, block, round and session count the same group from the beginning."""

    def runTest(self) -> None:
        self.add_sources(101, 102, blocks=(1, 2))
        tags = [
            {"round_": round_, "block": block, "fragment": fragment}
            for round_ in (1, 2)
            for fragment in (0, 1)
            for block in (1, 2)
        ]
        for _ in range(2):
            for tag in tags:
                self.check_ack(101, 1, group=6, **tag)
                self.check_ack(102, 2, group=6, **tag)
            self.serve(session=self.session + 1)


class WorkersAreApart(AcceptedTest):
    """The same group of two workers is two groups; a worker that is ahead resets no other."""

    def runTest(self) -> None:
        for worker in (0, 1, 2):
            self.add_sources(*(101 + 10 * worker + n for n in range(3)), worker=worker)
        for number in range(2):
            for worker in (0, 1, 2):
                self.check_ack(101 + 10 * worker + number, number + 1, worker=worker)
        self.check_ack(113, 1, worker=1, group=4)
        self.check_ack(103, 3)
        self.check_ack(123, 3, worker=2)


class HighestWorker(AcceptedTest):
    """The last worker that the program has room for has an index of its own."""

    def runTest(self) -> None:
        self.entries.add_worker(port=STRANGER_PORT, worker=127)
        self.entries.add_rewrite(port=STRANGER_PORT, network=NETWORK)
        self.add_sources(101, 102, 103, worker=STRANGER)
        self.add_sources(201)
        self.check_ack(101, 1, worker=STRANGER, group=3)
        self.check_ack(201, 1, group=7)
        self.check_ack(102, 2, worker=STRANGER, group=3)
        self.check_ack(103, 1, worker=STRANGER, group=7)


class CountIsThatOfTheFirstPass(AcceptedTest):
    """Through hops and the loop; each sum has its own ids, whatever the feature has."""

    def runTest(self) -> None:
        self.add_sources(101, 102)
        self.add_source(103, worker=0)
        for hop in range(3):
            slots = {0: (hop, 1), 5: (hop, 1)}
            self.entries.add_fanout(source=103, hop=hop, slots=slots, last_hop=hop == 2)
            for bank in slots:
                # To the sender itself, so that the order of sums and ACK shows.
                self.add_destination(900 + 10 * hop + bank, worker=0, slot=hop, bank=bank)
        self.pass_on(101, 102, group=3)
        with self.counted(Outcome.AGGREGATED, passes={1: 6}, completed={0: 3, 5: 3}):
            fields = {"Feature_group": 3, "Echo": 1, "Level": 1, "Dst_id": 12345}
            sent = self.send_feature(103, worker=0, **fields)
            for vertex in (900, 905, 910, 915, 920, 925):
                self.expect_sum(vertex, [sent], worker=0)
            self.expect(1, ack_of(sent[0], accepted=3))


class PartialSumIsOneFeature(AcceptedTest):
    """The count is of packets, not of their contributions."""

    def runTest(self) -> None:
        self.add_sources(101)
        self.add_source(PARTIAL, worker=0)
        self.add_destination(900, worker=2, slot=7, expected=50, senders=[0])
        self.check_ack(PARTIAL, 1, Dst_id=900, count=40)
        self.check_ack(101, 2)
