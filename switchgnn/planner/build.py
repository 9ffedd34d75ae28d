"""From a graph to a plan."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from switchgnn.base.array_types import Bools, Int32s, Integers
from switchgnn.planner import arguments
from switchgnn.planner.base.direction import Direction, find_directions
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.base.lanes import BANK_LANES
from switchgnn.planner.blocks.refine import number_side_by_side
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.vertex_cut import ReplicaGraph
from switchgnn.planner.partition.workers import check_assignment, check_workers
from switchgnn.planner.plan import manifest
from switchgnn.planner.plan.banks import BANKS, place_destinations, slots_per_bank
from switchgnn.planner.plan.files import render_parts
from switchgnn.planner.plan.parts import (
    DirectionPlan,
    awaited_sums,
    join_blocks,
    switch_part,
    worker_part,
)
from switchgnn.planner.plan.plan import Plan, SwitchPart, WorkerPart
from switchgnn.planner.presets import GIVEN, PlanContext, ResolvedStrategies
from switchgnn.planner.sending.bundles import make_bundles
from switchgnn.planner.sending.packets import are_partial, make_packets, make_sends, multicast
from switchgnn.planner.sending.rates import quickest_first
from switchgnn.planner.sending.replicas import replica_packets
from switchgnn.planner.strategies import (
    BLOCK_STRATEGIES,
    ORDER_STRATEGIES,
    PARTITION_STRATEGIES,
    SEND_STRATEGIES,
    OrderStrategy,
    SendStrategy,
    check_order,
    check_sends,
    find_blocks,
    find_strategy,
)

Progress = Callable[[str], None]
_METIS = "metis"


def build_plan(
    graph: Graph,
    *,
    workers: int,
    slots: int,
    program: str,
    seed: int = 0,
    partition: str | None = None,
    blocks: str = "mlgp",
    send: str = arguments.MULTICAST,
    weight: float = 0.0,
    order: str = "gamr",
    directions: str = "forward",
    assignment: Integers | None = None,
    banks: int = BANKS,
    lanes: int = BANK_LANES,
    rows: int = 1,
    pools: int = 1,
    left: arguments.Left | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Plan the exchange of one graph; the same arguments give the same plan.

    Args:
        graph: the training graph, with V vertices.
        workers: their number, from 1 to 128.
        slots: the aggregators of the switch, of BANK_LANES numbers each.
        program: a hex digest of the P4 program that the plan is for; only recorded.
        seed: of the partition, the blocks and the order; not negative.
        partition: a name of PARTITION_STRATEGIES; None: `metis`. With an assignment, the recorded
            name; None: GIVEN.
        blocks: a key of BLOCK_STRATEGIES, or KIND:LEAVES:SPINES, or `strawman`: one block for each
            set of edges, for the P4 program of the strawman, which takes `multicast` alone.
        send: a key of SEND_STRATEGIES.
        weight: the cost of a contribution to the switch, in packets; for the send strategy.
        order: a key of ORDER_STRATEGIES.
        directions: a key of DIRECTIONS: `forward` sums over in-neighbours; `both` also sums
            over out-neighbours, for training.
        assignment: integers[V], the worker of each vertex; None lets `partition` choose.
        banks: one of BANKS_OF_SWITCHES, the slots that one pass of the switch can add to.
        lanes: the numbers of the widest row of a frame, a multiple of 8.
        rows: the rows of a frame, one of ROWS; with `lanes` at most 256 numbers.
        pools: the pools of slots, from 1 to MOST_POOLS; a block fits into one.
        left: bool[V], the destinations that are left to the hosts, for both directions or by
            direction; those without remote neighbours do not count. None: the switch serves all.
        progress: called with a few words at the start of each step.

    Returns:
        The plan, sealed: `write_plan` writes it as it is.

    Raises:
        PlannerError: arguments out of range, or a plan beyond the limits of the protocol.
    """
    chosen = partition or (_METIS if assignment is None else GIVEN)
    return build_resolved(
        graph,
        ResolvedStrategies(chosen, blocks, send, weight, order),
        PlanContext(workers, slots, banks=banks, lanes=lanes, rows=rows, pools=pools),
        program=program,
        seed=seed,
        directions=directions,
        assignment=assignment,
        left=left,
        progress=progress,
    )


