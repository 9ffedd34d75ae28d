"""Splits the plan of one switch into the parts of leaves and spines.

Blocks, packets, order and the sums of workers stay the same. A leaf adds the packets of its own
workers. A sum with all sources and its destination there is complete; else the leaf sends a partial
sum up, and the destination's spine adds those of the leaves. To a spine a leaf is like a worker
with partial sums (section 4 of the paper).
"""

from dataclasses import dataclass, replace

import numpy as np

from switchgnn.base.array_types import Bools, Int32s, Int64s, Integers, UInt8s, UInt16s, UInt32s
from switchgnn.planner.base.arrays import concatenate, rank_within
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.base.lanes import banks_of_slot
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.graphs.graph import FIRST_BUNDLE_ID, FIRST_RESERVED_ID
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.plan.banks import BANKS, place_destinations
from switchgnn.planner.plan.parts import fill_tables, slot_order
from switchgnn.planner.plan.plan import Plan, SwitchPart
from switchgnn.planner.sending.packets import are_partial, wire_ids


def partial_senders(switch: SwitchPart) -> tuple[Int64s, Int64s]:
    """Return result and neighbour, int64[P] each, of every sender of partial sums for a result.

    Results are indices into those of the switch, ascending, and neighbours are numbered as in
    `source_worker`.
    """
    _, result, neighbour = _contributions(switch, np.flatnonzero(are_partial(switch.entry_source)))
    order = np.argsort(result, kind="stable")
    return result[order], neighbour[order]


def _contributions(
    switch: SwitchPart, entries: Int64s
) -> tuple[tuple[Int64s, Int64s], Int64s, Int64s]:
    """Return (entry, bank), result and sender, int64[C] each, of what these entries add."""
    row, bank = np.nonzero(switch.entry_expected[entries])
    entry = entries[row]
    slots = slot_key(switch.result_block, switch.result_bank, switch.result_slot)
    wanted = slot_key(switch.entry_block[entry], bank, switch.entry_slot[entry, bank])
    source = np.searchsorted(switch.source_vertex, switch.entry_source[entry])
    sender = switch.source_worker[source].astype(np.int64)
    return (entry, bank), np.searchsorted(slots, wanted), sender


def slot_key(block: Integers, bank: Integers, slot: Integers) -> Int64s:
    """Return a number for each slot, int64[N], in the order of the results of a switch."""
    key: Int64s = (block.astype(np.int64) * BANKS + bank) << 32
    return key + slot


# In `route_above`: this switch completes the sum itself.
NOBODY = 65535


@dataclass(frozen=True, eq=False)
class LeafSpinePart:
    """The part of one switch of a leaf-spine.

    Its neighbours are numbered: first those below it (a leaf's workers, a spine's leaves), then
    those above it (a leaf's spines). In `switch` they replace the workers.
    """

    number: int  # among the leaves, or among the spines
    below: tuple[int, ...]  # the number of each neighbour below, as it calls itself
    members: tuple[int, ...]  # the workers below each of them, bit w for worker w
    above: int  # the number of neighbours above
    switch: SwitchPart  # sources, entries and results
    # [R], the Src_id of a partial sum that goes up; 0 if it is complete
    result_partial: UInt32s
    result_owner: UInt16s  # [R], the worker that awaits the sum
    result_place: UInt16s  # [R], its place among those of that worker in the block
    route_block: UInt16s  # [D], key of a destination; sorted by block, vertex
    route_vertex: UInt32s  # [D], key
    route_neighbour: UInt16s  # [D], the neighbour towards the destination's worker
    # [D], the neighbour that completes the sum; NOBODY: this switch does
    route_above: UInt16s
    # [D], the index of its slot among the results; -1: it has none here
    route_result: Int64s


@dataclass(frozen=True, eq=False)
class LeafSpineParts:
    """The parts of all switches of a leaf-spine, in order."""

    leaf_spine: LeafSpine
    leaves: tuple[LeafSpinePart, ...]
    spines: tuple[LeafSpinePart, ...]

    @property
    def switches(self) -> tuple[LeafSpinePart, ...]:
        """All parts, leaves first."""
        return (*self.leaves, *self.spines)


