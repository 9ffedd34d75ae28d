"""The base classes of cases about barriers, recovery, leaves and spines, and the strawman."""

from collections.abc import Iterable, Mapping
from typing import Any

from scapy.packet import Packet

from switchgnn.controller import Outcome
from switchgnn.controller.controls.loop import result_group
from switchgnn.host.wire.header import Kind, Refusal
from tests.ptf.switchgnn_ptf import packets
from tests.ptf.switchgnn_ptf.entries import BANKS, HOME
from tests.ptf.switchgnn_ptf.switch_test import MEMBERS, SwitchTest

_REFUSED = {
    Refusal.TAG: Outcome.WRONG_TAG,
    Refusal.NEXT: Outcome.WRONG_NEXT,
    Refusal.INCARNATION: Outcome.WRONG_INCARNATION,
    Refusal.MAGNITUDE: Outcome.WRONG_MAGNITUDE,
}


class BarrierTest(SwitchTest):
    """Cases that report DONE."""

    def report(self, worker: int, **fields: Any) -> Packet:
        packet = packets.done(worker, **fields)
        self.send(packets.port_of(worker), packet)
        return packet

    def collect(self, *workers: int, **fields: Any) -> None:
        """Report DONE for workers other than the last, and expect no answer."""
        with self.counted(Outcome.DONE_COLLECTED, len(workers)):
            for worker in workers:
                self.report(worker, **fields)

    def complete(
        self, worker: int, *, magnitude: int = 0, round_: int = 1, largest: int = 0, **fields: Any
    ) -> None:
        """Report DONE for the last worker; everybody must get ADVANCE, once."""
        with self.counted(Outcome.DONE_COLLECTED):
            packet = self.report(worker, magnitude=magnitude, round_=round_, **fields)
            self.expect_advance(packet, round_=round_, magnitude=magnitude, largest=largest)

    def expect_advance(self, last: Packet, **body: int) -> None:
        for worker in packets.WORKERS:
            to = packets.port_of(worker)
            answer = packets.barrier_answer(Kind.ADVANCE, last, to=to, workers=MEMBERS, **body)
            self.expect(to, answer)

    def check_refusal(self, refusal: Refusal, said: Mapping[str, Any], **answer: int) -> None:
        """Report a DONE of worker 1; it alone must get WAITING, with the reason."""
        with self.counted(_REFUSED[refusal]):
            packet = self.report(1, **said)
            body = {"workers": 0, "refusal": refusal, **answer}
            self.expect(2, packets.barrier_answer(Kind.WAITING, packet, to=2, **body))

    def ask(
        self, worker: int, kind: Kind, *, workers: int, answer: Any = None, **fields: Any
    ) -> None:
        """Repeat a DONE; its worker alone must get this answer."""
        with self.counted(Outcome.DONE_REPEATED):
            packet = self.report(worker, **fields)
            body = {"round_": fields.get("round_", 1), **(answer or {})}
            to = packets.port_of(worker)
            self.expect(to, packets.barrier_answer(kind, packet, to=to, workers=workers, **body))

    def open(self, **fields: Any) -> None:
        self.collect(0, 1, block=0, **fields)
        self.complete(2, block=0, **fields)


POOLED_SOURCES = {101: 0, 102: 1}


class PooledTest(BarrierTest):
    """Cases of two pools, in which the first two fragments of block 1 have their turn."""

    def open_pools(self) -> None:
        """Make two pools, and let all workers open a round."""
        # The last slot of a pool.
        self.add_sum(900, POOLED_SOURCES, slot=7)
        self.serve(any_tag=0, pools=2, pool_slots=8)
        for pool in range(2):
            self.open(pool=pool, following=(1, pool))

    def feature_of(self, source: int, pool: int, **fields: Any) -> Any:
        return self.send_feature(
            source, worker=POOLED_SOURCES[source], **{"fragment": pool, "Pool": pool, **fields}
        )


