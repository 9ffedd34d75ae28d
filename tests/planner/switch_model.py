"""A switch and its workers, as slow and as plain as possible: the judge of whole plans."""

import itertools
from dataclasses import dataclass, replace

import numpy as np

from switchgnn.planner import Direction, reference_sums
from switchgnn.planner.plan.leaf_spine import NOBODY, split_for_leaf_spine
from tests.planner.helpers import random_features, tuples

PARTIAL_SUMS, BUNDLES = 2**31, 3 * 2**30


class ReplayError(Exception):
    """The plan does not make a working exchange."""


def replay(plan, features, shuffle_seed, direction):
    """Run one exchange of `plan`, workers interleaved at random; return the sums, int64[V, F]."""
    rng = np.random.default_rng(shuffle_seed)
    total = np.zeros_like(features)
    for block in plan.manifest.direction(direction).block_numbers:
        arrived = [{} for _ in plan.workers]
        slots = {}
        for packet in _interleave(plan, block, features, rng):
            _through_switch(plan.switch, block, packet, slots, arrived)
        for part in plan.workers:
            _receive(part, block, arrived[part.worker], total)
    return total


def check_sums(graph, plan, seed=0, directions=tuple(Direction)):
    features = random_features(graph, seed)
    for direction in directions:
        expected = reference_sums(graph, plan.assignment, features, direction)
        assert np.array_equal(replay(plan, features, seed, direction), expected)


@dataclass(frozen=True)
class Packet:
    """What a worker sends: its id, who sends it, its Count and its rows."""

    source: int
    worker: int
    count: int
    rows: list[np.ndarray]


def _interleave(plan, block, features, rng):
    queues = [_packets(part, block, features) for part in plan.workers]
    turns = np.repeat(np.arange(len(queues)), [len(q) for q in queues])
    for turn in rng.permutation(turns):
        yield queues[turn].pop(0)


def _packets(part, block, features):
    packets = []
    of_frame = len(part.send_destination) // max(1, len(part.send_source))
    added = np.split(part.vertices[part.send_row], part.send_row_indptr[1:-1])
    for frame in range(part.send_indptr[block - 1], part.send_indptr[block]):
        source = int(part.send_source[frame])
        own = added[frame * of_frame : (frame + 1) * of_frame]
        if source < PARTIAL_SUMS and own[0].tolist() != [source]:
            raise ReplayError("send_row and send_source disagree")
        if (source >= BUNDLES) != (of_frame > 1):
            raise ReplayError(f"{source} has {of_frame} rows")
        count = len(own[0]) if of_frame == 1 else 1
        rows = [features[each].sum(axis=0) for each in own]
        packets.append(Packet(source, part.worker, count, rows))
    return packets


def _through_switch(switch, block, packet, slots, arrived):
    hop, source = 0, packet.source
    known = np.flatnonzero(switch.source_vertex == source)
    if len(known) != 1 or switch.source_worker[known[0]] != packet.worker:
        raise ReplayError(f"{source} is not of worker {packet.worker}")
    while True:
        key = (switch.entry_block == block) & (switch.entry_source == source)
        rows = np.flatnonzero(key & (switch.entry_hop == hop))
        if len(rows) != 1:
            raise ReplayError(f"{len(rows)} entries for {block, source, hop}")
        row = rows[0]
        if switch.entry_count[row] != packet.count:
            raise ReplayError(f"Count {packet.count} of {source}")
        for bank in range(8):
            expected = int(switch.entry_expected[row, bank])
            if expected:
                where = (bank, int(switch.entry_slot[row, bank]))
                added = packet.rows[switch.entry_row[row, bank]], packet.count
                _add(switch, block, where, added, expected, slots, arrived)
        if switch.entry_last[row]:
            return
        hop += 1


def _add(switch, block, where, added, expected, slots, arrived):
    value, count = slots.get(where, (0, 0))
    value, count = value + added[0], count + added[1]
    slots[where] = (value, count)
    if count > expected:
        raise ReplayError(f"slot {where} overfull")
    if count < expected:
        return
    rows = np.flatnonzero(
        (switch.result_block == block)
        & (switch.result_bank == where[0])
        & (switch.result_slot == where[1])
    )
    if len(rows) != 1:
        raise ReplayError(f"{len(rows)} results for {block, where}")
    inbox = arrived[switch.result_worker[rows[0]]]
    vertex = int(switch.result_vertex[rows[0]])
    if vertex in inbox:
        raise ReplayError(f"two sums for {vertex}")
    inbox[vertex] = (value, count)


def _receive(part, block, inbox, total):
    rows = range(part.receive_indptr[block - 1], part.receive_indptr[block])
    if sorted(inbox) != part.receive_vertex[rows.start : rows.stop].tolist():
        raise ReplayError(f"worker {part.worker} expects other sums than arrive")
    for row in rows:
        vertex = int(part.receive_vertex[row])
        value, count = inbox[vertex]
        if count != part.receive_count[row]:
            raise ReplayError(f"Count {count} for vertex {vertex}")
        total[part.vertices[part.receive_row[row]]] += value


@dataclass(frozen=True)
class Replayed:
    """What arrived, and what crossed: packets by leaf, then spine."""

    sums: np.ndarray
    partial_sums: np.ndarray
    sums_down: np.ndarray