def split_for_leaf_spine(
    plan: Plan, leaf_spine: LeafSpine, *, banks: int | None = None
) -> LeafSpineParts:
    """Split the plan of a single switch into the parts of leaves and spines.

    `banks`: of the switches; None: of one slot, if the plan adds to one per pass, or else all.
    """
    if banks is None:
        most = (plan.switch.entry_expected > 0).sum(axis=1).max(initial=0)
        banks = banks_of_slot(plan.manifest.lanes) if most == 1 else BANKS
    if plan.manifest.strawman:
        raise PlannerError("The strawman's plan is for a single switch: choose other blocks.")
    if leaf_spine.workers != plan.manifest.workers:
        raise PlannerError(
            f"The plan has {plan.manifest.workers} workers, the network {leaf_spine.workers}."
        )
    sums = find_sums(plan, leaf_spine)
    leaves = [_Leaf(plan, leaf_spine, sums, leaf, banks=banks) for leaf in range(leaf_spine.leaves)]
    ups = concatenate([leaf.partial_sums() for leaf in leaves])
    ids = _number_partial_sums(ups, sums, leaf_spine, len(plan.assignment))
    return LeafSpineParts(
        leaf_spine=leaf_spine,
        leaves=tuple(leaf.part(ids[ups.leaf == leaf.number]) for leaf in leaves),
        spines=tuple(
            _spine(plan, leaf_spine, sums, ups, ids=ids, number=spine, banks=banks)
            for spine in range(leaf_spine.spines)
        ),
    )


@dataclass(frozen=True, eq=False)
class PlannedSums:
    """The D sums of a plan and their C contributions."""

    block: Int64s  # [D], ascending
    vertex: Int64s  # [D], ascending within a block
    worker: Int64s  # [D]
    place: Int64s  # [D], among the sums of the worker in the block
    crosses: Bools  # [D], whether a spine completes it
    # [C], the destination of each contribution, sorted by block, then packet
    row: Int64s
    packet: Int32s  # [C], numbered as in the planner
    packet_row: UInt8s  # [C], the row of the packet that is added, if it is a bundle
    packet_worker: Int64s  # [C]
    count: Int64s  # [C]


def find_sums(plan: Plan, leaf_spine: LeafSpine) -> PlannedSums:
    """Return the sums of a plan, and which of them cross."""
    switch = plan.switch
    (entry, bank), result, packet_worker = _contributions(
        switch, np.arange(len(switch.entry_source))
    )
    order = np.lexsort((switch.result_vertex, switch.result_block))
    row = _positions(order, len(order))[result]
    worker = switch.result_worker[order].astype(np.int64)
    leaf = np.array(leaf_spine.leaf_of_worker)
    crosses = np.zeros(len(order), dtype=np.bool_)
    crosses[row[leaf[packet_worker] != leaf[worker[row]]]] = True
    return PlannedSums(
        block=switch.result_block[order].astype(np.int64),
        vertex=switch.result_vertex[order].astype(np.int64),
        worker=worker,
        place=rank_within((worker, switch.result_block[order])),
        crosses=crosses,
        row=row,
        packet=_planner_ids(switch.entry_source[entry], len(plan.assignment)),
        packet_row=switch.entry_row[entry, bank],
        packet_worker=packet_worker,
        count=switch.entry_count[entry].astype(np.int64),
    )


@dataclass(frozen=True, eq=False)
class _PartialSums:
    """The partial sums of the leaves: one row per (block, leaf, destination), U rows."""

    leaf: Int64s  # [U]
    row: Int64s  # [U], the destination, as in PlannedSums; ascending within a leaf
    count: Int64s  # [U]


