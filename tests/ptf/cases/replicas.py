"""Vertex cuts: all that contribute to a sum get it, and recover it (access.p4, loop.p4)."""

from collections.abc import Iterable
from typing import Any

from scapy.packet import Packet

from switchgnn.controller import Outcome
from switchgnn.controller.controls.loop import FIRST_REPLICA_GROUP, result_group
from switchgnn.host.wire.header import Kind
from tests.ptf.switchgnn_ptf import bases, packets
from tests.ptf.switchgnn_ptf.packets import PARTIAL, port_of

# The workers with a replica of each vertex; of those of the first, worker 1 has none.
HOLDERS = {900: (0, 2), 901: (0, 1, 2), 902: (1,)}
STRANGER = 1
QUIET: dict[str, Any] = {"passes": {}, "completed": {}}
Sent = list[tuple[Packet, packets.Lanes]]


class ReplicaTest(bases.RecoveryTest):
    """Cases with a sum of each vertex in bank 0; replica 100 + w is of worker w."""

    def setUp(self) -> None:
        super().setUp()
        self.add_owners({100 + worker: worker for worker in packets.WORKERS})
        for number, (vertex, holders) in enumerate(HOLDERS.items()):
            self.add_replicas(vertex, holders, number)

    def add_replicas(self, vertex: int, holders: Iterable[int], number: int) -> None:
        """Let the partial sums of the holders meet in a slot, whose sum goes back to them."""
        self.add_owners({self.partial_of(vertex, worker): worker for worker in holders})
        self.entries.add_senders(holders, block_id=1, dst_id=vertex)
        slot = {"bank": 0, "slot": 7 + number}
        self.add_way(vertex, FIRST_REPLICA_GROUP + number, len(tuple(holders)), slot)
        self.entries.add_group(FIRST_REPLICA_GROUP + number, self.members(holders))

    def add_way(self, vertex: int, group: int, expected: int, slot: dict[str, int]) -> None:
        self.entries.add("result", "set_replicas", block_id=1, **slot, vertex=vertex, group=group)
        entry = {"dst_id": vertex, "group": group, "expected": expected, "above": 0, **slot}
        self.entries.add("destination", "set_replicas", block_id=1, **entry)

    def members(self, holders: Iterable[int]) -> list[int]:
        return [port_of(worker) for worker in holders]

    def partial_of(self, vertex: int, worker: int) -> int:
        return PARTIAL + 10 * (vertex - 900) + worker

    def add(self, vertex: int, worker: int, **fields: Any) -> tuple[Packet, packets.Lanes]:
        name = self.partial_of(vertex, worker)
        return self.send_feature(name, worker=worker, Dst_id=vertex, **fields)

    def contribute(self, vertex: int, *workers: int, **happens: Any) -> Sent:
        """Send partial sums that complete nothing."""
        with self.counted(Outcome.AGGREGATED, len(workers), completed={}, **happens):
            return [self.add(vertex, worker) for worker in workers]

    def complete(
        self, vertex: int, worker: int, before: Sent, *, accepted: int = 0, **fields: Any
    ) -> Sent:
        """Send the last partial sum: all holders get the sum, and this one is acknowledged."""
        with self.counted(Outcome.AGGREGATED, passes={1: 1}, completed={0: 1}):
            sent = [*before, self.add(vertex, worker, **fields)]
            total, last = packets.combined(sent), sent[-1][0]
            for holder in HOLDERS[vertex]:
                told = accepted if holder == worker else 0
                answer = {"count": len(sent), "sources": told, "Is_ACK": int(told > 0)}
                to = port_of(holder)
                self.expect(to, packets.sum_to(to, vertex, total, completed_by=last, **answer))
        return sent

    def check_refused(self, *asked: Packet) -> None:
        self.check_unanswered(Outcome.WRONG_PORT, port_of(STRANGER), *asked, **QUIET)

    def check_all_get(self, packet: Packet, port: int, *to: int, outcome: Outcome) -> None:
        """Send a packet that exactly these ports must get unchanged."""
        answers = {each: packets.relayed(packet, to=each) for each in to}
        self.exchange(outcome, port, packet, answers, **QUIET)

    def answer(self, **fields: Any) -> Packet:
        """Return the answer of worker 0 to a fetch for 900."""
        lanes = packets.random_lanes(5)
        return packets.feature(100, lanes, port=port_of(0), Resend=1, Dst_id=900, **fields)