def replay_leaf_spine(plan, parts, features, direction=Direction.FORWARD):
    rng = np.random.default_rng(1)
    leaf_spine = parts.leaf_spine
    total = np.zeros_like(features)
    up, down = np.zeros((2, leaf_spine.leaves, leaf_spine.spines), dtype=int)
    for block in plan.manifest.direction(direction).block_numbers:
        arrived = [{} for _ in plan.workers]
        at_leaf = [_inboxes(leaf) for leaf in parts.leaves]
        slots = [{} for _ in parts.leaves]
        for packet in _interleave(plan, block, features, rng):
            leaf = leaf_spine.leaf_of_worker[packet.worker]
            part = parts.leaves[leaf]
            local = replace(packet, worker=part.below.index(packet.worker))
            _through_switch(part.switch, block, local, slots[leaf], at_leaf[leaf])
        partial = [[] for _ in parts.spines]
        for leaf, inboxes in zip(parts.leaves, at_leaf, strict=True):
            for position, worker in enumerate(leaf.below):
                arrived[worker].update(inboxes[position])
            for spine, inbox in enumerate(inboxes[len(leaf.below) :]):
                up[leaf.number, spine] += len(inbox)
                partial[spine] += _partial_sums(leaf, block, inbox)
        for spine, packets in zip(parts.spines, partial, strict=True):
            inboxes, there = _inboxes(spine), {}
            for at in rng.permutation(len(packets)):
                _through_switch(spine.switch, block, packets[at], there, inboxes)
            for leaf, inbox in enumerate(inboxes):
                owners = [_towards(parts.leaves[leaf], block, vertex) for vertex in inbox]
                bundles = -(-np.bincount(owners, minlength=1) // plan.manifest.rows)
                down[leaf, spine.number] += bundles.sum()
                for owner, (vertex, value) in zip(owners, inbox.items(), strict=True):
                    arrived[owner][vertex] = value
        for part in plan.workers:
            _receive(part, block, arrived[part.worker], total)
    return Replayed(total, up, down)


def check_leaf_spine(graph, plan, leaf_spine):
    """Return the parts of the plan after checking their routes and sums."""
    parts = split_for_leaf_spine(plan, leaf_spine)
    check_routes(plan, parts)
    features = random_features(graph)
    expected = reference_sums(graph, plan.assignment, features)
    assert np.array_equal(replay_leaf_spine(plan, parts, features).sums, expected)
    return parts


def _inboxes(part):
    return [{} for _ in range(len(part.below) + part.above)]


def _partial_sums(leaf, block, inbox):
    switch = leaf.switch
    for vertex, (value, count) in inbox.items():
        (at,) = np.flatnonzero((switch.result_block == block) & (switch.result_vertex == vertex))
        if not leaf.result_partial[at]:
            raise ReplayError(f"a complete sum of {vertex} goes up")
        yield Packet(int(leaf.result_partial[at]), leaf.number, count, [value])


def _towards(leaf, block, vertex):
    at = np.flatnonzero((leaf.route_block == block) & (leaf.route_vertex == vertex))
    if len(at) != 1 or leaf.route_neighbour[at[0]] >= len(leaf.below):
        raise ReplayError(f"leaf {leaf.number} has no worker for the sum of {vertex}")
    return leaf.below[leaf.route_neighbour[at[0]]]


def check_routes(plan, parts):
    """Assert that each switch finds a sum's slot, worker and senders, and where it completes."""
    owner = dict(zip(_destinations(plan.switch), plan.switch.result_worker.tolist(), strict=True))
    sender = dict(tuples(plan.switch.source_vertex, plan.switch.source_worker))
    home = parts.leaf_spine.leaf_of_worker
    place = {
        key: (own.worker, index)
        for own in plan.workers
        for block, (begin, end) in enumerate(itertools.pairwise(own.receive_indptr), 1)
        for index, key in enumerate((block, each) for each in own.receive_vertex[begin:end])
    }
    spine_of = {key: spine.number for spine in parts.spines for key in _destinations(spine.switch)}
    for part in parts.switches:
        switch, is_leaf, local = part.switch, part.above > 0, _destinations(part.switch)
        entry, bank = np.nonzero(switch.entry_expected)
        slot, awaited = (each[entry, bank] for each in (switch.entry_slot, switch.entry_expected))
        expected = dict(zip(tuples(switch.entry_block[entry], bank, slot), awaited, strict=True))
        results = tuples(switch.result_block, switch.result_bank, switch.result_slot)
        assert [expected[key] for key in results] == switch.result_expected.tolist()
        assert list(tuples(part.result_owner, part.result_place)) == [place[it] for it in local]
        keys = list(tuples(part.route_block, part.route_vertex))
        own = {key for key, worker in owner.items() if is_leaf and worker in part.below}
        assert keys == sorted(own | set(local))
        routes = tuples(part.route_neighbour, part.route_above, part.route_result)
        for key, route in zip(keys, routes, strict=True):
            up = len(part.below) + spine_of.get(key, 0)
            towards = part.below.index(owner[key]) if key in own else up
            above = up if is_leaf and key in spine_of else NOBODY
            slot = local.index(key) if key in local else -1
            assert route == (towards if is_leaf else home[owner[key]], above, slot)
        known = dict(tuples(switch.source_vertex, switch.source_worker))
        if is_leaf:
            below = {worker: position for position, worker in enumerate(part.below)}
            assert known == {s: below[w] for s, w in sender.items() if w in below}
        else:
            plain = {s: home[w] for s, w in sender.items() if s < PARTIAL_SUMS}
            assert {s: leaf for s, leaf in known.items() if s < PARTIAL_SUMS} == plain


def _destinations(switch):
    return list(tuples(switch.result_block, switch.result_vertex))
