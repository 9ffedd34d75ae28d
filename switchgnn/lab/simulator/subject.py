# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What is simulated: a plan that is read or made, or a partition between whose hosts rows go."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.files import reason_to_distrust
from switchgnn.base.names import no_such
from switchgnn.host.direct.kinds import copies
from switchgnn.host.direct.schedule import EdgeChoice, PairRows, count_rows
from switchgnn.host.wire.header import LANES
from switchgnn.lab.simulator.errors import SimulatorError
from switchgnn.lab.simulator.plan_setup import plan_setup
from switchgnn.lab.simulator.request import (
    BNS_GCN,
    CHOICES,
    G3,
    HOST_PARTIAL,
    HOSTS_ALONE,
    PLANNED,
    SYSTEMS,
    SimulateOptions,
)
from switchgnn.lab.simulator.setup import (
    BIN_SIZE,
    Setup,
    bins_of,
    host_setup,
    mixed_setup,
    rows_of_plan,
)
from switchgnn.lab.simulator.within import (
    check_fits,
    check_links,
    planned_for,
    predicted_on,
    room_for,
)
from switchgnn.p4src import load_program
from switchgnn.planner.blocks.mlgp import MIN_SLOTS
from switchgnn.planner.build import build_plan, build_resolved
from switchgnn.planner.check.foreign import trusted_plan
from switchgnn.planner.costs import forecast
from switchgnn.planner.costs.forecast import AutoPlan, build_auto, left_edges
from switchgnn.planner.direction import Direction
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.planner.graphs.bundled import is_bundled
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.lanes import fragment_lanes
from switchgnn.planner.partition.workers import check_assignment, check_workers
from switchgnn.planner.plan.files import read_plan
from switchgnn.planner.plan.manifest import STRAWMAN
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.presets import AUTO, PlanContext, PlanRequest, resolve_strategies
from switchgnn.planner.sending.between_hosts import fewest_rows
from switchgnn.planner.strategies import PARTITION_STRATEGIES
from switchgnn.profiles import PlanMemory

Progress = Callable[[str], None]
# The default partition.
_PARTITION = "metis"
# What hosts send for a boundary edge.
_SENT: Mapping[str, EdgeChoice] = {BNS_GCN: copies, HOST_PARTIAL: fewest_rows, G3: copies}
_NAME_THE_GRAPH = (
    "The plan leaves destinations to the hosts, and what these send follows from its graph: "
    "name it with --graph."
)
# The same by the transports of costs/forecast.py.
_SENT_BY: Mapping[str, EdgeChoice] = {forecast.HOST_PARTIAL: fewest_rows, forecast.HOST: copies}


@dataclass(frozen=True)
class SimulatedSystem:
    """What is simulated, and what it is called.

    Attributes:
        graph: name of the graph.
        digest: of the plan, or None without one.
        setup: of the exchange.
        slots: of the switch; 0 where it adds nothing.
        vertices: of the worker that has most.
        additions: rows that a worker adds up by itself on average. With a plan: one for each edge
            inside it and for each member of its partial sums. Where hosts are alone: one for each
            edge, and one for each partial sum of several rows that arrives.
        bins: of the worker that has most; 0 where all vertices are computed before any is sent.
        memory: what the plan takes of the switches, where they have limits.
        lanes: numbers in a full frame of the plan.
        predicted_seconds: of an exchange, by the names of planner/costs/forecast.py; for `auto`
            only, as is `chosen`.
        chosen: which of them has the least.
        left: destinations that the plan leaves to the hosts.
        rows_between_hosts: that hosts send each other for these; 0 without a plan.
    """

    system: str
    graph: str
    digest: str | None
    setup: Setup
    slots: int
    vertices: int
    additions: float
    bins: int = 0
    memory: PlanMemory | None = None
    lanes: int = LANES
    predicted_seconds: Mapping[str, float] | None = None
    chosen: str | None = None
    left: int = 0
    rows_between_hosts: int = 0