SOURCES = {101: 0, 102: 1, 103: 2}
"""The workers of the sources of ``SumTest``."""

GIVEN_BACK = {"released": {0: 1}}
"""The event of a contribution to a released slot of bank 0."""


class RecoveryTest(SwitchTest):
    """Cases that recover a sum; unless told otherwise it is in bank 0, for worker 2."""

    def check_recalled(
        self,
        vertex: int,
        sent: list[tuple[Packet, packets.Lanes]],
        *,
        worker: int = 2,
        bank: int = 0,
        count: int | None = None,
        **fields: int,
    ) -> None:
        """Recall a complete sum: it must come again, to the asker alone."""
        port, total = packets.port_of(worker), packets.combined(sent)
        packet = packets.recall(vertex, port=port, **fields)
        number = len(sent) if count is None else count
        answer = packets.sum_to(port, vertex, total, count=number, completed_by=packet)
        self.exchange(Outcome.RECALLED, port, packet, answer, passes={}, completed={bank: 1})

    def check_missing(
        self, vertex: int, *, count: int, worker: int = 2, events: Any = None, **fields: int
    ) -> None:
        """Recall an incomplete sum: the asker alone must get ``count``."""
        port = packets.port_of(worker)
        packet = packets.recall(vertex, port=port, **fields)
        with self.counted(Outcome.RECALLED, passes={}, completed={}, **(events or {})):
            self.send(port, packet)
            self.expect(port, packets.missing(packet, count=count))

    def check_fetch(
        self, source: int, vertex: int, *, owner: int, events: Any = None, **fields: int
    ) -> None:
        """Let worker 2 fetch a feature: its owner alone gets the request; the slot is released."""
        port, to = packets.port_of(2), packets.port_of(owner)
        packet = packets.fetch(source, vertex, port=port, **fields)
        happens = {"released": {0: 1}} if events is None else events
        answers = {to: packets.relayed_fetch(packet, to=to)}
        self.exchange(Outcome.FETCHED, port, packet, answers, passes={}, completed={}, **happens)

    def check_resent(self, vertex: int, *, owner: int, **fields: Any) -> None:
        """Resend the feature of 101: the destination's worker alone gets it; no slot changes."""
        with self.counted(Outcome.RESENT, passes={}, completed={}):
            packet, _ = self.send_feature(101, worker=0, Resend=1, Dst_id=vertex, **fields)
            self.expect(packets.port_of(owner), packets.relayed(packet, to=packets.port_of(owner)))


class SumTest(RecoveryTest):
    """Cases with one sum of three sources, in slot 7 of bank 0, for worker 2."""

    def setUp(self) -> None:
        super().setUp()
        self.add_sum(900, SOURCES)

    def contribute(self, *sources: int, released: int = 0, **fields: int) -> list:
        """Send features that complete nothing, ``released`` of them to a released slot."""
        happens = {0: released} if released else {}
        with self.counted(Outcome.AGGREGATED, len(sources), completed={}, released=happens):
            return [
                self.send_feature(source, worker=SOURCES[source], **fields) for source in sources
            ]

    def complete(self, *sources: int, before: list | None = None, **fields: int) -> list:
        """Send features of which the last completes the sum of these and ``before``."""
        with self.counted(Outcome.AGGREGATED, len(sources), completed={0: 1}):
            sent = list(before or [])
            sent += [self.send_feature(s, worker=SOURCES[s], **fields) for s in sources]
            self.expect_sum(900, sent)
            return sent


ABOVE = 4  # the port to the spine
LEAF = 5  # what the spine calls this leaf
ELSEWHERE = 0b11 << 40  # workers of other leaves