class SumGoesBackToAllContributors(ReplicaTest):
    """Each contributor gets the same sum once, whichever of them completes it, and others none."""

    def runTest(self) -> None:
        one, other = self.contribute(900, 0), self.contribute(901, 2, 0)
        self.complete(900, 2, one)
        self.complete(901, 1, other)
        self.complete(902, 1, [])
        with self.counted(Outcome.AGGREGATED, completed={}):
            sent = [self.add(900, 2, fragment=1)]
        self.complete(900, 0, sent, fragment=1)


class SumAcknowledges(ReplicaTest):
    """The copy of the one that completed it, if that asked; it counts its group's features."""

    def runTest(self) -> None:
        with self.counted(Outcome.AGGREGATED, 2, completed={}):
            group = [self.add(vertex, 0, Feature_group=6) for vertex in (900, 901)]
        with self.counted(Outcome.AGGREGATED, completed={}):
            sent = [self.add(901, 1, Echo=1)]
            self.expect(port_of(1), packets.ack_of(sent[0][0], accepted=1))
        again = packets.resigned(group[0][0], Echo=1)
        answer = packets.ack_of(again, accepted=2)
        self.exchange(Outcome.DUPLICATE, port_of(0), again, answer, **QUIET)
        self.complete(901, 2, [group[1], *sent], accepted=1, Echo=1)
        with self.counted(Outcome.AGGREGATED, 2, completed={}):
            sent = [self.add(900, 2, round_=2)]
            self.add(901, 0, round_=2, Feature_group=6)
        self.complete(900, 0, sent, accepted=2, round_=2, Feature_group=6, Echo=1)


class OnlyTheSwitchAcknowledges(ReplicaTest):
    """Is_ACK of a feature reaches no one, with Echo or without; nor do Src_id and Echo."""

    def runTest(self) -> None:
        self.complete(900, 0, self.contribute(900, 2), Is_ACK=1)
        sent = self.contribute(901, 0, 1)
        self.complete(901, 2, sent, accepted=1, Is_ACK=1, Echo=1, Feature_group=3)
        self.complete(902, 1, [], Is_ACK=1, Level=1)


class RepeatedPartCountsOnce(ReplicaTest):
    """Before the sum is complete and after; it is acknowledged again, without the sum."""

    def runTest(self) -> None:
        sent = self.contribute(900, 0)
        self.repeat(sent[0][0])
        sent = self.complete(900, 2, sent, accepted=1, Echo=1)
        self.repeat(sent[0][0])

    def repeat(self, packet: Packet) -> None:
        again = packets.resigned(packet, Echo=1)
        with self.counted(Outcome.DUPLICATE, 2, **QUIET):
            self.send(port_of(0), packet, again)
            self.expect(port_of(0), packets.ack_of(again, accepted=1))


class OnlyContributorsAskAndAdd(ReplicaTest):
    """Each recalls the sum, for itself alone; the slot is not touched for others."""

    def runTest(self) -> None:
        self.add_source(self.partial_of(900, STRANGER), worker=STRANGER)
        port = port_of(STRANGER)
        fetches = [packets.fetch(source, 900, port=port) for source in (100, 101)]
        refused = [packets.recall(900, port=port), *fetches, self.answer()]
        part = {"port": port, "Dst_id": 900, "Echo": 1}
        for worker in (STRANGER, 0):
            name = self.partial_of(900, worker)
            refused.append(packets.feature(name, packets.random_lanes(1), **part))
        sent = self.contribute(900, 2)
        releases = self.counters().releases
        self.check_refused(*refused)
        self.assertEqual(releases, self.counters().releases)
        for holder in HOLDERS[900]:
            self.check_missing(900, count=1, worker=holder)
        sent = self.complete(900, 0, sent)
        self.check_refused(*refused)
        for holder in HOLDERS[900]:
            self.check_recalled(900, sent, worker=holder, Echo=1, Resend=1)


class FetchOfAReplica(ReplicaTest):
    """It releases the slot of its vertex alone; all contributors get the answer, any number."""

    def runTest(self) -> None:
        _, other = self.contribute(900, 0), self.contribute(901, 0, 1)
        before = self.counters().releases
        self.check_fetch(100, 900, owner=0)
        after = self.counters().releases
        self.assertEqual([0, 0, 1], [new - old for old, new in zip(before, after, strict=True)][:3])
        self.contribute(900, 2, released={0: 1})
        for holder in HOLDERS[900]:
            self.check_missing(900, worker=holder, count=packets.RELEASED, events=bases.GIVEN_BACK)
        for echo in (0, 1):
            answer = self.answer(Echo=echo)
            self.check_all_get(answer, port_of(0), *self.members((0, 2)), outcome=Outcome.RESENT)
        self.complete(901, 2, other)