def make_subject(options: SimulateOptions, tell: Progress) -> SimulatedSystem:
    """Read or make what is to be simulated."""
    if options.lanes is not None and (options.plan is not None or options.system in HOSTS_ALONE):
        raise SimulatorError(
            "Only a plan that is made here has frames of another width: leave --lanes out, or give "
            "--graph and a system that plans."
        )
    if options.bin_size is not None and options.system != G3:
        raise SimulatorError(f"Only {G3} has bins: leave their size out, or give --system {G3}.")
    if options.workers is not None:
        check_links(options, options.workers)
    if options.plan is not None:
        return _read(options, options.plan, tell)
    if options.system is None or options.graph is None or options.workers is None:
        raise SimulatorError("Give a plan, or a graph, the number of workers and a system.")
    if options.system not in SYSTEMS:
        raise SimulatorError(no_such("system", options.system, SYSTEMS))
    _check_request(options.system, options.request)
    tell(f"load {options.graph}")
    graph = load_graph(options.graph)
    if options.system in HOSTS_ALONE:
        return _hosts_alone(options.system, options, graph, options.workers, tell)
    if options.system == AUTO and options.leaf_spine is None:
        return _made_auto(graph, options, options.workers, tell)
    plan = make_plan(options.system, graph, options, options.workers, tell)
    return _planned(options.system, plan, options, graph)


def _check_request(system: str, request: PlanRequest) -> None:
    request.checked()
    for part in request.named():
        if part not in CHOICES[system]:
            raise SimulatorError(
                f"{system} has no {part} to choose: leave --{part} out; only "
                f"{' and '.join(f'--{name}' for name in CHOICES[system])} can be given with it."
            )


def _read(options: SimulateOptions, folder: Path, tell: Progress) -> SimulatedSystem:
    if options.request.named() or options.request.assignment:
        raise SimulatorError("A plan has its own strategies: for others give --graph in its place.")
    tell(f"read {folder}")
    # The models and what is compiled believe the arrays: they do not look at each index.
    with trusted_plan(folder, tell, check=options.check) as trusted:
        plan = read_plan(trusted)
    graph = _graph_of(plan, options.graph, folder)
    check_links(options, plan.manifest.workers)
    if options.system in HOSTS_ALONE:
        found = _rows_on_partition(plan, graph, _SENT[options.system])
        record = plan.manifest.graph
        return _alone(options, found, record.name, plan.assignment, record.edges)
    if options.system == AUTO:
        return _fastest(plan, options, tell, graph)
    if options.system is not None:
        raise SimulatorError(
            f"A plan is simulated as it is, or as one of {', '.join((*HOSTS_ALONE, AUTO))} on its "
            f"partition, but not as {options.system}: for that give --graph in place of --plan."
        )
    return _planned(STRAWMAN if plan.manifest.strawman else PLANNED, plan, options, graph)


def _graph_of(plan: Plan, given: str | None, folder: Path) -> Graph | None:
    """Load the graph if the plan leaves destinations to hosts: it lists no edges into them."""
    if not plan.leaves_any:
        if given is not None:
            raise SimulatorError("This plan contains all that is simulated: leave --graph out.")
        return None
    name = plan.manifest.graph.name
    if given is None and not is_bundled(name) and reason_to_distrust(folder) is not None:
        raise SimulatorError(_NAME_THE_GRAPH)
    try:
        return load_graph(given or name)
    except PlannerError as error:
        if given is not None:
            raise
        raise SimulatorError(_NAME_THE_GRAPH) from error


def _rows_on_partition(plan: Plan, graph: Graph | None, choose: EdgeChoice) -> PairRows:
    """Count what hosts alone send each other on a plan's partition."""
    if graph is None:
        return rows_of_plan(plan, choose)
    boundary = boundary_edges(graph, plan.assignment)
    return count_rows(boundary, plan.manifest.workers, choose)


