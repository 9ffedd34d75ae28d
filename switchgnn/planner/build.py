# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""From a graph to a plan."""

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

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
from switchgnn.planner.plan.edge_sets import DirectionPlan, edge_sets, join_blocks
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
    BlockStrategy,
    OrderStrategy,
    PartitionStrategy,
    SendStrategy,
    check_blocks,
    check_order,
    check_sends,
    find_blocks,
    find_strategy,
)

Progress = Callable[[str], None]
# bool[V] for both directions, or one for each.
Left = NDArray[np.bool_] | Mapping[Direction, NDArray[np.bool_]]
_MULTICAST, _METIS = "multicast", "metis"
# The partition of an assignment that was not made by any of PARTITION_STRATEGIES.
GIVEN = "given"


def build_plan(
    graph: Graph,
    *,
    workers: int,
    slots: int,
    program: str,
    seed: int = 0,
    partition: str | None = None,
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
        graph: the training graph, with V vertices.
        workers: their number, from 1 to 128.
        slots: the aggregators of the switch, of BANK_LANES numbers each. One fragment is summed
            at a time, so their number does not depend on the width of the features.
        program: a hex digest of the P4 program that the plan is for; only recorded.
        seed: of the partition, the blocks and the order; not negative.
        partition: a key of PARTITION_STRATEGIES, or `ptscotch:RANKS`, `metis-leaf-spine:LEAVES` or
            `cdfgnn:LEAVES`; None: `metis`. With an assignment, the recorded name; None: GIVEN.
        blocks: a key of BLOCK_STRATEGIES; or `strawman`, one block for each set of edges,
            whose destinations compete for the slots, for the P4 program of the strawman; or
            KIND:LEAVES:SPINES, blocks for leaves and spines with `slots` each. The switch's part
            of such a plan is that of one switch with enough slots.
        send: a key of SEND_STRATEGIES; `multicast` for the strawman.
        weight: the cost of a contribution to the switch, in packets; for the send strategy.
        order: a key of ORDER_STRATEGIES.
        directions: a key of DIRECTIONS: `forward` sums over in-neighbours; `both` also sums
            over out-neighbours, for training. Both have the same assignment and the same slots;
            where they have the same edges they share their blocks.
        assignment: integers[V], the worker of each vertex; None lets `partition` choose.
        banks: one of BANKS_OF_SWITCHES, the slots that one pass of the switch can add to.
        lanes: one of LANES, the numbers of the widest frame. A destination takes as many
            aggregators as they need.
        rates: of links and the switch's loop; the weight with the quickest exchange replaces
            `weight`. None: use `weight`.
        fits: with rates, whether the switch has room for a plan. The quickest plan that fits is
            taken; if none does, the one of the largest weight, which needs the fewest entries.
            None: every plan fits.
        left: bool[V], the destinations that are left to the hosts, for both directions or by
            direction; those without remote neighbours do not count. None: the switch serves all.
        progress: called with a few words at the start of each step.

    Returns:
        The plan, sealed: `write_plan` writes it as it is.

    Raises:
        PlannerError: arguments out of range, or a plan beyond the limits of the protocol.
    """
    options = _Options(
        workers=workers,
        slots=slots,
        program=program,
        seed=seed,
        partition=partition or (_METIS if assignment is None else GIVEN),
        blocks=blocks,
        send=send,
        order=order,
        banks=banks,
        lanes=lanes,
    )
    options.check(graph, weight)
    wanted = find_directions(directions)
    tell = progress or (lambda _step: None)

    tell("partition the vertices over the workers")
    check_workers(graph, workers)
    if assignment is None:
        assignment = options.make_assignment(graph, workers, seed)
    owner = check_assignment(graph, workers, assignment)
    boundary = boundary_edges(graph, owner)
    left_to_hosts = _left_to_hosts(left, boundary, graph.vertices, wanted)
    if left_to_hosts is not None and options.strawman:
        raise PlannerError("the strawman's switch serves all destinations: leave none to the hosts")

    tell("form blocks")
    formed = [
        replace(each, block=options.make_blocks(each.boundary, options.room, seed))
        for each in edge_sets(boundary, wanted, left_to_hosts)
    ]
    stages = _Stages(
        options, graph, owner, left_to_hosts, formed, _checked_room(options, formed), tell
    )

    tell("choose what to send")
    if rates is None:
        return stages.finish(weight)
    weights = quickest_first(
        [(each.boundary, each.block) for each in formed],
        options.choose,
        rates,
        vertices=graph.vertices,
        workers=workers,
    )
    for quickest in weights:
        plan = stages.finish(quickest)
        if fits is None or fits(plan):
            return plan
    return stages.finish(max(weights))


@dataclass(frozen=True)
class _Options:
    """The arguments of `build_plan` that hold for all stages."""

    workers: int
    slots: int
    program: str
    seed: int
    partition: str
    blocks: str
    send: str
    order: str
    banks: int
    lanes: int

    @property
    def strawman(self) -> bool:
        return self.blocks == STRAWMAN

    @property
    def room(self) -> int:
        """The sums that have a slot at once."""
        return self.slots // banks_of_slot(self.lanes)

    @property
    def make_assignment(self) -> PartitionStrategy:
        return find_strategy("partition", self.partition, PARTITION_STRATEGIES)

    @property
    def make_blocks(self) -> BlockStrategy:
        known = {**BLOCK_STRATEGIES, STRAWMAN: one_block}
        return find_blocks(self.blocks, self.workers, known)

    @property
    def choose(self) -> SendStrategy:
        return find_strategy("send", self.send, SEND_STRATEGIES)

    @property
    def make_order(self) -> OrderStrategy:
        return find_strategy("order", self.order, ORDER_STRATEGIES)

    def check(self, graph: Graph, weight: float) -> None:
        if graph.vertices > FIRST_RESERVED_ID:
            raise PlannerError(
                f"graph {graph.name} has {graph.vertices} vertices; ids from 2^31 on are reserved"
            )
        if not 1 <= self.slots < 2**32:
            raise PlannerError(
                f"{self.slots} slots are not possible: give at least 1 and at most {2**32 - 1:,}"
            )
        if not re.fullmatch(r"[0-9a-f]+", self.program):
            raise PlannerError(
                f"the digest of the P4 program must be lower-case hex, not {self.program!r}"
            )
        if self.seed < 0:
            raise PlannerError(f"the seed must not be negative, but it is {self.seed}")
        self._check_switch()
        if not 0 <= weight < math.inf:
            raise PlannerError(
                f"the weight of a contribution must be a number from 0, not {weight}"
            )
        if self.strawman and self.send != _MULTICAST:
            raise PlannerError(
                f"the strawman's switch forwards features unchanged: its workers send "
                f"{_MULTICAST}, not {self.send}"
            )
        # Each lookup raises for a name that is not known.
        _ = self.make_blocks, self.choose, self.make_order
        if self.partition != GIVEN:
            _ = self.make_assignment

    def _check_switch(self) -> None:
        if self.banks not in BANKS_OF_SWITCHES:
            known = ", ".join(map(str, BANKS_OF_SWITCHES))
            raise PlannerError(
                f"a switch with {self.banks} banks cannot be planned for; known: {known}"
            )
        wide = banks_of_slot(self.lanes)
        if self.lanes not in LANES or wide > self.banks:
            known = ", ".join(str(each) for each in LANES if banks_of_slot(each) <= self.banks)
            raise PlannerError(
                f"frames of {self.lanes} numbers cannot be planned for a switch with {self.banks} "
                f"banks; possible: {known}"
            )
        if wide > self.slots:
            raise PlannerError(
                f"{self.slots} slots of {BANK_LANES} numbers have no room for one sum of "
                f"{self.lanes}: give at least {wide}"
            )
        if self.strawman and wide > 1:
            raise PlannerError(
                f"the strawman's switch adds frames of at most {BANK_LANES} numbers, not "
                f"{self.lanes}"
            )


@dataclass(frozen=True, eq=False)
class _Stages:
    """The stages from the blocks of each direction to the plan."""

    options: _Options
    graph: Graph
    owner: NDArray[np.int32]  # [V], the worker of each vertex
    # [V] by direction, the destinations that are left to the hosts
    left: dict[Direction, NDArray[np.bool_]] | None
    formed: Sequence[DirectionPlan]
    room: int  # the sums that have a slot at once in the plan's one switch
    tell: Progress

    def finish(self, weight: float) -> Plan:
        """Make the plan for a contribution of that weight."""
        options = self.options
        served = [self._serve(each, weight) for each in self.formed]
        self.tell("order the packets")
        ordered = [self._order(each) for each in served]

        self.tell("give every destination a slot")
        whole = join_blocks(ordered)
        packets = whole.packets
        placement = place_destinations(
            packets.edges,
            packets.block,
            self.room,
            packets.count if len(packets.sums.block) else None,
            banks=options.banks,
            lanes=options.lanes,
        )

        self.tell("write the parts of the switch and the workers")
        switch = switch_part(whole.boundary, packets, placement)
        sends = make_sends(packets, whole.order.block, whole.order.source, self.owner)
        sums = awaited_sums(whole.boundary, whole.block, packets, placement)
        parts = tuple(
            worker_part(
                self.owner == worker,
                sends,
                sums,
                worker=worker,
                blocks=whole.blocks,
                left=self.left,
            )
            for worker in range(options.workers)
        )
        records = direction_records(ordered, switch, parts)
        manifest = self._manifest(whole.blocks, records, switch, parts, weight)
        return Plan(seal(manifest), switch, parts, self.owner)

    def _serve(self, each: DirectionPlan, weight: float) -> DirectionPlan:
        by_vertex = self.options.choose(each.boundary, each.block, weight)
        check_sends(self.options.send, each.boundary, by_vertex)
        packets = make_packets(
            each.boundary,
            each.block,
            by_vertex,
            vertices=self.graph.vertices,
            workers=self.options.workers,
        )
        return replace(each, packets=packets)

    def _order(self, each: DirectionPlan) -> DirectionPlan:
        edges, block = each.packets.edges, each.packets.block
        order = self.options.make_order(edges, block, self.options.seed)
        check_order(self.options.order, edges, block, order)
        return replace(each, order=order)

    def _manifest(
        self,
        blocks: int,
        records: dict[str, DirectionRecord],
        switch: SwitchPart,
        parts: tuple[WorkerPart, ...],
        weight: float,
    ) -> Manifest:
        options, graph = self.options, self.graph
        files = render_parts(switch, parts, self.owner)
        return Manifest(
            format=PLAN_FORMAT,
            version=PLAN_VERSION,
            workers=options.workers,
            slots=options.slots,
            banks=BANKS,
            slots_per_bank=slots_per_bank(options.slots),
            lanes=options.lanes,
            blocks=blocks,
            directions=records,
            max_fan_in=max(each.boundary.max_fan_in() for each in self.formed),
            graph=GraphRecord(graph.name, graph.vertices, len(graph.indices), graph.digest()),
            partition=PartitionRecord(
                method=options.partition,
                seed=options.seed,
                digest=hashlib.sha256(self.owner.astype("<i4").data).hexdigest(),
            ),
            strategy=StrategyRecord(
                options.blocks, options.send, float(weight), options.order, options.seed
            ),
            program=options.program,
            files={name: hashlib.sha256(data).hexdigest() for name, data in files},
            digest="",
        )


def direction_records(
    plans: Sequence[DirectionPlan], switch: SwitchPart, parts: Sequence[WorkerPart]
) -> dict[str, DirectionRecord]:
    """Return the blocks and the cost of each direction, by its value.

    `plans` are in the order in which their blocks were joined into `switch` and `parts`.
    """
    records: dict[str, DirectionRecord] = {}
    first = 1
    for each in plans:
        last = first + each.blocks - 1
        record = DirectionRecord(first, last, _predict(each.whole, first, last, switch, parts))
        records.update({direction.value: record for direction in each.directions})
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
    return int(indptr[last] - indptr[first - 1])


def _per_worker(rows: NDArray[np.int32], workers: int) -> tuple[int, ...]:
    return tuple(np.bincount(rows, minlength=workers).tolist())


def one_block(boundary: BoundaryEdges, slots: int, seed: int) -> NDArray[np.int32]:
    """Put all boundary edges into one block, even where it exceeds the slots."""
    if slots < BANKS:
        raise PlannerError(
            f"{slots} slots are too few for the strawman, whose {BANKS} banks hand out their own: "
            f"it needs at least {BANKS}"
        )
    return np.ones(len(boundary), dtype=np.int32)


def _checked_room(options: _Options, formed: Sequence[DirectionPlan]) -> int:
    """Return the slots of the plan's one switch: those of `options`, or the largest block's need.

    Raises:
        PlannerError: blocks that do not fit the slots.
    """
    slots = options.room
    if options.strawman:
        slots = max([1, *(len(np.unique(each.boundary.destination)) for each in formed)])
    over = find_blocks_over(options.blocks)
    largest = slots
    for each in formed:
        most = slots if over is None else max(len(each.boundary), 1)
        check_blocks(options.blocks, each.boundary, each.block, most)
        if over is not None:
            over.check(each.boundary, each.block, slots, options.workers)
        block = distinct_pairs(each.block, each.boundary.destination)[0]
        largest = max(largest, int(np.bincount(block).max(initial=0)))
    return largest


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