class LeafTest(SwitchTest):
    """Three workers below on ports 1 to 3, a spine above on port 4."""

    def setUp(self) -> None:
        super().setUp()
        self.entries.add("worker", "set_above", port=ABOVE)
        entry = {"above": ABOVE, "number": LEAF, "elsewhere": ELSEWHERE, "leaves": 0}
        self.entries.add("tier", "set_tier", **entry)
        self.entries.add_rewrite(port=ABOVE, network=packets.NETWORK)
        self.entries.add_result_groups(ABOVE)
        self.entries.flush()

    def report_all(self, **fields: Any) -> Packet:
        """Let all workers report DONE, and expect what the leaf reports; return the last one's."""
        with self.counted(Outcome.DONE_COLLECTED, len(packets.WORKERS)):
            for worker in packets.WORKERS:
                asked = packets.done(worker, **fields)
                self.send(packets.port_of(worker), asked)
            self.expect(ABOVE, report(asked))
        return asked

    def add_part(self, sources: dict[int, int], *, worker: int | None = 2) -> None:
        """Let sources of 900 meet in a slot whose sum goes up; ``worker`` None: another leaf's."""
        for source, owner in sources.items():
            self.add_source(source, worker=owner)
            self.entries.add_fanout(source=source, slots={0: (7, len(sources))})
        self.add_partial(900, slot=7, source=packets.PARTIAL)
        port = ABOVE if worker is None else packets.port_of(worker)
        entry = {"slot": 7, "expected": len(sources)}
        self.entries.add_distant(vertex=900, port=port, above=ABOVE, **entry)

    def add_partial(self, vertex: int, *, slot: int, source: int, block: int = 1) -> None:
        """Send the sum of a slot of bank 0 up as a partial sum."""
        entry = {"block_id": block, "bank": 0, "slot": slot, "vertex": vertex, "source": source}
        self.entries.add("result", "set_partial", **entry, port=ABOVE, group=result_group(ABOVE))

    def part(
        self,
        sent: list[tuple[Packet, packets.Lanes]],
        by: Packet,
        name: int = packets.PARTIAL,
        *,
        vertex: int = 900,
    ) -> Packet:
        """Return what goes up when ``by`` completes, or recalls, these features' part."""
        total = packets.sum_of(lanes for _, lanes in sent)
        packet = packets.sum_to(ABOVE, vertex, total, count=len(sent), completed_by=by)
        fields = {"Level": 1, "Feature_group": 0, "Resend": 0}
        return packets.resigned(packet, Kind=Kind.FEATURE, Src_id=name, **fields)


class SpineTest(SwitchTest):
    """Leaves 0 to 2 on ports 1 to 3, with the workers 2w and 2w + 1 below leaf w."""

    def _lay_network(self) -> None:
        super()._lay_network()
        self.entries.add("tier", "set_tier", above=0, number=0, elsewhere=0, leaves=1)


class LeavesTest(SwitchTest):
    """A spine: leaf 0 with workers 0 and 1 on port 1, leaf 1 with workers 2 and 3 on port 2."""

    def _lay_network(self) -> None:
        self.entries.admit()
        for port in packets.PORTS:
            self.add_station(port)
        for leaf in (0, 1):
            self.entries.add_worker(port=leaf + 1, worker=leaf, members=0b11 << 2 * leaf)
            self.entries.add_rewrite(port=leaf + 1, network=packets.NETWORK)
        self.entries.add_group(HOME.workers_group, [1, 2])
        self.entries.add("tier", "set_tier", above=0, number=0, elsewhere=0, leaves=1)
        self.entries.set_session(session=self.session, plan=packets.PLAN, members=0b1111)


def report(asked: Packet, *, magnitude: int = 0, largest: int = 0) -> Packet:
    packet = packets.relayed(packets.resigned(asked, Src_id=LEAF, Dst_id=largest), to=ABOVE)
    packet["SwitchGNN"].payload.magnitude = magnitude
    return packet


def answer_from_above(kind: Kind, asked: Packet, **body: int) -> Packet:
    return _to_the_switch(packets.barrier_answer(kind, asked, to=ABOVE, **body))