def _hosts_alone(
    system: str, options: SimulateOptions, graph: Graph, workers: int, tell: Progress
) -> SimulatedSystem:
    """Return a partition, and the rows that hosts send each other."""
    tell("partition")
    check_workers(graph, workers)
    partition = PARTITION_STRATEGIES[options.request.partition or HOSTS_ALONE[system]]
    given = options.request.load_assignment()
    made = partition(graph, workers, options.seed) if given is None else given
    assignment = check_assignment(graph, workers, made)
    found = count_rows(boundary_edges(graph, assignment), workers, _SENT[system])
    return _alone(options, found, graph.name, assignment, len(graph.indices))


def _alone(
    options: SimulateOptions,
    found: PairRows,
    graph: str,
    assignment: NDArray[np.integer],
    edges: int,
) -> SimulatedSystem:
    setup = host_setup(found.rows, options.features, options.network.pace, options.mtu)
    vertices = int(np.bincount(assignment).max())
    # A sum's members are added where they are, and the sum itself where it arrives.
    additions = (edges + found.sums) / setup.workers
    bins = bins_of(vertices, options.bin_size or BIN_SIZE) if options.system == G3 else 0
    return SimulatedSystem(
        options.system or PLANNED, graph, None, setup, 0, vertices, additions, bins
    )


def make_plan(
    system: str, graph: Graph, options: SimulateOptions, workers: int, tell: Progress
) -> Plan:
    """Make the plan of a system."""
    context, request = _context(options, workers), options.request
    assignment = request.load_assignment()
    program, seed = load_program().digest, options.seed
    if system == STRAWMAN:
        return build_plan(
            graph,
            workers=workers,
            slots=context.slots,
            program=program,
            seed=seed,
            partition=request.partition or _PARTITION,
            blocks=STRAWMAN,
            order=request.order or "random",
            assignment=assignment,
            banks=context.banks,
            lanes=context.lanes,
            progress=tell,
        )
    if assignment is None and request.partition is None:
        # On leaves and spines `best` has a partition of its own, but systems are compared with
        # the same vertices at each worker.
        request = replace(request, partition=_PARTITION)
    return build_resolved(
        graph,
        resolve_strategies(replace(request, preset=system), graph, context),
        context,
        program=program,
        seed=seed,
        assignment=assignment,
        fits=room_for(options),
        progress=tell,
    )


def _context(options: SimulateOptions, workers: int) -> PlanContext:
    context = planned_for(options, workers, options.slots or load_program().slots)
    if context.room < MIN_SLOTS:
        raise SimulatorError(f"A plan needs {MIN_SLOTS} slots: give more --memory.")
    return context


def _forecast_of(options: SimulateOptions) -> forecast.StarForecast:
    return forecast.StarForecast(
        predicted_on(options),
        {Direction.FORWARD: {options.features: 1.0}},
        together=options.slot_features is not None,
    )


def _made_auto(
    graph: Graph, options: SimulateOptions, workers: int, tell: Progress
) -> SimulatedSystem:
    """Return the plan that is predicted to take the least time, or what hosts send alone."""
    context = _context(options, workers)
    made = build_auto(
        graph,
        resolve_strategies(replace(options.request, preset=AUTO), graph, context),
        context,
        _forecast_of(options),
        program=load_program().digest,
        seed=options.seed,
        assignment=options.request.load_assignment(),
        fits=room_for(options),
        progress=tell,
    )
    boundary = boundary_edges(graph, made.plan.assignment)
    return _chosen(made, options, lambda name: count_rows(boundary, workers, _SENT_BY[name]), graph)


