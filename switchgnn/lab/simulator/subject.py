"""Reads or makes what is simulated: a plan, or the rows of hosts alone on a partition."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from switchgnn.base.array_types import Bools, Integers
from switchgnn.base.files import reason_to_distrust
from switchgnn.base.names import no_such
from switchgnn.host.direct.kinds import copies
from switchgnn.host.direct.sampling import Sampling
from switchgnn.host.direct.schedule import EdgeChoice, PairRows, count_rows
from switchgnn.lab.simulator.request import (
    BNS_GCN,
    CDFGNN,
    CHOICES,
    G3,
    HOST_PARTIAL,
    HOSTS_ALONE,
    PLANNED,
    SYSTEMS,
    SimulateOptions,
    SimulatorError,
)
from switchgnn.lab.simulator.setup import (
    BIN_SIZE,
    Setup,
    boundary_of_plan,
    host_setup,
    mixed_setup,
    plan_setup,
)
from switchgnn.p4src import load_strawman, program_of
from switchgnn.planner import (
    PARTITION_STRATEGIES,
    BoundaryEdges,
    Direction,
    Graph,
    Plan,
    PlanContext,
    PlannerError,
    ResolvedStrategies,
    boundary_edges,
    load_graph,
    read_plan,
)
from switchgnn.planner.base.lanes import BANK_LANES, LANES, fragment_lanes
from switchgnn.planner.blocks.mlgp import MIN_SLOTS
from switchgnn.planner.build import build_resolved
from switchgnn.planner.check.foreign import trusted_plan
from switchgnn.planner.costs import forecast
from switchgnn.planner.costs.quickest import PlanSearch, QuickestPlan
from switchgnn.planner.graphs.load import is_bundled
from switchgnn.planner.partition.vertex_cut import ReplicaGraph, is_vertex_cut
from switchgnn.planner.partition.workers import check_assignment, check_workers
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine
from switchgnn.planner.plan.manifest import STRAWMAN, GraphRecord
from switchgnn.planner.presets import AUTO, GIVEN, PRESETS, PlanRequest
from switchgnn.planner.sending.between_hosts import fewest_rows
from switchgnn.planner.sending.phases import shortest_phases
from switchgnn.profiles import PlanMemory, plan_memory
from switchgnn.profiles.profile import most_attached

Progress = Callable[[str], None]
# All plans but those of `auto` share this partition, so that others differ by nothing else.
_PARTITION = "metis"
# What hosts send for a boundary edge, by system and by the names of costs/forecast.py.
_SENT: Mapping[str, EdgeChoice] = {
    **dict.fromkeys((BNS_GCN, G3, CDFGNN), copies),
    HOST_PARTIAL: fewest_rows,
}
_SENT_BY: Mapping[str, EdgeChoice] = {forecast.HOST_PARTIAL: fewest_rows, forecast.HOST: copies}
_NAME_THE_GRAPH = (
    "The plan leaves destinations to the hosts or cuts vertices, and the rest follows from its "
    "graph: name it with --graph."
)


@dataclass(frozen=True)
class SimulatedSystem:
    """A system to simulate."""

    system: str
    graph: str  # name of the graph
    digest: str | None  # of the plan, or None without one
    setup: Setup  # of the forward exchange
    slots: int  # of the switch; 0 where it adds nothing
    vertices: int  # of the worker that has most
    # mean number of rows that a worker adds up by itself: with a plan, one for each edge inside it
    # and each member of its partial sums; where hosts are alone, one for each edge, and for each
    # partial sum of several rows that arrives
    additions: float
    # of the worker that has most; 0 where all vertices are computed before any is sent
    bins: int = 0
    memory: PlanMemory | None = None  # what the plan takes of the switches, where they have limits
    lanes: int = BANK_LANES  # numbers in a full frame of the plan
    # of the exchanges of an epoch, by the names of planner/costs/forecast.py; for `auto` only, as
    # is `chosen`
    predicted_seconds: Mapping[str, float] | None = None
    chosen: str | None = None  # which of them has the least
    left: int = 0  # destinations that the plan leaves to the hosts
    rows_between_hosts: int = 0  # that hosts send each other for these; 0 without a plan
    backward: Setup | None = None  # of the backward exchange; None: equal to the forward one
    # every exchange consists of `setup` and then `backward`: hosts gather sums, and scatter totals
    in_rounds: bool = False


def make_subject(options: SimulateOptions, tell: Progress) -> SimulatedSystem:
    """Read or make the system to simulate."""
    makes_plan, asked = options.plan is None and options.system not in HOSTS_ALONE, options.request
    if not makes_plan and (asked.lanes, asked.pools, asked.rows or 1) != (None, None, 1):
        raise SimulatorError(
            "Only a plan that is made here has lanes, rows and pools to choose: leave --lanes, "
            "--rows and --pools out, or give --graph and a system that plans."
        )
    if options.bin_size is not None and options.system != G3:
        raise SimulatorError(f"Only {G3} has bins: leave their size out, or give --system {G3}.")
    if options.phases and options.system not in (*HOSTS_ALONE, AUTO):
        raise SimulatorError(
            f"Only hosts alone send in phases: leave --phases out, or give --system {BNS_GCN}."
        )
    if options.sampling < 1 and options.system in (HOST_PARTIAL, G3, CDFGNN, STRAWMAN, AUTO):
        raise SimulatorError(
            f"{options.system} sends all rows: leave --sampling out, or give --system {BNS_GCN}, "
            "or one with a plan."
        )
    if options.workers is not None:
        _check_links(options, options.workers)
    if options.plan is not None:
        return _read(options, options.plan, tell)
    if options.system is None or options.graph is None or options.workers is None:
        raise SimulatorError("Give a plan, or a graph, the number of workers and a system.")
    _check_request(options.system, options)
    tell(f"load {options.graph}")
    graph = load_graph(options.graph)
    if options.system in HOSTS_ALONE:
        return _hosts_alone(options.system, graph, options, options.workers, tell)
    made = make_plan(options.system, graph, options, options.workers, tell)
    if made.auto is not None:
        return _chosen(made.auto, options, made.graph)
    return planned_subject(options.system, made.plan, options, made.graph)


def _check_request(system: str, options: SimulateOptions) -> None:
    if system not in SYSTEMS:
        raise SimulatorError(no_such("system", system, SYSTEMS))
    asked, cuts = options.request, system == CDFGNN
    other = asked.partition is not None and is_vertex_cut(asked.partition) != cuts
    if (other and system not in PRESETS) or (cuts and asked.assignment):
        raise SimulatorError(
            f"{system} cuts {'vertices' if cuts else 'edges'}: choose another partition; "
            f"{CDFGNN}, best and {AUTO} take those that cut vertices."
        )
    for part in asked.checked().named():
        if part not in CHOICES[system]:
            raise SimulatorError(
                f"{system} has no {part} to choose: leave --{part} out; only "
                f"{' and '.join(f'--{name}' for name in CHOICES[system])} can be given with it."
            )


def _check_links(options: SimulateOptions, workers: int) -> None:
    attached = most_attached(options.attached(workers), workers)
    options.switch.check_attached(attached, options.network.bandwidth)


def _read(options: SimulateOptions, folder: Path, tell: Progress) -> SimulatedSystem:
    if options.request.named() or options.request.assignment:
        raise SimulatorError("A plan has its own strategies: for others give --graph in its place.")
    tell(f"read {folder}")
    # The models and compiled code do not check the indices in the arrays.
    trusted = trusted_plan(folder, tell, check=options.check)
    plan = trusted if isinstance(trusted, Plan) else read_plan(trusted)
    graph = _graph_of(plan, options.graph, folder)
    _check_links(options, plan.manifest.workers)
    if options.system is None:
        return planned_subject(
            STRAWMAN if plan.manifest.strawman else PLANNED, plan, options, graph
        )
    if options.system in HOSTS_ALONE:
        if plan.manifest.replicated != (options.system == CDFGNN):
            raise SimulatorError(
                f"The plan's partition {plan.manifest.partition.method} is none of "
                f"{options.system}: for that give --graph in place of --plan."
            )
        return _alone_on(plan, graph, options.system, _SENT[options.system], options)
    if options.system != AUTO:
        raise SimulatorError(
            f"A plan is simulated as it is, or as one of {', '.join((*HOSTS_ALONE, AUTO))} on its "
            f"partition, but not as {options.system}: for that give --graph in place of --plan."
        )
    if options.leaf_spine is not None:
        return replace(planned_subject(AUTO, plan, options, graph), chosen=forecast.SWITCH)
    tell("predict the seconds of exchanges")
    return _chosen(_fastest(plan, options, graph), options, graph)


def _graph_of(plan: Plan, given: str | None, folder: Path) -> Graph | None:
    """Load the graph if the plan leaves destinations to hosts, whose edges it does not list.

    Of a vertex cut return the replicas: the plan does not list the edges of each worker, either.
    """
    if not plan.leaves_any and not plan.manifest.replicated:
        if given is not None:
            raise SimulatorError("This plan contains all that is simulated: leave --graph out.")
        return None
    name = plan.manifest.graph.name
    if given is None and not is_bundled(name) and reason_to_distrust(folder) is not None:
        raise SimulatorError(_NAME_THE_GRAPH)
    try:
        graph, made = load_graph(given or name), plan.manifest.partition
        return PlanRequest(partition=made.method).cut(graph, plan.manifest.workers, made.seed)
    except PlannerError as error:
        if given is not None:
            raise
        raise SimulatorError(_NAME_THE_GRAPH) from error


def _boundary(plan: Plan, graph: Graph | None) -> BoundaryEdges:
    return boundary_of_plan(plan) if graph is None else boundary_edges(graph, plan.assignment)


def _hosts_alone(
    system: str, graph: Graph, options: SimulateOptions, workers: int, tell: Progress
) -> SimulatedSystem:
    tell("partition")
    check_workers(graph, workers)
    name = options.request.partition or HOSTS_ALONE[system]
    cut = replace(options.request, partition=name).cut(graph, workers, options.seed)
    if isinstance(cut, ReplicaGraph):
        return _replicas_alone(system, cut, options)
    partition = PARTITION_STRATEGIES[name]
    given = options.request.load_assignment()
    made = partition(graph, workers, options.seed) if given is None else given
    assignment = check_assignment(graph, workers, made)
    record = GraphRecord(graph.name, graph.vertices, len(graph.indices), digest="")
    boundary = boundary_edges(graph, assignment)
    return _alone(system, record, assignment, options, boundary=boundary, choose=_SENT[system])


def _alone_on(
    plan: Plan, graph: Graph | None, system: str, choose: EdgeChoice, options: SimulateOptions
) -> SimulatedSystem:
    if isinstance(graph, ReplicaGraph):
        return _replicas_alone(system, graph, options)
    boundary = _boundary(plan, graph)
    record, owner = plan.manifest.graph, plan.assignment
    return _alone(system, record, owner, options, boundary=boundary, choose=choose)


def _replicas_alone(system: str, graph: ReplicaGraph, options: SimulateOptions) -> SimulatedSystem:
    gather, _ = forecast.host_rounds(boundary_edges(graph, graph.worker))
    # Workers add up their own edges, and masters what comes.
    added = len(graph.edge_worker) + len(gather)
    record = GraphRecord(graph.name, graph.vertices, added, digest="")
    alone = _alone(system, record, graph.worker, options, boundary=gather, choose=copies)
    return replace(alone, in_rounds=True)


def _alone(
    system: str,
    graph: GraphRecord,
    assignment: Integers,
    options: SimulateOptions,
    *,
    boundary: BoundaryEdges,
    choose: EdgeChoice,
) -> SimulatedSystem:
    phases = shortest_phases if options.phases else None
    pace, framing = options.network.pace, options.framing
    vertices, workers = int(np.bincount(assignment).max()), int(assignment.max()) + 1

    def exchange(edges: BoundaryEdges) -> tuple[PairRows, Setup]:
        found = count_rows(edges, workers, choose)
        drawn = np.maximum(found.rows > 0, np.rint(options.sampling * found.rows)).astype(np.int64)
        return found, host_setup(drawn, options.features, pace, framing, phases=phases)

    found, setup = exchange(boundary)
    transposed = boundary.transposed()
    return SimulatedSystem(
        system,
        graph.name,
        digest=None,
        setup=setup,
        slots=0,
        vertices=vertices,
        # A partial sum's members are added by its sender, and the sum itself by its receiver.
        additions=(graph.edges + found.sums) / setup.workers,
        bins=ceil(vertices / (options.bin_size or BIN_SIZE)) if system == G3 else 0,
        backward=None if transposed.same_edges(boundary) else exchange(transposed)[1],
    )


def make_plan(
    system: str, graph: Graph, options: SimulateOptions, workers: int, tell: Progress
) -> QuickestPlan:
    """Make the plan of a system."""
    program, request = program_of(options.switch.program), options.request
    context = options.context(workers, program.slots)
    if context.room < MIN_SLOTS:
        raise SimulatorError(f"A plan needs {MIN_SLOTS} slots: give more --memory.")
    chosen = request.assignment or request.partition
    if not chosen and (system != AUTO or options.leaf_spine):
        request = replace(request, partition=_PARTITION)
    settings: dict[str, Any] = {"program": program.digest, "seed": options.seed}
    settings |= {"directions": "both", "progress": tell}
    if system == STRAWMAN:
        partition, order = request.partition or GIVEN, request.order or "random"
        how = ResolvedStrategies(partition, STRAWMAN, "multicast", 0.0, order)
        owner = request.load_assignment()
        plan = build_resolved(graph, how, context, **settings, assignment=owner)
        return QuickestPlan(plan, context, how, graph)
    request = replace(request, preset=system, lanes=context.lanes)

    def rated(at: PlanContext) -> PlanContext:
        asked = replace(request, rows=at.rows, pools=at.pools)
        rates = replace(options, request=asked).context(workers, program.slots)
        return replace(rates, slots=min(rates.slots, at.slots))

    fits = (lambda plan: not _memory(plan, options).refusals) if options.limited else None
    return PlanSearch(
        request, graph, _forecast(options), rated, LANES[-1], fits, settings
    ).quickest(context)


def _forecast(options: SimulateOptions) -> forecast.StarForecast:
    exchanges = {
        Direction.FORWARD: {options.features: float(options.layers)},
        Direction.BACKWARD: {options.features: options.layers - 1.0},
    }
    together = options.slot_features is not None
    return forecast.StarForecast(options.network_model, exchanges, together=together)


def _fastest(plan: Plan, options: SimulateOptions, graph: Graph | None) -> forecast.AutoPlan:
    # As if backward exchanges were forward ones: a folder may have no others.
    exchanges = {options.features: 2.0 * options.layers - 1}
    predicted = replace(_forecast(options), exchanges={Direction.FORWARD: exchanges})
    left = np.zeros((plan.manifest.workers,) * 2, dtype=np.int64)
    own = forecast.SWITCH
    if graph is not None and plan.leaves_any:
        left, own = _rows_left(plan, graph, Direction.FORWARD).rows, forecast.MIXED
    seconds = {own: predicted.of_plan(plan, {Direction.FORWARD: left})}
    boundary, cut = _boundary(plan, graph), plan.manifest.replicated
    for name in _SENT_BY:
        seconds[name] = forecast.seconds_of_hosts(
            predicted,
            boundary,
            plan.manifest.workers,
            partial=name == forecast.HOST_PARTIAL,
            replicated=cut,
        )
    return forecast.AutoPlan(plan, plan, seconds, min(seconds, key=seconds.__getitem__))


def _chosen(
    made: forecast.AutoPlan, options: SimulateOptions, graph: Graph | None
) -> SimulatedSystem:
    if made.chosen in _SENT_BY:
        subject = _alone_on(made.plan, graph, AUTO, _SENT_BY[made.chosen], options)
    else:
        subject = planned_subject(AUTO, made.plan, options, graph)
    return replace(subject, predicted_seconds=made.seconds, chosen=made.chosen)


def planned_subject(
    system: str, plan: Plan, options: SimulateOptions, graph: Graph | None = None
) -> SimulatedSystem:
    """Return the system of a plan, with its graph if it leaves hosts some or cuts vertices."""
    _check_links(options, plan.manifest.workers)
    memory, lanes = check_fits(plan, options), plan.manifest.lanes
    carried = fragment_lanes(options.features, lanes, plan.manifest.rows)
    setup = partial(
        plan_setup,
        fragments=len(carried),
        whole_features=options.slot_features is not None,
        leaf_spine=options.leaf_spine,
        banks=options.switch.banks,
        lanes=carried,
    )
    left_out = _left_out(plan, options)
    if left_out is not None and plan.manifest.replicated:
        raise SimulatorError("A vertex cut sends all sums: leave --sampling out.")
    # Backward all rows are sent.
    turned = _turned(plan) or (None if left_out is None else plan)
    subject = SimulatedSystem(
        system=system,
        graph=plan.manifest.graph.name,
        digest=plan.manifest.digest,
        setup=setup(plan, left_out=left_out),
        slots=plan.manifest.pools * plan.manifest.room,
        vertices=int(np.bincount(plan.assignment).max()),
        additions=(
            len(graph.edge_worker) / plan.manifest.workers
            if isinstance(graph, ReplicaGraph)
            else _additions(plan)
        ),
        memory=memory,
        lanes=lanes,
        backward=None if turned is None else setup(turned),
    )
    if graph is None or not plan.leaves_any:
        return subject
    if options.leaf_spine is not None:
        raise SimulatorError(
            "Destinations that are left to the hosts have a model in a star only: leave out "
            "--topology leaf-spine, or give a plan that leaves none."
        )
    found, back = (_rows_left(plan, graph, direction) for direction in Direction)
    features, pace, framing = options.features, options.network.pace, options.framing
    served = subject.backward or subject.setup
    # A plan for forward exchanges alone is taken for both.
    same = turned is None and (
        len(plan.manifest.directions) == 1 or np.array_equal(found.rows, back.rows)
    )
    return replace(
        subject,
        setup=mixed_setup(subject.setup, found.rows, features, pace, framing),
        backward=None if same else mixed_setup(served, back.rows, features, pace, framing),
        additions=subject.additions + found.sums / subject.setup.workers,
        left=int(np.count_nonzero(plan.left(Direction.FORWARD))),
        rows_between_hosts=int(found.rows.sum()),
    )


def _left_out(plan: Plan, options: SimulateOptions) -> Bools | None:
    """Return bool[V], the vertices that the first epoch leaves out; None: there are none."""
    if options.sampling == 1:
        return None
    sampling = Sampling(options.sampling, options.seed)
    left_out = np.zeros(len(plan.assignment), dtype=np.bool_)
    for part in plan.workers:
        left_out[part.vertices] = sampling.factors(0, part.worker, len(part.vertices)) == 0
    return left_out


def _turned(plan: Plan) -> Plan | None:
    """Return the plan of the backward exchange alone, as a forward one; None: they are equal."""
    forward, backward = (plan.manifest.directions.get(each.value) for each in Direction)
    if backward is None or backward == forward:
        return None
    return replace(
        plan, manifest=replace(plan.manifest, directions={Direction.FORWARD.value: backward})
    )


def _rows_left(plan: Plan, graph: Graph, direction: Direction) -> PairRows:
    edges = forecast.left_edges(plan, graph, direction)
    return count_rows(edges, plan.manifest.workers, fewest_rows)


def _additions(plan: Plan) -> float:
    manifest = plan.manifest
    forward = manifest.direction(Direction.FORWARD)
    ends = [forward.first_block - 1, forward.last_block]
    travel, partial = 0, 0
    for part in plan.workers:
        low, high = part.receive_indptr[ends]
        travel += int(part.neighbour_indptr[high] - part.neighbour_indptr[low])
        low, high = part.send_indptr[ends] * manifest.rows
        rows = np.diff(part.send_row_indptr[low : high + 1])
        partial += int(rows[rows > 1].sum())
    return (manifest.graph.edges - travel + partial) / manifest.workers


def check_fits(plan: Plan, options: SimulateOptions) -> PlanMemory | None:
    """Check that a plan fits the switch; None: the switch has no limits."""
    switch, manifest = options.switch, plan.manifest
    if not options.limited:
        return None
    _check_banks(plan, options)
    size = options.bytes_of_slot(manifest.lanes)
    if options.slots is None and switch.slot_bytes is not None:
        room, used = switch.slot_bytes // size, manifest.pools * manifest.room
        if used > room:
            raise SimulatorError(
                f"The plan may use {used:,} slots, and the switch {switch.name} has "
                f"{room:,} of {size} bytes: plan with --slots {room}, or take another switch "
                "(--switch)."
            )
    memory = _memory(plan, options)
    if memory.refusals:
        raise SimulatorError(" ".join(memory.refusals))
    return memory


def _memory(plan: Plan, options: SimulateOptions) -> PlanMemory:
    switch, manifest = options.switch, plan.manifest
    attached, parts = options.attached(manifest.workers), None
    if attached is not None and not manifest.strawman:
        parts = split_for_leaf_spine(plan, attached, banks=switch.banks)
    program = load_strawman() if manifest.strawman else program_of(switch.program)
    allowed = switch.table_bytes if options.table_memory is None else options.table_memory
    return plan_memory(plan, parts, program, allowed, switch)


def _check_banks(plan: Plan, options: SimulateOptions) -> None:
    banks, used = options.switch.banks, plan.switch.entry_expected > 0
    # Bank b of the tables is part of the switch's bank b mod banks.
    together = used.reshape(len(used), used.shape[1] // banks, banks).sum(axis=1)
    most = int(np.max(together, initial=0))
    if most > 1:
        raise SimulatorError(
            f"A pass of the plan adds to {most} slots of one bank, as the switch "
            f"{options.switch.name} has {banks}, and a pass can add to one slot of each: plan with "
            f"--switch {options.switch.name}."
        )