def build_resolved(
    graph: Graph,
    strategies: ResolvedStrategies,
    context: PlanContext,
    *,
    program: str,
    seed: int,
    directions: str = "forward",
    assignment: Integers | None = None,
    fits: Callable[[Plan], bool] | None = None,
    left: arguments.Left | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Plan with these strategies; the other arguments are those of `build_plan`.

    Given rates, the quickest plan that `fits` is taken; if none does, the one of the largest
    weight, which needs the fewest entries. None: every plan fits.
    """
    strawman = strategies.blocks == manifest.STRAWMAN
    arguments.check_arguments(strategies, graph, program=program, seed=seed)
    arguments.check_switch(context, strawman=strawman)
    known = {**BLOCK_STRATEGIES, manifest.STRAWMAN: arguments.one_block}
    make_blocks = find_blocks(strategies.blocks, context.workers, known)
    choose = find_strategy(
        "send", strategies.send, {**SEND_STRATEGIES, manifest.REPLICAS: multicast}
    )
    make_order = find_strategy("order", strategies.order, ORDER_STRATEGIES)
    if assignment is None or strategies.partition != GIVEN:
        partition = find_strategy("partition", strategies.partition, PARTITION_STRATEGIES)
    wanted = find_directions(directions)
    cut = graph if isinstance(graph, ReplicaGraph) else None
    tell = progress or (lambda _step: None)

    tell("partition the vertices over the workers")
    check_workers(graph, context.workers)
    if cut is not None:
        assignment = cut.worker
    if assignment is None:
        assignment = partition(graph, context.workers, seed)
    owner = check_assignment(graph, context.workers, assignment)
    boundary = boundary_edges(graph, owner)
    left_out = arguments.left_to_hosts(left, boundary, graph.vertices, wanted)
    if left_out is not None and (strawman or cut is not None):
        who = "strawman" if cut is None else "vertex cut"
        raise PlannerError(f"The {who}'s switch serves all destinations: leave hosts none.")

    tell("form blocks")
    formed = []
    for each in arguments.edge_sets(boundary, wanted, left_out, cut):
        block = make_blocks(each.boundary, context.room, seed)
        block = number_side_by_side(each.boundary, block, context.workers, context.pools)
        formed.append(replace(each, block=block))
    stages = _Stages(
        strategies,
        context,
        program,
        seed,
        graph,
        owner,
        left_out,
        formed,
        arguments.checked_room(strategies.blocks, context, formed),
        choose,
        make_order,
        tell,
    )

    tell("choose what to send")
    if strategies.rates is None:
        return stages.finish(strategies.weight)
    sets = [(each.boundary, each.block) for each in formed]
    weights = quickest_first(
        sets, choose, strategies.rates, vertices=graph.vertices, workers=context.workers
    )
    for quickest in weights:
        plan = stages.finish(quickest)
        if fits is None or fits(plan):
            return plan
    return stages.finish(max(weights))


@dataclass(frozen=True, eq=False)
class _Stages:
    strategies: ResolvedStrategies
    context: PlanContext
    program: str
    seed: int
    graph: Graph
    owner: Int32s  # [V], the worker of each vertex
    # [V] by direction, the destinations that are left to the hosts
    left: dict[Direction, Bools] | None
    formed: Sequence[DirectionPlan]
    room: int  # the sums that have a slot at once in the plan's one switch
    choose: SendStrategy
    make_order: OrderStrategy
    tell: Progress

    def finish(self, weight: float) -> Plan:
        served = [self._serve(each, weight) for each in self.formed]
        self.tell("order the packets")
        ordered = [self._order(each) for each in served]

        self.tell("give every destination a slot")
        strategies, context, graph = self.strategies, self.context, self.graph
        whole = join_blocks(ordered)
        packets, order = whole.packets, whole.order
        sends = make_sends(packets, order.block, order.source, self.owner)
        bundles, edges = None, packets.edges
        count = packets.count if len(packets.sums.block) else None
        if context.rows > 1:
            bundles = make_bundles(
                packets, order, sends.worker, workers=context.workers, rows=context.rows
            )
            edges, count = bundles.edges, None
        placement = place_destinations(
            *(edges, packets.block, self.room, count), banks=context.banks, lanes=context.slot_lanes
        )

        self.tell("write the parts of the switch and the workers")
        switch = switch_part(whole.boundary, packets, placement, bundles)
        sums = awaited_sums(whole.boundary, whole.block, packets, placement)
        sums = replace(sums, shared=strategies.send == manifest.REPLICAS)
        parts = tuple(
            worker_part(
                self.owner == worker,
                sends,
                sums,
                worker=worker,
                workers=context.workers,
                blocks=whole.blocks,
                rows=context.rows,
                left=self.left,
            )
            for worker in range(context.workers)
        )
        files = render_parts(switch, parts, self.owner)
        unsealed = manifest.Manifest(
            format=manifest.PLAN_FORMAT,
            version=manifest.PLAN_VERSION,
            workers=context.workers,
            slots=context.slots,
            banks=BANKS,
            pools=context.pools,
            slots_per_bank=slots_per_bank(context.slots, context.pools),
            lanes=context.lanes,
            rows=context.rows,
            blocks=whole.blocks,
            directions=direction_records(ordered, switch, parts, context.rows),
            max_fan_in=max(each.boundary.max_fan_in() for each in self.formed),
            graph=manifest.GraphRecord(
                graph.name, graph.vertices, len(graph.indices), graph.digest()
            ),
            partition=manifest.PartitionRecord(
                method=strategies.partition,
                seed=self.seed,
                digest=hashlib.sha256(self.owner.astype("<i4").data).hexdigest(),
            ),
            strategy=manifest.StrategyRecord(
                strategies.blocks, strategies.send, float(weight), strategies.order, self.seed
            ),
            program=self.program,
            files={name: hashlib.sha256(data).hexdigest() for name, data in files},
            digest="",
        )
        return Plan(manifest.seal(unsealed), switch, parts, self.owner)

    def _serve(self, each: DirectionPlan, weight: float) -> DirectionPlan:
        many = {"vertices": self.graph.vertices, "workers": self.context.workers}
        if self.strategies.send == manifest.REPLICAS:
            return replace(each, packets=replica_packets(each.boundary, each.block, **many))
        by_vertex = self.choose(each.boundary, each.block, weight)
        check_sends(self.strategies.send, each.boundary, by_vertex)
        packets = make_packets(each.boundary, each.block, by_vertex, **many)
        return replace(each, packets=packets)

    def _order(self, each: DirectionPlan) -> DirectionPlan:
        edges, block = each.packets.edges, each.packets.block
        order = self.make_order(edges, block, self.seed)
        check_order(self.strategies.order, edges, block, order)
        return replace(each, order=order)


def direction_records(
    plans: Sequence[DirectionPlan], switch: SwitchPart, parts: Sequence[WorkerPart], rows: int = 1
) -> dict[str, manifest.DirectionRecord]:
    """Return the blocks and the cost of each direction, by its value.

    `plans` are in the order in which their blocks were joined into `switch` and `parts`.
    """
    records: dict[str, manifest.DirectionRecord] = {}
    last = 0
    for each in plans:
        first, last = last + 1, last + each.blocks
        copies_from, copies_to = each.whole.host_copies()
        inside = (switch.entry_block >= first) & (switch.entry_block <= last)
        passes = int(np.count_nonzero(inside))
        partial = int(np.count_nonzero(are_partial(switch.entry_source[inside])))
        sent = [part.send_indptr for part in parts]
        receives = [np.diff(part.receive_indptr[first - 1 : last + 1]) for part in parts]
        prediction = manifest.Prediction(
            boundary_vertices=len(each.whole.vertices()),
            boundary_edges=len(each.whole),
            packets_up=tuple(int(bounds[last] - bounds[first - 1]) for bounds in sent),
            packets_down=tuple(int((-(-sums // rows)).sum()) for sums in receives),
            host_packets_up=tuple(np.bincount(copies_from, minlength=len(parts)).tolist()),
            host_packets_down=tuple(np.bincount(copies_to, minlength=len(parts)).tolist()),
            passes=passes,
            contributions=int(np.count_nonzero(switch.entry_expected[inside])),
            entries=passes - partial,
        )
        record = manifest.DirectionRecord(first, last, prediction)
        records.update({direction.value: record for direction in each.directions})
    return records
