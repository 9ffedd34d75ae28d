# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""From a graph to a plan."""

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.arrays import distinct_pairs
from switchgnn.planner.blocks.leaf_spine import find_blocks_over
from switchgnn.planner.direction import Direction, find_directions
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.boundary import BoundaryEdges, boundary_edges
from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID, Graph
from switchgnn.planner.lanes import BANK_LANES, LANES, banks_of_slot
from switchgnn.planner.partition.workers import check_assignment, check_workers
from switchgnn.planner.plan.banks import (
    BANKS,
    BANKS_OF_SWITCHES,
    place_destinations,
    slots_per_bank,
)
from switchgnn.planner.plan.edge_sets import EdgeSet, OrderedBlocks, edge_sets, join_blocks
from switchgnn.planner.plan.files import render_parts
from switchgnn.planner.plan.manifest import (
    PLAN_FORMAT,
    PLAN_VERSION,
    STRAWMAN,
    DirectionRecord,
    GraphRecord,
    Manifest,
    PartitionRecord,
    Prediction,
    StrategyRecord,
    seal,
)
from switchgnn.planner.plan.parts import awaited_sums, switch_part, worker_part
from switchgnn.planner.plan.plan import Plan, SwitchPart, WorkerPart
from switchgnn.planner.sending.order import Rates, quickest_first
from switchgnn.planner.sending.packets import make_packets, make_sends
from switchgnn.planner.strategies import (
    BLOCK_STRATEGIES,
    ORDER_STRATEGIES,
    PARTITION_STRATEGIES,
    SEND_STRATEGIES,
    check_blocks,
    check_order,
    check_sends,
    find_blocks,
    find_strategy,
)


def direction_records(
    sets: Sequence[EdgeSet],
    ordered: Sequence[OrderedBlocks],
    switch: SwitchPart,
    parts: Sequence[WorkerPart],
) -> dict[str, DirectionRecord]:
    """Say what each direction costs, and which blocks it has.

    `parts`: one per worker.
    """
    records: dict[str, DirectionRecord] = {}
    first = 1
    for edges, blocks in zip(sets, ordered, strict=True):
        last = first + blocks.blocks - 1
        prediction = _predict(edges.whole, first, last, switch, parts)
        record = DirectionRecord(first, last, prediction)
        records.update({direction.value: record for direction in edges.directions})
        first = last + 1
    return records


def _predict(
    boundary: BoundaryEdges, first: int, last: int, switch: SwitchPart, parts: Sequence[WorkerPart]
) -> Prediction:
    copies_from, copies_to = boundary.host_copies()
    inside = (switch.entry_block >= first) & (switch.entry_block <= last)
    passes = int(np.count_nonzero(inside))
    partial = int(np.count_nonzero(switch.entry_source[inside] >= FIRST_RESERVED_ID))
    return Prediction(
        boundary_vertices=len(boundary.vertices()),
        boundary_edges=len(boundary),
        packets_up=tuple(_rows(part.send_indptr, first, last) for part in parts),
        packets_down=tuple(_rows(part.receive_indptr, first, last) for part in parts),
        host_packets_up=_per_worker(copies_from, len(parts)),
        host_packets_down=_per_worker(copies_to, len(parts)),
        passes=passes,
        contributions=int(np.count_nonzero(switch.entry_expected[inside])),
        entries=passes - partial,
    )


def _rows(indptr: NDArray[np.int64], first: int, last: int) -> int:
    """Return how many rows the blocks `first` to `last` have."""
    return int(indptr[last] - indptr[first - 1])


def _per_worker(rows: NDArray[np.int32], workers: int) -> tuple[int, ...]:
    return tuple(np.bincount(rows, minlength=workers).tolist())


