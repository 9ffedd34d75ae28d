"""A switch made of dictionaries, to test hosts; only the header codec is the product's."""

import queue
import threading
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from switchgnn.host.wire import header as wire
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.narrow import bits_needed, pack_lanes, unpack_lanes
from tests.host.addresses import SESSION, SWITCH, WORKER, QueueLink

SWITCH_SIDE = Addresses(SWITCH, WORKER)
RESULT = ("block", "bank", "slot", "vertex", "worker")
Disturb = Callable[[str, int, bytes], Iterable[bytes]]


def undisturbed(direction: str, worker: int, frame: bytes) -> Iterable[bytes]:
    return [frame]


NONE = wire.Unit(0, 0, 0)


class Chain:
    """The barriers of one pool."""

    def __init__(self) -> None:
        self.barrier_unit = NONE
        self.barrier_done: set[int] = set()
        self.turn: wire.Unit | None = None
        self.early: wire.Unit | None = None
        self.following: dict[wire.Unit, tuple[tuple[bool, int, int], int]] = {}


class ModelSwitch:
    def __init__(
        self,
        switch_part,
        workers: int,
        plan: int,
        disturb: Disturb = undisturbed,
        session: int = SESSION,
    ):
        self.session = session
        self.workers = workers
        self.plan = plan
        self.disturb = disturb
        self.inboxes = [queue.SimpleQueue() for _ in range(workers)]
        self.lock = threading.Lock()
        self.owner = dict(
            zip(switch_part.source_vertex.tolist(), switch_part.source_worker.tolist(), strict=True)
        )
        results = {
            (block, bank, slot): (vertex, worker)
            for block, bank, slot, vertex, worker in zip(
                *(getattr(switch_part, f"result_{name}").tolist() for name in RESULT), strict=True
            )
        }
        sources = switch_part.entry_block.tolist(), switch_part.entry_source.tolist()
        keys = list(zip(*sources, strict=True))
        self.count = dict(zip(keys, switch_part.entry_count.tolist(), strict=True))
        self.fanout: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        for row, key in enumerate(keys):
            for bank in np.flatnonzero(switch_part.entry_expected[row]).tolist():
                target = results[key[0], bank, int(switch_part.entry_slot[row, bank])]
                expected = int(switch_part.entry_expected[row, bank])
                self.fanout.setdefault(key, []).append((*target, expected))
        self.forget()
        self.any_turn = False
        self.lose_inside: set[tuple[int, int]] = set()
        self.destination = {
            (block, vertex): (worker, expected)
            for (block, _), targets in self.fanout.items()
            for vertex, worker, expected in targets
        }

    def link(self, worker: int) -> QueueLink:
        return QueueLink(worker, partial(self.take, worker), self.inboxes[worker])

    def take(self, worker: int, frame: bytes) -> None:
        with self.lock:
            for arrived in self.disturb("up", worker, frame):
                self._process(worker, arrived)

    def _send(self, worker: int, header: wire.Header, body: bytes) -> None:
        own = header._replace(session=self.session & wire.SESSION_MASK)
        for arrived in self.disturb("down", worker, SWITCH_SIDE.frame(own.pack(body))):
            self.inboxes[worker].put(arrived)

    def restart(self) -> None:
        with self.lock:
            self.forget()

    def forget(self) -> None:
        """Restart, from within `disturb`, which has the lock."""
        self.seen: dict[tuple[int, int], wire.Unit] = {}
        self.sums: dict[tuple, tuple[int, np.ndarray]] = {}
        self.accepted: dict[tuple, int] = {}
        self.released: set[tuple] = set()
        self.chains = [Chain() for _ in range(4)]
        self.opened = (0, 0, 0)
        self.incarnations: dict[int, tuple[int, int]] = {}
        self.any_turn = True
        self.heartbeats = 0

    def _process(self, worker: int, frame: bytes) -> None:
        header = wire.unpack_header(frame)
        if header is None:
            return
        other = header.session != self.session & wire.SESSION_MASK
        if other and header.kind is not wire.Kind.DONE:
            return
        unit = header.unit
        chain = self.chains[wire.pool_of(unit.fragment)]
        if header.kind is not wire.Kind.DONE and not self._has_its_turn(unit, chain.early):
            return
        if header.kind is wire.Kind.FEATURE and self.owner.get(header.src_id) == worker:
            if header.resend:
                self._relay(header, frame)
            else:
                self._take_feature(worker, header, unit, frame)
        elif header.kind in (wire.Kind.RECALL, wire.Kind.FETCH):
            self._take_request(worker, header, unit)
        elif header.kind is wire.Kind.DONE and header.src_id == worker:
            self._take_done(worker, header, unit, frame, chain)

    def _has_its_turn(self, unit, turn) -> bool:
        return self.any_turn if turn is None else unit.order <= turn.order

    def _opens(self, unit, chain) -> bool:
        """Tell whether somebody may open a round with it, as the first one of a session."""
        opening = unit.block == 0 and wire.in_pool(unit.fragment, 0) == 0
        return chain.turn is None and opening and chain.barrier_unit in (NONE, unit)

    def _refuse_turn(self, worker, unit, chain) -> None:
        first, stands = wire.NOBODY, chain.barrier_unit.round
        if chain.turn is not None:
            stands = chain.turn.round
        elif stands:
            _, first = chain.following[chain.barrier_unit]
        self._answer([worker], wire.Kind.WAITING, unit, set(), wire.Refusal.TAG, first, stands)

    def _relay(self, header, frame) -> None:
        worker, _ = self.destination[header.block_id, header.dst_id]
        end = wire.BODY_AT + wire.payload_bytes(header.fragment, header.bits)
        self._send(worker, header, frame[wire.BODY_AT : end])

    def _take_feature(self, worker, header, unit, frame) -> None:
        if header.count != self.count.get((header.block_id, header.src_id)):
            return
        key = header.src_id, wire.pool_of(unit.fragment)
        last = self.seen.get(key, NONE)
        group = (worker, unit, header.feature_group)
        if unit.order > last.order:
            self.seen[key] = unit
            self.accepted[group] = self.accepted.get(group, 0) + 1
            size = wire.payload_bytes(header.fragment, header.bits)
            body = np.frombuffer(frame, np.uint8, count=size, offset=wire.BODY_AT).reshape(1, size)
            lanes = unpack_lanes(body, wire.lanes_of(header.fragment), header.bits)[0]
            for vertex, owner, expected in self.fanout[header.block_id, header.src_id]:
                if (header.src_id, vertex) not in self.lose_inside:
                    self._add(unit, header, vertex, owner, expected, lanes)
        if unit.order >= last.order and header.echo:
            told = {"src_id": header.src_id, "feature_group": header.feature_group}
            ack = self._header(wire.Kind.ACK, unit, count=self.accepted.get(group, 0), **told)
            self._send(worker, ack._replace(is_ack=True), b"")

    def _add(self, unit, feature, vertex, owner, expected, lanes) -> None:
        key = (*unit, vertex)
        if key in self.released:
            return
        count, total = self.sums.get(key, (0, np.zeros_like(lanes)))
        both = wire.combine_of(unit.fragment)(total.view("u4"), lanes.view("u4")).view("i4")
        self.sums[key] = count + feature.count, both
        if count + feature.count == expected:
            self._send_sum(unit, vertex, owner, narrow=feature.bits != 32)

    def _send_sum(self, unit, vertex, owner, *, narrow) -> None:
        count, total = self.sums[(*unit, vertex)]
        bits = int(bits_needed(total[np.newaxis])[0]) if narrow else 32
        header = self._header(wire.Kind.SUM, unit, dst_id=vertex, count=count, bits=bits)
        self._send(owner, header, pack_lanes(total[np.newaxis], bits).tobytes())

    def _take_request(self, worker, header, unit) -> None:
        owner, expected = self.destination.get((unit[1], header.dst_id), (None, 0))
        if owner != worker:
            return
        key = (*unit, header.dst_id)
        if header.kind is wire.Kind.FETCH:
            self.released.add(key)
            self._send(self.owner[header.src_id], header, b"")
            return
        count = 0xFFFF if key in self.released else self.sums.get(key, (0, None))[0]
        if count == expected:
            self._send_sum(unit, header.dst_id, worker, narrow=header.bits != 32)
        else:
            self._send(worker, header._replace(kind=wire.Kind.MISSING, count=count), b"")

    def _take_done(self, worker, header, unit, frame, chain) -> None:
        body = wire.BarrierBody.unpack(frame, wire.Kind.DONE)
        if body.plan != self.plan or header.session != self.session & wire.SESSION_MASK:
            self._answer([worker], wire.Kind.WAITING, unit, set())
            return
        if unit[0] == 0 or not (self._has_its_turn(unit, chain.turn) or self._opens(unit, chain)):
            self._refuse_turn(worker, unit, chain)
            return
        last, number = self.incarnations.get(worker, (0, header.dst_id))
        if number != header.dst_id and (unit[1] != 0 or unit[0] <= last):
            self._answer([worker], wire.Kind.WAITING, unit, set(), wire.Refusal.INCARNATION)
            return
        if unit[0] + header.echo > last:
            self.incarnations[worker] = unit[0] + header.echo, header.dst_id
        full = len(chain.barrier_done) == self.workers
        opening = wire.Unit(unit.round, 0, wire.in_pool(0, wire.pool_of(unit.fragment)))
        later = chain.barrier_unit.order > opening.order
        closed = later or (chain.barrier_unit == opening and full)
        if chain.turn is not None:
            closed = chain.turn.order > opening.order
        if unit[0] > self.opened[0]:
            self.opened = (unit[0], body.magnitude, worker)
        elif unit[0] == self.opened[0] and not closed:
            if body.magnitude > self.opened[1]:
                self.opened = (unit[0], body.magnitude, worker)
        elif unit[0] == self.opened[0] and unit[1] and body.magnitude != self.opened[1]:
            self._answer([worker], wire.Kind.WAITING, unit, set(), wire.Refusal.MAGNITUDE)
            return
        own = 1 << worker
        self.heartbeats = (self.heartbeats & ~own) | (body.workers & own)
        if unit.order < (chain.turn or chain.barrier_unit).order:
            self._answer([worker], wire.Kind.ADVANCE, unit, set(range(self.workers)))
            return
        next_unit = (header.echo, header.count, header.feature_group)
        first, culprit = chain.following.setdefault(unit, (next_unit, worker))
        if first != next_unit:
            self._answer([worker], wire.Kind.WAITING, unit, set(), wire.Refusal.NEXT, culprit)
            return
        if unit.order > chain.barrier_unit.order:
            chain.barrier_unit, chain.barrier_done = unit, set()
        new = worker not in chain.barrier_done
        chain.barrier_done.add(worker)
        if len(chain.barrier_done) == self.workers:
            early, block, fragment = next_unit
            chain.early = wire.Unit(unit.round + (early or block == 0), block, fragment)
            opening = chain.early._replace(block=0, fragment=opening.fragment)
            chain.turn = opening if early else chain.early
            everyone = range(self.workers) if new else [worker]
            self._answer(everyone, wire.Kind.ADVANCE, unit, chain.barrier_done)
        elif not new:
            self._answer([worker], wire.Kind.WAITING, unit, chain.barrier_done)

    def _header(self, kind, unit, **fields) -> wire.Header:
        number, block, fragment = unit
        return wire.Header(kind=kind, round=number, block_id=block, fragment=fragment, **fields)

    def _answer(
        self, workers, kind, unit, done, refusal=wire.Refusal.NONE, culprit=None, stands=None
    ) -> None:
        body = wire.BarrierBody(
            magnitude=self.opened[1],
            plan=self.plan,
            round=self.opened[0] if stands is None else stands,
            workers=sum(1 << worker for worker in done),
            heartbeats=self.heartbeats if kind is wire.Kind.WAITING else None,
        )
        told = {"dst_id": self.opened[2] if culprit is None else culprit, "count": refusal}
        header = self._header(kind, unit, **told)
        for worker in workers:
            self._send(worker, header, body.pack())
