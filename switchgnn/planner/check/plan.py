"""The checker: does a plan serve every boundary edge exactly once? And the sums that are right.

The reader of plans has checked digests, and the shapes and ranges of all arrays. The checker
follows docs/plans.md: it compares the tables of the switch with the lists of the workers, and both
with the edges: those of the graph, or without a graph those in the workers' lists of neighbours. It
shares with the planner's stages only the count of slots over leaves and spines.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Bools, Int32s, Int64s, Integers
from switchgnn.planner.base.arrays import ranges, rank_in_group, starts_group
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.base.lanes import banks_of_slot
from switchgnn.planner.blocks.destination import find_blocks_over
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.graphs.graph import FIRST_BUNDLE_ID, FIRST_RESERVED_ID, Graph
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.partition.vertex_cut import ReplicaGraph
from switchgnn.planner.plan.files import read_plan
from switchgnn.planner.plan.leaf_spine import check_room, find_sums, slot_key
from switchgnn.planner.plan.manifest import DirectionRecord
from switchgnn.planner.plan.plan import Plan, SwitchPart
from switchgnn.planner.sending.packets import are_partial

_LOW = 0xFFFFFFFF


@dataclass(frozen=True)
class CheckedPlan:
    """A plan that passed the check."""

    workers: int
    blocks: int
    packets: int  # sent by all workers in all blocks
    sums: int  # received by all workers in all blocks
    edges: int  # served boundary edges of each direction that has blocks of its own


@dataclass(frozen=True, eq=False)
class _Edges:
    """Edges and the blocks that serve them, sorted by block, then key."""

    block: Integers  # [E]
    key: Int64s  # [E], source << 32 | destination


@dataclass(frozen=True, eq=False)
class _Additions:
    """The A additions of rows of the P packets to results, and the packets that the switch takes.

    A packet has F rows.
    """

    row: Int64s  # [A], F times the number of the packet, and the row in it
    result: Int64s  # [A]
    packet: Int64s  # [P], block << 32 | Src_id, ascending
    count: Integers  # [P], the Count of the packet


def check_plan(source: str | Path | Plan, graph: Graph | None = None) -> CheckedPlan:
    """Check everything that a plan promises, in a folder or as `read_plan` has returned it.

    Every boundary edge is served once, in one block, by one packet, or its destination is left to
    the hosts with all its edges. No slot is used twice in a block or lies outside its bank. Every
    expected count matches its packets. Every worker holds, sends and receives its own, and knows
    its neighbours.

    Without the graph, the switch and the workers only have to agree on the edges.

    Raises:
        PlannerError: a file cannot be read or is damaged, or the plan breaks a promise; the message
            names the first violation.
    """
    plan = source if isinstance(source, Plan) else read_plan(source)
    record = plan.manifest.graph
    if graph is not None and graph.digest() != record.digest:
        raise PlannerError(f"The plan is for graph {record.name}, not for this {graph.name}.")
    _check_owners(plan)
    _check_results(plan)
    additions = _check_entries(plan)
    expected = _check_receives(plan, additions)
    served = _check_sends(plan, additions, len(expected.key))
    _check_same(served, expected)
    _check_directions(plan, expected, graph)
    return CheckedPlan(
        workers=len(plan.workers),
        blocks=plan.manifest.blocks,
        packets=len(additions.packet),
        sums=len(plan.switch.result_block),
        edges=len(expected.key),
    )


def _check_owners(plan: Plan) -> None:
    ids, assignment = plan.switch.source_vertex, plan.assignment
    plain = ids[ids < FIRST_RESERVED_ID]
    _require(np.all(plain < len(assignment)), "A source is no vertex of the graph.")
    wrong = assignment[plain] != plan.switch.source_worker[: len(plain)]
    _refuse_any(plain[wrong], "Source {} has another owner in the switch.")
    for part in plan.workers:
        _require(
            np.array_equal(part.vertices, np.flatnonzero(assignment == part.worker)),
            f"Worker {part.worker} does not hold exactly the vertices that are assigned to it.",
        )


def _check_results(plan: Plan) -> None:
    switch, manifest = plan.switch, plan.manifest
    block, bank, slot = switch.result_block, switch.result_bank, switch.result_slot
    ascending = np.all(np.diff(slot_key(block, bank, slot)) > 0)
    _require(ascending, "Two destinations of one block share a slot, or results are not sorted.")
    if manifest.strawman:
        return
    aligned = np.all(bank % banks_of_slot(manifest.lanes) == 0)
    _require(aligned, f"A slot of {manifest.lanes} numbers begins inside another one.")
    # Blocks for leaves and spines are checked against the slots of each of these.
    if find_blocks_over(manifest.strategy.blocks) is None:
        inside = np.all(slot < manifest.pool_slots)
        _require(inside, f"A result is in a slot beyond {manifest.pool_slots - 1} of its pool.")
        fullest, room = int(np.bincount(block).max(initial=0)), manifest.room
        enough = fullest <= room
        _require(enough, f"A block has {fullest} destinations for {room} slots of a pool.")


def _check_entries(plan: Plan) -> _Additions:
    switch, rows = plan.switch, plan.manifest.rows
    source, count, used = switch.entry_source, switch.entry_count, switch.entry_expected > 0
    key = (switch.entry_block.astype(np.int64) << 32) | source
    _require(np.all(np.diff(key) >= 0), "The entries of the switch are not sorted.")
    new = starts_group(key)
    first, packet = np.flatnonzero(new), np.cumsum(new) - 1
    skipped = ((switch.entry_slot > 0) | (switch.entry_row > 0)) & ~used
    every = np.arange(len(key))
    for right, problem in (
        (_find(switch.source_vertex, source) >= 0, "is not among the sources"),
        ((source >= FIRST_BUNDLE_ID) == (rows > 1), f"is not of a packet with {rows} rows"),
        (switch.entry_hop == rank_in_group(key), "has hops that are not 0, 1, 2, ..."),
        (switch.entry_last == np.append(new, True)[1:], "ends at a hop that is not its last"),
        (np.any(used, axis=1), "has a pass that adds nothing"),
        (~np.any(skipped, axis=1), "names a slot or a row for a bank that it skips"),
        ((count > 0) & (count == count[first[packet]]), "changes its Count between hops"),
    ):
        _check_each(switch, every, right, problem)
    entry, bank = np.nonzero(used)
    result = _check_additions(switch, entry, bank)
    row = packet[entry] * rows + switch.entry_row[entry, bank]
    return _Additions(row, result, key[first], count[first])


def _check_additions(switch: SwitchPart, entry: Int64s, bank: Int64s) -> Int64s:
    slots = slot_key(switch.result_block, switch.result_bank, switch.result_slot)
    wanted = slot_key(switch.entry_block[entry], bank, switch.entry_slot[entry, bank])
    result = _find(slots, wanted)
    _check_each(switch, entry, result >= 0, "adds to a slot that is nobody's")
    same = switch.entry_expected[entry, bank] == switch.result_expected[result]
    _check_each(switch, entry, same, "expects another count of its slot than its result does")
    arriving = np.bincount(result, switch.entry_count[entry], minlength=len(slots))
    _refuse_any(
        switch.result_vertex[arriving != switch.result_expected],
        "The sum of vertex {} expects another count than its packets carry.",
    )
    return result


def _check_receives(plan: Plan, additions: _Additions) -> _Edges:
    switch, shared, found = plan.switch, plan.manifest.replicated, []
    for part in plan.workers:
        who, vertex = f"Worker {part.worker}", part.receive_vertex.astype(np.int64)
        block = _blocks(part.receive_indptr)
        own = part.vertices[part.receive_row]
        named = shared or np.array_equal(own, vertex)
        _require(named, f"{who}: receive_row and receive_vertex differ.")
        mine = np.flatnonzero(switch.result_worker == part.worker)
        if shared:
            packet = additions.packet[additions.row // plan.manifest.rows] & _LOW
            sender = switch.source_worker[_find(switch.source_vertex, packet)]
            mine = np.unique(additions.result[sender == part.worker])
        mine = mine[np.lexsort((switch.result_vertex[mine], switch.result_block[mine]))]
        sums = (switch.result_block[mine].astype(np.int64) << 32) | switch.result_vertex[mine]
        same = np.array_equal(sums, (block << 32) | vertex) and np.all(np.diff(sums) > 0)
        _require(same, f"{who} expects other sums than the switch sends it.")
        counts = np.array_equal(switch.result_expected[mine], part.receive_count)
        _require(counts, f"{who} expects another Count of a sum than the switch.")
        source, sizes = part.neighbour_vertex.astype(np.int64), np.diff(part.neighbour_indptr)
        owner = plan.assignment[source]
        known = bool(np.all(owner == part.neighbour_worker))
        if shared:
            known = known and bool(np.array_equal(source[owner == part.worker], own))
        else:
            known = known and not bool(np.any(owner == part.worker))
        _require(known, f"{who} believes that a neighbour belongs to another worker than it does.")
        in_sum = (np.repeat(np.arange(len(sizes)), sizes) << 32) | source
        _require(np.all(np.diff(in_sum) > 0), f"{who}: neighbours are not ascending.")
        found.append((np.repeat(block, sizes), (source << 32) | np.repeat(vertex, sizes)))
    edges = _sorted_edges(*(np.concatenate(each) for each in zip(*found, strict=True)))
    if not shared:
        return edges
    # Each of the workers that share a sum knows all of it.
    new = starts_group(edges.block, edges.key)
    times = np.diff(np.append(np.flatnonzero(new), len(new)))
    sums = ((edges.block.astype(np.int64) << 32) | (edges.key & _LOW))[new]
    _, of_edge, sizes = np.unique(sums, return_inverse=True, return_counts=True)
    all_known = np.array_equal(times, sizes[of_edge])
    _require(all_known, "Workers that share a sum know different replicas of it.")
    return _Edges(edges.block[new], edges.key[new])


def _check_sends(plan: Plan, additions: _Additions, edges: int) -> _Edges:
    rows, switch = plan.manifest.rows, plan.switch
    sent = _sent(plan)
    order = np.argsort(sent.key, kind="stable")
    _require(
        np.array_equal(sent.key[order], additions.packet),
        "The packets of the workers are not, once each, those that the switch has entries for.",
    )
    by_row = (order[:, np.newaxis] * rows + np.arange(rows)).reshape(-1)
    counts = sent.sizes[order] if rows == 1 else np.ones(len(order), dtype=np.int64)
    _refuse_any(
        additions.packet[counts != additions.count] & _LOW,
        "Packet {} adds up more or fewer vertices than the switch takes it for.",
    )
    row = by_row[additions.row]
    sizes, vertex = sent.sizes[row], switch.result_vertex[additions.result].astype(np.int64)
    _require(np.all(sizes > 0), "The switch adds rows of a bundle that carry nothing.")
    # Only sums of several vertices name their destination, and those of replicas.
    named, right = sent.destination[row], np.where(sizes > 1, vertex, 0)
    right = vertex if plan.manifest.replicated else right
    wrong = np.flatnonzero(named != right)
    if len(wrong):
        at = wrong[0]
        raise PlannerError(
            f"Packet {additions.packet[additions.row[at] // rows] & _LOW} names the destination "
            f"{named[at]}, but should name {right[at]} (0: none)."
        )
    # Compared before they are listed, so that they take no more memory than the files.
    total = int(sizes.sum())
    _require(total == edges, f"The switch serves {total} edges, but the workers expect {edges}.")
    source = sent.vertex[ranges(sent.start[row], sizes)]
    block = np.repeat(switch.result_block[additions.result], sizes)
    return _sorted_edges(block, (source << 32) | np.repeat(vertex, sizes))


@dataclass(frozen=True, eq=False)
class _Sent:
    """The packets of all workers, one after another, and what their rows carry."""

    key: Int64s  # [P], block << 32 | Src_id
    start: Int64s  # [P * F], the first vertex of each row
    sizes: Int64s  # [P * F], the vertices in each row
    vertex: Int64s  # [L]
    destination: Integers  # [P * F]


def _sent(plan: Plan) -> _Sent:
    parts, rows, switch = plan.workers, plan.manifest.rows, plan.switch
    worker = np.repeat(np.arange(len(parts)), [len(part.send_source) for part in parts])
    ids = np.concatenate([part.send_source for part in parts]).astype(np.int64)
    sizes = np.concatenate([np.diff(part.send_row_indptr) for part in parts])
    vertex = np.concatenate([part.vertices[part.send_row] for part in parts])
    start = np.cumsum(sizes) - sizes
    filled = sizes.reshape(-1, rows) > 0
    gap = np.any(filled[:, 1:] & ~filled[:, :-1], axis=1)
    # The last one is of packets that are no source.
    sender = np.append(switch.source_worker, len(parts))[_find(switch.source_vertex, ids)]
    for right, what in (
        (filled[:, 0], "a packet that carries nothing"),
        (~gap, "a bundle with a gap between its rows"),
        (sender == worker, "a packet that the switch takes from another worker only, or from none"),
    ):
        _refuse_any(worker[~right], f"Worker {{}} sends {what}.")
    plain = np.flatnonzero(ids < FIRST_RESERVED_ID)
    one = (sizes[plain * rows] == 1) & (vertex[start[plain * rows]] == ids[plain])
    _refuse_any(
        worker[plain[~one]],
        "Worker {} sends a packet of one vertex whose send_row and send_source differ.",
    )
    block = np.concatenate([_blocks(part.send_indptr) for part in parts])
    destination = np.concatenate([part.send_destination for part in parts])
    return _Sent((block << 32) | ids, start, sizes, vertex, destination)


def _check_same(served: _Edges, expected: _Edges) -> None:
    differs = (served.key != expected.key) | (served.block != expected.block)
    if np.any(differs):
        at = np.argmax(differs)
        raise PlannerError(
            f"A worker expects the edge {_edge(expected.key[at])} in block {expected.block[at]}, "
            f"but the switch serves {_edge(served.key[at])} in block {served.block[at]}."
        )


def _check_directions(plan: Plan, expected: _Edges, graph: Graph | None) -> None:
    _check_ranges(plan)
    _check_left(plan)
    served = {
        name: np.sort(expected.key[_within(expected.block, record)])
        for name, record in plan.manifest.directions.items()
    }
    if plan.manifest.replicated:
        _check_replicas(plan, next(iter(served.values())), graph)
        return
    if graph is None:
        edges = [_along(name, keys) for name, keys in served.items()]
        forward = np.unique(np.concatenate(edges))
    else:
        tail = np.repeat(np.arange(graph.vertices), np.diff(graph.indptr))
        crosses = plan.assignment[tail] != plan.assignment[graph.indices]
        forward = (tail[crosses] << 32) | graph.indices[crosses]
    for name, keys in served.items():
        whole, left = _along(name, forward), plan.left(Direction(name))
        into = whole & _LOW
        _check_edges(name, keys, whole[~left[into]])
        if graph is not None:
            _refuse_any(
                np.setdiff1d(np.flatnonzero(left), into),
                f"{name}: vertex {{}} is left to the hosts without any remote neighbour.",
            )
        _check_prediction(plan, name, whole, known=graph is not None or not np.any(left))
    most = max(int(np.bincount(keys & _LOW).max(initial=1)) for keys in served.values())
    _require(most == plan.manifest.max_fan_in, "plan.json has a wrong max_fan_in.")
    _check_leaves_and_spines(plan, expected)


def _check_replicas(plan: Plan, keys: Int64s, graph: Graph | None) -> None:
    """Check that the sum of each vertex has all its replicas, and one of each worker."""
    source, master = keys >> 32, keys & _LOW
    ends = np.stack([master, plan.assignment[source]])
    once = np.unique(ends, axis=1).shape == ends.shape and len(np.unique(source)) == len(source)
    _require(once, "A worker adds to a sum twice, or a replica is in two sums.")
    masters = np.array_equal(np.unique(master), np.sort(master[source == master]))
    _require(masters, "A sum is for a vertex that is not among its replicas.")
    mirrors = keys[source != master]
    star = np.sort(np.concatenate([mirrors, _along(Direction.BACKWARD.value, mirrors)]))
    if graph is not None:
        tail = np.repeat(np.arange(graph.vertices), np.diff(graph.indptr))
        _check_edges("replicas", star, (tail << 32) | graph.indices)
    for name in plan.manifest.directions:
        _check_prediction(plan, name, star, known=True)
    most = int(np.bincount(master).max(initial=1))
    _require(most == plan.manifest.max_fan_in, "plan.json has a wrong max_fan_in.")


def _check_leaves_and_spines(plan: Plan, expected: _Edges) -> None:
    over = find_blocks_over(plan.manifest.strategy.blocks)
    if over is None:
        return
    for record in plan.manifest.directions.values():
        inside = _within(expected.block, record)
        key = expected.key[inside]
        ends = (key >> 32).astype(np.int32), (key & _LOW).astype(np.int32)
        owners = (plan.assignment[end].astype(np.uint8) for end in ends)
        block = expected.block[inside].astype(np.int32)
        over.check(BoundaryEdges(*ends, *owners), block, plan.manifest.room, len(plan.workers))


def _check_ranges(plan: Plan) -> None:
    """Check that the directions have all blocks, in one range after another or the same one."""
    directions, blocks = plan.manifest.directions, plan.manifest.blocks
    found = sorted({(each.first_block, each.last_block) for each in directions.values()})
    ends = [0, *(last for _, last in found)]
    _require(
        bool(directions)
        and set(directions) <= {each.value for each in Direction}
        and [first for first, _ in found] == [end + 1 for end in ends[:-1]]
        and (ends == sorted(ends) and ends[-1] == blocks),
        "plan.json: some blocks are of no direction, or of two.",
    )


def _check_left(plan: Plan) -> None:
    lists = {(part.left_forward is None, part.left_backward is None) for part in plan.workers}
    same = len(lists) == 1 and lists <= {(True, True), (False, False)}
    _require(same, "The plan is damaged: only some files list what is left to the hosts.")
    left = {each.value for each in Direction if np.any(plan.left(each))}
    known = left <= set(plan.manifest.directions) and bool(left) == plan.leaves_any
    _require(known, "Nothing is left to the hosts, or something in a direction without blocks.")


def _check_edges(name: str, served: Int64s, boundary: Int64s) -> None:
    if np.array_equal(served, boundary):
        return
    for found, problem in (
        (np.setdiff1d(served, boundary), "is served, but left to the hosts or no boundary edge"),
        (served[1:][served[1:] == served[:-1]], "is served more than once"),
        (np.setdiff1d(boundary, served), "is served by no packet"),
    ):
        if len(found):
            raise PlannerError(f"{name}: the edge {_edge(found[0])} {problem}.")


def _check_prediction(plan: Plan, name: str, whole: Int64s, *, known: bool) -> None:
    """Compare the prediction with the parts; with the whole boundary, unless it is unknown."""
    switch, parts, rows = plan.switch, plan.workers, plan.manifest.rows
    record, workers = plan.manifest.directions[name], len(parts)
    first, last = record.first_block, record.last_block
    here = _within(switch.entry_block, record)
    passes = int(np.count_nonzero(here))
    partial = int(np.count_nonzero(are_partial(switch.entry_source[here])))
    received = [np.diff(part.receive_indptr[first - 1 : last + 1]) for part in parts]
    counted: dict[str, Any] = {
        "packets_up": [int(p.send_indptr[last] - p.send_indptr[first - 1]) for p in parts],
        "packets_down": [int((-(-sums // rows)).sum()) for sums in received],
        "contributions": int(np.count_nonzero(switch.entry_expected[here])),
        "entries": passes - partial,
        "passes": passes,
    }
    if known:
        source, destination = whole >> 32, whole & _LOW
        copies = np.unique((source << 32) | plan.assignment[destination])
        senders = plan.assignment[copies >> 32]
        counted |= {
            "boundary_vertices": len(np.union1d(source, destination)),
            "boundary_edges": len(whole),
            "host_packets_up": np.bincount(senders, minlength=workers).tolist(),
            "host_packets_down": np.bincount(copies & _LOW, minlength=workers).tolist(),
        }
    for field, value in counted.items():
        said = getattr(record.prediction, field)
        right = value == (list(said) if isinstance(said, tuple) else said)
        _require(right, f"plan.json predicts a wrong {field} of {name}.")


def _edge(key: np.int64) -> str:
    return f"{key >> 32}->{key & _LOW}"


def _along(name: str, keys: Int64s) -> Int64s:
    """Return the sorted keys of forward edges as those of a direction, or back."""
    if name == Direction.FORWARD.value:
        return keys
    return np.sort(((keys & _LOW) << 32) | (keys >> 32))


def _within(block: Integers, record: DirectionRecord) -> Bools:
    inside: Bools = (block >= record.first_block) & (block <= record.last_block)
    return inside


def _blocks(indptr: Int64s) -> Int64s:
    return np.repeat(np.arange(1, len(indptr), dtype=np.int64), np.diff(indptr))


def _sorted_edges(block: Integers, key: Int64s) -> _Edges:
    order = np.lexsort((key, block))
    return _Edges(block[order], key[order])


def _find(keys: Integers, wanted: Integers) -> Int64s:
    """Return the index of each in sorted keys, or -1."""
    index = np.searchsorted(keys, wanted)
    known = index < len(keys)
    known[known] = keys[index[known]] == wanted[known]
    return np.where(known, index, -1)


def _require(holds: bool | np.bool_, problem: str) -> None:
    if not holds:
        raise PlannerError(problem)


def _refuse_any(wrong: Integers, problem: str) -> None:
    if len(wrong):
        raise PlannerError(problem.format(wrong[0]))


def _check_each(switch: SwitchPart, entry: Int64s, right: Bools, problem: str) -> None:
    if not np.all(right):
        at = entry[np.argmin(right)]
        source, block = switch.entry_source[at], switch.entry_block[at]
        raise PlannerError(f"Source {source} of block {block} {problem}.")


def check_leaves_that_complete(plan: Plan, leaf_spine: LeafSpine) -> None:
    """Check that each leaf has the slots to complete the sums of its workers."""
    sums = find_sums(plan, leaf_spine)
    leaf_of = np.array(leaf_spine.leaf_of_worker)
    from_leaf, own = leaf_of[sums.packet_worker], leaf_of[sums.worker]
    for leaf in range(leaf_spine.leaves):
        rows = np.union1d(sums.row[from_leaf == leaf], np.flatnonzero(own == leaf))
        check_room(plan, f"leaf {leaf}", sums.block[rows])


def check_one_switch(plan: Plan) -> None:
    """Check that one switch has the slots for each block."""
    if not plan.manifest.strawman:
        check_room(plan, "one switch", plan.switch.result_block)


Number = TypeVar("Number", np.int64, np.float64)


def reference_sums(
    graph: Graph,
    assignment: Int32s,
    features: NDArray[Number],
    direction: Direction = Direction.FORWARD,
) -> NDArray[Number]:
    """Sum for each vertex the features of its neighbours on other workers.

    Of a vertex cut, sum for each replica those of all replicas of its vertex, if there are others.
    One sparse matrix product over the whole graph, as an oracle without code of the planner.

    Args:
        graph: with V vertices.
        assignment: int32[V], the worker of each vertex.
        features: int64[V, F] or float64[V, F].
        direction: FORWARD sums in-neighbours, BACKWARD out-neighbours.

    Returns:
        The same shape and type as `features`.
    """
    if isinstance(graph, ReplicaGraph):
        totals = np.zeros((graph.masters, features.shape[1]), features.dtype)
        np.add.at(totals, graph.vertex, features)
        totals = totals[graph.vertex]
        totals[np.bincount(graph.vertex)[graph.vertex] == 1] = 0
        return totals
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow to import

    rows = np.repeat(assignment, np.diff(graph.indptr))
    crosses = (rows != assignment[graph.indices]).astype(features.dtype)
    shape = (len(assignment), len(assignment))
    remote = csr_matrix((crosses, graph.indices, graph.indptr), shape=shape)
    sums: NDArray[Number] = (
        remote.T @ features if direction is Direction.FORWARD else remote @ features
    )
    return sums