class ReplicasOnASpine(ReplicaTest, bases.SpineTest):
    """Leaves contribute: each of them gets the sum. A recall asks all, a fetch goes to one."""

    def runTest(self) -> None:
        sent = self.contribute(900, 0)
        asked = packets.recall(900, port=port_of(2), Resend=1)
        with self.counted(Outcome.RECALLED, **QUIET):
            self.send(port_of(2), asked)
            self.expect(port_of(2), packets.missing(asked, count=1))
            for port in self.members((0, 1)):
                self.expect(port, packets.relayed(packets.resigned(asked, Count=0), to=port))
        self.check_recalled(900, self.complete(900, 2, sent, Level=1), worker=0)
        self.check_fetch(100, 900, owner=0)
        self.check_all_get(self.answer(), 1, port_of(0), port_of(2), outcome=Outcome.RESENT)
        self.check_refused(packets.recall(900, port=port_of(STRANGER)))


class ReplicasOnALeaf(ReplicaTest, bases.LeafTest):
    """The part of its workers goes up. What comes down goes to all of them, and not up again."""

    def add_way(self, vertex: int, group: int, expected: int, slot: dict[str, int]) -> None:
        way = {"port": bases.ABOVE, "group": result_group(bases.ABOVE), "source": PARTIAL + 500}
        self.entries.add("result", "set_partial", block_id=1, **slot, vertex=vertex, **way)
        entry = {
            "dst_id": vertex,
            "group": group,
            "expected": expected,
            "above": bases.ABOVE,
            **slot,
        }
        self.entries.add("destination", "set_replicas", block_id=1, **entry)

    def members(self, holders: Iterable[int]) -> list[int]:
        return [*super().members(holders), bases.ABOVE]

    def runTest(self) -> None:
        below, above = super().members(HOLDERS[900]), self.members(HOLDERS[900])
        lost = bases.from_above(Kind.MISSING, 900, Count=17, Resend=1)
        sent = self.contribute(900, 0)
        self.check_all_get(lost, bases.ABOVE, *below, outcome=Outcome.PASSED_ON)
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            sent.append(self.add(900, 2, Echo=1, Is_ACK=1))
            self.expect(bases.ABOVE, self.part(sent, sent[-1][0], PARTIAL + 500))
            self.expect(port_of(2), packets.ack_of(sent[-1][0], accepted=1))
        again = {Outcome.PASSED_ON: lost, Outcome.RECALLED: bases.from_above(Kind.RECALL, 900)}
        for outcome, asked in again.items():
            with self.counted(outcome, passes={}, completed={0: 1}):
                self.send(bases.ABOVE, asked)
                self.expect(bases.ABOVE, self.part(sent, asked, PARTIAL + 500))
                for port in below if asked is lost else ():
                    self.expect(port, packets.relayed(lost, to=port))
        for packet in (bases.sum_from_above(900), bases.from_above(Kind.MISSING, 900, Count=17)):
            self.check_all_get(packet, bases.ABOVE, *below, outcome=Outcome.PASSED_ON)
        fields = {"Resend": 1, "Dst_id": 900, "Is_ACK": 1}
        fetched = packets.feature(555, packets.random_lanes(3), port=bases.ABOVE, **fields)
        self.check_all_get(fetched, bases.ABOVE, *below, outcome=Outcome.RESENT)
        self.check_all_get(self.answer(), port_of(0), *above, outcome=Outcome.RESENT)
        asked = bases.from_above(Kind.FETCH, 900, Src_id=100)
        self.check_all_get(asked, bases.ABOVE, port_of(0), outcome=Outcome.PASSED_ON)
        for worker in HOLDERS[900]:
            port = port_of(worker)
            for asked in (packets.recall(900, port=port), packets.fetch(555, 900, port=port)):
                self.check_all_get(asked, port, bases.ABOVE, outcome=Outcome.PASSED_ON)
        self.check_refused(packets.recall(900, port=2), packets.fetch(555, 900, port=2))