def _to_the_switch(packet: Packet) -> Packet:
    ends = packets.station(ABOVE).mac, packets.NETWORK.switch.mac
    packet["Ether"].src, packet["Ether"].dst = ends
    return packet


def from_above(kind: Kind, vertex: int, **fields: Any) -> Packet:
    return packets.recall(vertex, port=ABOVE, Kind=kind, **fields)


def sum_from_above(vertex: int, **fields: int) -> Packet:
    asked = packets.recall(vertex, port=ABOVE, Is_Fetch=0)
    lanes = packets.random_lanes(vertex)
    packet = packets.sum_to(ABOVE, vertex, lanes, count=9, completed_by=asked, **fields)
    return _to_the_switch(packet)


# Destination vertex to the workers of its sources, in the order of the sources' ids.
FAN_IN = {900: {101: 0, 102: 1}, 910: {111: 0, 112: 1, 113: 2}, 920: {121: 0, 122: 1}}


class ShelfTest(RecoveryTest):
    """Destinations in bank 0, all for one worker, and one slot for each bank."""

    strawman = True
    fan_in = FAN_IN
    receiver = 2

    def setUp(self) -> None:
        super().setUp()
        self.limit(BANKS)
        self.add_sums()

    def add_sums(self) -> None:
        for number, (vertex, sources) in enumerate(self.fan_in.items()):
            self.add_sum(vertex, sources, worker=self.receiver, slot=number)

    def limit(self, slots: int, age: int = 0) -> None:
        limits = {f"limit{b}": slots // BANKS + (b < slots % BANKS) for b in range(BANKS)}
        self.entries.set("slot_limits", "set_limits", **limits, age=age)

    def fill(self, *sources: int, **fields: Any) -> list[tuple[Packet, packets.Lanes]]:
        with self.counted(Outcome.AGGREGATED, len(sources), completed={}):
            return [self.feature(source, **fields) for source in sources]

    def overflow(self, *sources: int, **fields: Any) -> None:
        """Send features that find no slot: each must reach the worker as it came."""
        for source in sources:
            with self.counted(Outcome.AGGREGATED, completed={}, overflowed={0: 1}):
                packet, _ = self.feature(source, **fields)
                self.expect_overflow(packet, self.vertex_of(source))

    def complete(
        self, source: int, before: Iterable[tuple[Packet, packets.Lanes]] = (), **fields: Any
    ) -> None:
        """Send the last feature for a destination: the part with those ``before`` must leave."""
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            self.expect_part(self.vertex_of(source), [*before, self.feature(source, **fields)])

    def feature(self, source: int, **fields: Any) -> tuple[Packet, packets.Lanes]:
        owner = self.fan_in[self.vertex_of(source)][source]
        return self.send_feature(source, worker=owner, **fields)

    def expect_part(self, vertex: int, sent: list[tuple[Packet, packets.Lanes]]) -> None:
        """Expect the sum of what was sent, with the ids of its sources and the mark of any."""
        port, total = self.port_of(self.receiver), packets.sum_of(lanes for _, lanes in sent)
        sources = sum(packet["SwitchGNN"].Src_id for packet, _ in sent)
        fields = {"ECN": int(any(packet["SwitchGNN"].ECN for packet, _ in sent))}
        fields |= {"count": len(sent), "sources": sources}
        self.expect(port, packets.sum_to(port, vertex, total, completed_by=sent[-1][0], **fields))

    def expect_overflow(self, packet: Packet, vertex: int) -> None:
        """Expect a feature on its way to the worker that adds it."""
        port = self.port_of(self.receiver)
        self.expect(port, packets.relayed(packets.resigned(packet, Dst_id=vertex, Echo=0), to=port))

    def vertex_of(self, source: int) -> int:
        return next(vertex for vertex, sources in self.fan_in.items() if source in sources)