class _Leaf:
    """A leaf whose sums have slots, before its partial sums have ids."""

    def __init__(
        self, plan: Plan, leaf_spine: LeafSpine, sums: PlannedSums, number: int, *, banks: int
    ) -> None:
        self.number = number
        self._plan, self._leaf_spine, self._sums = plan, leaf_spine, sums
        self._workers = leaf_spine.workers_of(number)
        mine = np.flatnonzero(_within(sums.packet_worker, self._workers))
        row = sums.row[mine]
        edges = BoundaryEdges(
            source=sums.packet[mine],
            destination=sums.vertex[row].astype(np.int32),
            source_worker=sums.packet_worker[mine].astype(np.uint8),
            destination_worker=sums.worker[row].astype(np.uint8),
        )
        block = sums.block[row].astype(np.int32)
        # The rows of a placement are sorted like those of the plan.
        self._row = np.unique(row)
        check_room(plan, f"leaf {number}", sums.block[self._row])
        self._count, self._packet_row = sums.count[mine], sums.packet_row[mine]
        self._placement = place_destinations(
            edges, block, plan.manifest.room, self._count, banks=banks, lanes=plan.manifest.lanes
        )

    def partial_sums(self) -> _PartialSums:
        up = self._sums.crosses[self._row]
        rows = self._row[up]
        return _PartialSums(np.full(len(rows), self.number), rows, self._placement.expected[up])

    def part(self, ids: Int32s) -> LeafSpinePart:
        switch, vertices = self._plan.switch, len(self._plan.assignment)
        sums, row, workers = self._sums, self._row, self._workers
        own = _within(switch.source_worker, workers)
        tables = fill_tables(
            switch.source_vertex[own],
            (switch.source_worker[own] - workers.start).astype(np.uint16),
            self._count,
            self._placement,
            vertices=vertices,
            row=self._packet_row if self._plan.manifest.rows > 1 else None,
        )
        partial = np.zeros(len(row), dtype=np.uint32)
        partial[sums.crosses[row]] = wire_ids(ids, vertices)
        results = slot_order(self._placement)
        towards, above = self._neighbours(row)
        leaves_by = np.where(sums.crosses[row], above, towards)[results]
        known = _within(sums.worker, workers)
        known[row] = True
        routes = np.flatnonzero(known)
        towards, above = self._neighbours(routes)
        return LeafSpinePart(
            number=self.number,
            below=tuple(workers),
            members=tuple(1 << worker for worker in workers),
            above=self._leaf_spine.spines,
            switch=replace(tables, result_worker=leaves_by.astype(np.uint16)),
            result_partial=partial[results],
            result_owner=sums.worker[row[results]].astype(np.uint16),
            result_place=sums.place[row[results]].astype(np.uint16),
            route_block=sums.block[routes].astype(np.uint16),
            route_vertex=sums.vertex[routes].astype(np.uint32),
            route_neighbour=towards.astype(np.uint16),
            route_above=above.astype(np.uint16),
            route_result=_positions(row[results], len(sums.block))[routes],
        )

    def _neighbours(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Return the neighbour towards the worker of each row, and the one that completes it."""
        sums, workers = self._sums, self._workers
        spine = len(workers) + self._leaf_spine.spine_of(sums.vertex[rows])
        owner = sums.worker[rows]
        towards = np.where(_within(owner, workers), owner - workers.start, spine)
        return towards, np.where(sums.crosses[rows], spine, NOBODY)


def _number_partial_sums(
    ups: _PartialSums, sums: PlannedSums, leaf_spine: LeafSpine, vertices: int
) -> Int32s:
    """Return the planner's number of each partial sum, as workers number theirs.

    V + rank · leaves + leaf, with the rank among the sums of the leaf for the spine in the block,
    so that a spine remembers no more of them than the fullest block needs.
    """
    block, spine = sums.block[ups.row], leaf_spine.spine_of(sums.vertex[ups.row])
    rank = rank_within((spine, ups.leaf, block), (ups.row,))
    number = vertices + rank * leaf_spine.leaves + ups.leaf
    if number.max(initial=0) >= FIRST_RESERVED_ID:
        raise PlannerError(
            f"{rank.max() + 1} partial sums of one leaf in one block are more than there are ids."
        )
    return number.astype(np.int32)


def _spine(
    plan: Plan,
    leaf_spine: LeafSpine,
    sums: PlannedSums,
    ups: _PartialSums,
    *,
    ids: Int32s,
    number: int,
    banks: int,
) -> LeafSpinePart:
    mine = np.flatnonzero(leaf_spine.spine_of(sums.vertex[ups.row]) == number)
    mine = mine[np.lexsort((ids[mine], sums.block[ups.row[mine]]))]
    row, leaf_of = ups.row[mine], np.array(leaf_spine.leaf_of_worker)
    edges = BoundaryEdges(
        source=ids[mine],
        destination=sums.vertex[row].astype(np.int32),
        source_worker=ups.leaf[mine].astype(np.uint8),
        destination_worker=leaf_of[sums.worker[row]].astype(np.uint8),
    )
    routes = np.unique(row)
    check_room(plan, f"spine {number}", sums.block[routes])
    block = sums.block[row].astype(np.int32)
    placement = place_destinations(
        edges, block, plan.manifest.room, ups.count[mine], banks=banks, lanes=plan.manifest.lanes
    )
    # Partial sums of workers end at their leaf. Of vertices, any may be fetched.
    plain = np.flatnonzero(plan.switch.source_vertex < FIRST_RESERVED_ID)
    partial, first = np.unique(ids[mine], return_index=True)
    vertices = len(plan.assignment)
    results, leaves = slot_order(placement), range(leaf_spine.leaves)
    sources = np.concatenate([plan.switch.source_vertex[plain], wire_ids(partial, vertices)])
    senders = np.concatenate([leaf_of[plan.switch.source_worker[plain]], ups.leaf[mine[first]]])
    return LeafSpinePart(
        number=number,
        below=tuple(leaves),
        members=tuple(sum(1 << it for it in leaf_spine.workers_of(leaf)) for leaf in leaves),
        above=0,
        switch=fill_tables(
            sources, senders.astype(np.uint16), ups.count[mine], placement, vertices=vertices
        ),
        result_partial=np.zeros(len(results), dtype=np.uint32),
        result_owner=sums.worker[routes[results]].astype(np.uint16),
        result_place=sums.place[routes[results]].astype(np.uint16),
        route_block=sums.block[routes].astype(np.uint16),
        route_vertex=sums.vertex[routes].astype(np.uint32),
        route_neighbour=leaf_of[sums.worker[routes]].astype(np.uint16),
        route_above=np.full(len(routes), NOBODY, dtype=np.uint16),
        route_result=_positions(routes[results], len(sums.block))[routes],
    )


def check_room(plan: Plan, switch: str, block: Integers) -> None:
    """Check that a switch has the slots for its sums, given the block of each."""
    fullest, room = int(np.bincount(block).max(initial=0)), plan.manifest.room
    if fullest > room:
        raise PlannerError(
            f"A block has {fullest:,} sums in {switch}, for {room:,} slots: its blocks "
            f"({plan.manifest.strategy.blocks}) are for other leaves and spines; plan again."
        )


def _within(numbers: Integers, some: range) -> Bools:
    inside: Bools = (numbers >= some.start) & (numbers < some.stop)
    return inside


def _positions(rows: Int64s, size: int) -> Int64s:
    position = np.full(size, -1, dtype=np.int64)
    position[rows] = np.arange(len(rows))
    return position


def _planner_ids(wire: UInt32s, vertices: int) -> Int32s:
    """Return the planner's ids that `wire_ids` or `bundle_ids` turned into ids of packets."""
    ids = wire.astype(np.int64)
    ids[ids >= FIRST_BUNDLE_ID] -= FIRST_BUNDLE_ID
    ids[ids >= FIRST_RESERVED_ID] += vertices - FIRST_RESERVED_ID
    return ids.astype(np.int32)