def one_block(boundary: BoundaryEdges, slots: int, seed: int) -> NDArray[np.int32]:
    """Put all boundary edges into one block, however few the slots are.

    Returns int32[E], ones.
    """
    if slots < BANKS:
        raise PlannerError(
            f"{slots} slots are too few for the strawman, whose {BANKS} banks hand out their own: "
            f"it needs at least {BANKS}"
        )
    return np.ones(len(boundary), dtype=np.int32)


def most_destinations(sets: Sequence[EdgeSet]) -> int:
    """Return the destinations of the largest block, at least 1: each has a number in its bank."""
    return max([1, *(len(np.unique(each.boundary.destination)) for each in sets)])


Progress = Callable[[str], None]
# bool[V] for both directions, or one for each.
Left = NDArray[np.bool_] | Mapping[Direction, NDArray[np.bool_]]
_MULTICAST = "multicast"


def build_plan(
    graph: Graph,
    *,
    workers: int,
    slots: int,
    program: str,
    seed: int = 0,
    partition: str = "metis",
    blocks: str = "mlgp",
    send: str = _MULTICAST,
    weight: float = 0.0,
    order: str = "gamr",
    directions: str = "forward",
    assignment: NDArray[np.integer] | None = None,
    banks: int = BANKS,
    lanes: int = BANK_LANES,
    rates: Rates | None = None,
    fits: Callable[[Plan], bool] | None = None,
    left: Left | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Plan the exchange of one graph; the same arguments give the same plan.

    Args:
        graph: what is trained on.
        workers: how many hold it, from 1 to 128.
        slots: the aggregators of the switch, of BANK_LANES numbers each. One fragment is summed
            at a time, so their number does not depend on the width of the features.
        program: a hex digest of the P4 program that the plan is for; only recorded.
        seed: of the partition, the blocks and the order; not negative.
        partition: a key of PARTITION_STRATEGIES, or `ptscotch:RANKS`, `metis-leaf-spine:LEAVES` or
            `cdfgnn:LEAVES`.
        blocks: a key of BLOCK_STRATEGIES, or `strawman`: one block for each set of edges,
            whose destinations compete for the slots. Such a plan is for the P4 program of the
            strawman. Or KIND:LEAVES:SPINES: blocks for these leaves and spines with `slots` each.
            The switch's part is then that of one switch with as many slots as it needs.
        send: a key of SEND_STRATEGIES; `multicast` for the strawman.
        weight: what a contribution costs the switch, in packets; for the send strategy.
        order: a key of ORDER_STRATEGIES.
        directions: a key of DIRECTIONS: `forward` sums over in-neighbours; `both` also sums
            over out-neighbours, as training needs it. Both have the same assignment and the
            same slots; where they have the same edges they share their blocks.
        assignment: integers[V], the worker of each vertex; None lets `partition`
            choose.
        banks: one of BANKS_OF_SWITCHES: to how many slots one pass of the switch can add.
        lanes: one of LANES: numbers of the widest frame. A destination takes as many aggregators
            as it needs for them.
        rates: of links and the switch's loop: the weight with which an exchange takes the least
            time takes the place of `weight`. None: `weight` it is.
        fits: with rates, whether the switch has room for a plan. Of the weights whose plans fit,
            the quickest is taken. If none fits, the plan has the largest weight, as it needs the
            fewest entries. None: every plan fits.
        left: bool[V], the destinations that are left to the hosts, for both directions or by
            direction; those without remote neighbours do not count. None: the switch serves all.
        progress: called with a few words at the start of each step.

    Returns:
        The plan, sealed: `write_plan` writes it as it is.

    Raises:
        PlannerError: arguments out of range, or a plan beyond the limits of the protocol.
    """
    _check_arguments(graph, slots, program, seed)
    _check_switch(slots, banks, lanes, strawman=blocks == STRAWMAN)
    wide = banks_of_slot(lanes)
    if not 0 <= weight < math.inf:
        raise PlannerError(f"the weight of a contribution must be a number from 0, not {weight}")
    if blocks == STRAWMAN and send != _MULTICAST:
        raise PlannerError(
            f"the strawman's switch passes features on as they are: its workers send {_MULTICAST}, "
            f"not {send}"
        )
    make_assignment = find_strategy("partition", partition, PARTITION_STRATEGIES)
    make_blocks = find_blocks(blocks, workers, {**BLOCK_STRATEGIES, STRAWMAN: one_block})
    choose = find_strategy("send", send, SEND_STRATEGIES)
    make_order = find_strategy("order", order, ORDER_STRATEGIES)
    wanted = find_directions(directions)
    tell = progress or (lambda _step: None)

    tell("partition the vertices over the workers")
    check_workers(graph, workers)
    made = make_assignment(graph, workers, seed) if assignment is None else assignment
    owner = check_assignment(graph, workers, made)
    boundary = boundary_edges(graph, owner)
    left_to_hosts = _left_to_hosts(left, boundary, graph.vertices, wanted)
    if left_to_hosts is not None and blocks == STRAWMAN:
        raise PlannerError("the strawman's switch serves all destinations: leave none to the hosts")
    sets = edge_sets(boundary, wanted, left_to_hosts)

    tell("form blocks")
    block = [make_blocks(each.boundary, slots // wide, seed) for each in sets]
    room = _room(blocks, sets, block, slots // wide, workers)

    tell("choose what to send")

    def finish(weight: float) -> Plan:
        by_vertex = [choose(each.boundary, b, weight) for each, b in zip(sets, block, strict=True)]
        for each, choice in zip(sets, by_vertex, strict=True):
            check_sends(send, each.boundary, choice)
        packets = [
            make_packets(each.boundary, b, choice, vertices=graph.vertices, workers=workers)
            for each, b, choice in zip(sets, block, by_vertex, strict=True)
        ]

        tell("order the packets")
        ordered = [
            OrderedBlocks(each.boundary, b, served, make_order(served.edges, served.block, seed))
            for each, b, served in zip(sets, block, packets, strict=True)
        ]
        for done in ordered:
            check_order(order, done.packets.edges, done.packets.block, done.order)
        whole = join_blocks(ordered)

        tell("give every destination a slot")
        served = whole.packets
        counts = served.count if len(served.sums.block) else None
        placement = place_destinations(
            served.edges, served.block, room, counts, banks=banks, lanes=lanes
        )

        tell("write the parts of the switch and the workers")
        switch = switch_part(whole.boundary, whole.packets, placement)
        sends = make_sends(whole.packets, whole.order.block, whole.order.source, owner)
        sums = awaited_sums(whole.boundary, whole.block, whole.packets, placement)
        parts = tuple(
            worker_part(
                owner == worker,
                sends,
                sums,
                worker=worker,
                blocks=whole.blocks,
                left=left_to_hosts,
            )
            for worker in range(workers)
        )
        manifest = Manifest(
            format=PLAN_FORMAT,
            version=PLAN_VERSION,
            workers=workers,
            slots=slots,
            banks=BANKS,
            slots_per_bank=slots_per_bank(slots),
            lanes=lanes,
            blocks=whole.blocks,
            directions=direction_records(sets, ordered, switch, parts),
            max_fan_in=max(each.boundary.max_fan_in() for each in sets),
            graph=GraphRecord(graph.name, graph.vertices, len(graph.indices), graph.digest()),
            partition=PartitionRecord(
                method=partition if assignment is None else "given",
                seed=seed,
                digest=hashlib.sha256(owner.astype("<i4").data).hexdigest(),
            ),
            strategy=StrategyRecord(blocks, send, float(weight), order, seed),
            program=program,
            files={
                name: hashlib.sha256(data).hexdigest()
                for name, data in render_parts(switch, parts, owner)
            },
            digest="",
        )
        return Plan(seal(manifest), switch, parts, owner)

    if rates is None:
        return finish(weight)
    weights = quickest_first(
        [(each.boundary, b) for each, b in zip(sets, block, strict=True)],
        choose,
        rates,
        vertices=graph.vertices,
        workers=workers,
    )
    for quickest in weights:
        plan = finish(quickest)
        if fits is None or fits(plan):
            return plan
    return finish(max(weights))


def _room(
    name: str,
    sets: Sequence[EdgeSet],
    blocks: Sequence[NDArray[np.int32]],
    slots: int,
    workers: int,
) -> int:
    """Return the slots of the plan's one switch: `slots`, or what the largest block needs."""
    if name == STRAWMAN:
        slots = most_destinations(sets)
    over = find_blocks_over(name)
    for each, block in zip(sets, blocks, strict=True):
        most = slots if over is None else max(len(each.boundary), 1)
        check_blocks(name, each.boundary, block, most)
        if over is not None:
            over.check(each.boundary, block, slots, workers)
    pairs = [
        distinct_pairs(block, each.boundary.destination)[0]
        for each, block in zip(sets, blocks, strict=True)
    ]
    return max([slots, *(int(np.bincount(block).max(initial=0)) for block in pairs)])


def _left_to_hosts(
    left: Left | None, boundary: BoundaryEdges, vertices: int, wanted: Sequence[Direction]
) -> dict[Direction, NDArray[np.bool_]] | None:
    """Return the destinations that hosts serve by direction; None where there are none."""
    if left is None:
        return None
    chosen: dict[Direction, NDArray[np.bool_]] = {}
    ends = {Direction.FORWARD: boundary.destination, Direction.BACKWARD: boundary.source}
    for direction, end in ends.items():
        chosen[direction] = np.zeros(vertices, dtype=np.bool_)
        given = left.get(direction) if isinstance(left, Mapping) else left
        if given is None or direction not in wanted:
            continue
        if given.shape != (vertices,) or given.dtype != np.bool_:
            raise PlannerError(
                f"the vertices that are left to the hosts must be bool[{vertices}], not "
                f"{given.dtype}{list(given.shape)}"
            )
        chosen[direction][end] = given[end]
    return chosen if any(each.any() for each in chosen.values()) else None


def _check_arguments(graph: Graph, slots: int, program: str, seed: int) -> None:
    if graph.vertices > FIRST_RESERVED_ID:
        raise PlannerError(
            f"graph {graph.name} has {graph.vertices} vertices; ids from 2^31 on are reserved"
        )
    if not 1 <= slots < 2**32:
        raise PlannerError(
            f"{slots} slots are not possible: give at least 1 and at most {2**32 - 1:,}"
        )
    if not re.fullmatch(r"[0-9a-f]+", program):
        raise PlannerError(f"the digest of the P4 program must be lower-case hex, not {program!r}")
    if seed < 0:
        raise PlannerError(f"the seed must not be negative, but it is {seed}")


def _check_switch(slots: int, banks: int, lanes: int, *, strawman: bool) -> None:
    """Refuse a switch that cannot be planned for, or frames that are too wide for it."""
    if banks not in BANKS_OF_SWITCHES:
        known = ", ".join(map(str, BANKS_OF_SWITCHES))
        raise PlannerError(f"a switch with {banks} banks cannot be planned for; known: {known}")
    wide = banks_of_slot(lanes)
    if lanes not in LANES or wide > banks:
        known = ", ".join(str(each) for each in LANES if banks_of_slot(each) <= banks)
        raise PlannerError(
            f"frames of {lanes} numbers cannot be planned for a switch with {banks} banks; "
            f"possible: {known}"
        )
    if wide > slots:
        raise PlannerError(
            f"{slots} slots of {BANK_LANES} numbers have no room for one sum of {lanes}: give at "
            f"least {wide}"
        )
    if strawman and wide > 1:
        raise PlannerError(
            f"the strawman's switch adds frames of at most {BANK_LANES} numbers, not {lanes}"
        )