def _fastest(
    plan: Plan, options: SimulateOptions, tell: Progress, graph: Graph | None = None
) -> SimulatedSystem:
    """Return the plan, or leave all sums to hosts if that is predicted to be faster."""
    if options.leaf_spine is not None:
        return replace(_planned(AUTO, plan, options, graph), chosen=forecast.SWITCH)
    tell("predict the seconds of exchanges")
    predicted = _forecast_of(options)
    left = np.zeros((plan.manifest.workers,) * 2, dtype=np.int64)
    own = forecast.SWITCH
    if graph is not None and plan.leaves_any:
        left, own = _rows_left(plan, graph).rows, forecast.MIXED
    seconds = {own: predicted.of_plan(plan, {Direction.FORWARD: left})}
    between = {
        transport: _rows_on_partition(plan, graph, choose) for transport, choose in _SENT_BY.items()
    }
    for name, found in between.items():
        seconds[name] = predicted.of_hosts({Direction.FORWARD: found.rows})
    chosen = min(seconds, key=seconds.__getitem__)
    return _chosen(AutoPlan(plan, seconds, chosen), options, lambda name: between[name], graph)


def _chosen(
    made: AutoPlan,
    options: SimulateOptions,
    between: Callable[[str], PairRows],
    graph: Graph | None,
) -> SimulatedSystem:
    """Return the transport that was chosen; `between` counts the rows where hosts are alone."""
    plan, transport = made.plan, made.chosen
    if transport in _SENT_BY:
        record = plan.manifest.graph
        subject = _alone(options, between(transport), record.name, plan.assignment, record.edges)
    else:
        subject = _planned(AUTO, plan, options, graph)
    return replace(subject, predicted_seconds=made.seconds, chosen=transport)


def _planned(
    system: str, plan: Plan, options: SimulateOptions, graph: Graph | None = None
) -> SimulatedSystem:
    """Return a plan; the graph is needed where it leaves destinations to the hosts."""
    memory, lanes = check_fits(plan, options), plan.manifest.lanes
    carried = fragment_lanes(options.features, lanes)
    subject = SimulatedSystem(
        system=system,
        graph=plan.manifest.graph.name,
        digest=plan.manifest.digest,
        setup=plan_setup(
            plan,
            len(carried),
            whole_features=options.slot_features is not None,
            leaf_spine=options.leaf_spine,
            banks=options.switch.banks,
            lanes=carried,
        ),
        slots=plan.manifest.room,
        vertices=int(np.bincount(plan.assignment).max()),
        additions=_additions(plan),
        memory=memory,
        lanes=lanes,
    )
    if graph is None or not plan.leaves_any:
        return subject
    if options.leaf_spine is not None:
        raise SimulatorError(
            "Destinations that are left to the hosts have a model in a star only: leave out "
            "--topology leaf-spine, or give a plan that leaves none."
        )
    found = _rows_left(plan, graph)
    pace, mtu = options.network.pace, options.mtu
    return replace(
        subject,
        setup=mixed_setup(subject.setup, found.rows, options.features, pace, mtu),
        additions=subject.additions + found.sums / subject.setup.workers,
        left=int(np.count_nonzero(plan.left(Direction.FORWARD))),
        rows_between_hosts=int(found.rows.sum()),
    )


def _rows_left(plan: Plan, graph: Graph) -> PairRows:
    """Count what hosts send each other for the destinations that a plan leaves to them."""
    edges = left_edges(plan, graph, Direction.FORWARD)
    return count_rows(edges, plan.manifest.workers, fewest_rows)


def _additions(plan: Plan) -> float:
    """See Subject: the switch adds up what travels, and the workers their partial sums."""
    manifest = plan.manifest
    forward = manifest.direction(Direction.FORWARD)
    ends = [forward.first_block - 1, forward.last_block]
    travel, partial = 0, 0
    for part in plan.workers:
        low, high = part.receive_indptr[ends]
        travel += int(part.neighbour_indptr[high] - part.neighbour_indptr[low])
        low, high = part.send_indptr[ends]
        rows = np.diff(part.send_row_indptr[low : high + 1])
        partial += int(rows[rows > 1].sum())
    return (manifest.graph.edges - travel + partial) / manifest.workers
