# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What is simulated: a plan that is read or made, or a partition between whose hosts rows go."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.direct.copies import copies
from switchgnn.host.direct.partial import fewest_rows
from switchgnn.host.direct.schedule import EdgeChoice, PairRows, count_rows
from switchgnn.host.wire.header import LANES
from switchgnn.p4src import load_program
from switchgnn.planner.blocks.mlgp import MIN_SLOTS
from switchgnn.planner.build import build_plan
from switchgnn.planner.check.foreign import trusted_plan
from switchgnn.planner.chosen import Asked, build_chosen, choose_asked
from switchgnn.planner.costs.host_seconds import host_seconds
from switchgnn.planner.costs.seconds import plan_seconds
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.lanes import fragment_lanes
from switchgnn.planner.partition.workers import check_assignment, check_workers
from switchgnn.planner.plan.files import read_plan
from switchgnn.planner.plan.manifest import STRAWMAN
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.strategies import PARTITION_STRATEGIES
from switchgnn.profiles import PlanMemory
from switchgnn.simulator.bins import BIN_SIZE, bins_of
from switchgnn.simulator.errors import SimulatorError
from switchgnn.simulator.exchange_setup import Setup
from switchgnn.simulator.host_setup import host_setup, rows_of_plan
from switchgnn.simulator.plan_setup import plan_setup
from switchgnn.simulator.request import (
    AUTO,
    BNS_GCN,
    CHOICES,
    G3,
    HOST_PARTIAL,
    HOSTS_ALONE,
    PLANNED,
    SYSTEMS,
    SimulateOptions,
    preset_of,
)
from switchgnn.simulator.within import check_fits, check_links, planned_for, predicted_on, room_for

Progress = Callable[[str], None]
# Who holds which vertex where nothing else is asked for.
_PARTITION = "metis"
# What hosts send for a boundary edge.
_SENT: Mapping[str, EdgeChoice] = {BNS_GCN: copies, HOST_PARTIAL: fewest_rows, G3: copies}


@dataclass(frozen=True)
class Subject:
    """What is simulated, and what it is called.

    Attributes:
        system: its name.
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
        predicted_seconds: of an exchange, by what the system `auto` may do: `plan`, or all sums
            left to hosts, by the name of a system that does so; None elsewhere.
        chosen: which of them has the least; None elsewhere.
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


def make_subject(options: SimulateOptions, tell: Progress) -> Subject:
    """Read or make what is to be simulated.

    Args:
        options: what to simulate.
        tell: called with a few words at the start of each step.

    Returns:
        The arrays of an exchange, and what is known of them.

    Raises:
        SwitchGNNError: with a sentence for the user.
    """
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
        raise SimulatorError(f"No system {options.system!r}; known: {', '.join(SYSTEMS)}.")
    _check_asked(options.system, options.asked)
    tell(f"load {options.graph}")
    graph = load_graph(options.graph)
    if options.system in HOSTS_ALONE:
        return _hosts_alone(options.system, options, graph, options.workers, tell)
    plan = _make_plan(options.system, graph, options, options.workers, tell)
    if options.system == AUTO:
        return _fastest(plan, options, tell)
    return _planned(options.system, plan, options)


def _check_asked(system: str, asked: Asked) -> None:
    asked.checked()
    for part in asked.named():
        if part not in CHOICES[system]:
            raise SimulatorError(
                f"{system} has no {part} to choose: leave --{part} out; only "
                f"{' and '.join(f'--{name}' for name in CHOICES[system])} can be given with it."
            )


def _read(options: SimulateOptions, folder: Path, tell: Progress) -> Subject:
    if options.asked.named() or options.asked.assignment:
        raise SimulatorError("A plan has its own strategies: for others give --graph in its place.")
    tell(f"read {folder}")
    # The models and what is compiled believe the arrays: they do not look at each index.
    with trusted_plan(folder, tell, check=options.check) as trusted:
        plan = read_plan(trusted)
    if plan.leaves_any:
        raise SimulatorError(
            f"The plan {folder} leaves destinations to the hosts, which is not simulated: give a "
            "plan that leaves none."
        )
    check_links(options, plan.manifest.workers)
    if options.system in HOSTS_ALONE:
        found = rows_of_plan(plan, _SENT[options.system])
        record = plan.manifest.graph
        return _alone(options, found, record.name, plan.assignment, record.edges)
    if options.system == AUTO:
        return _fastest(plan, options, tell)
    if options.system is not None:
        raise SimulatorError(
            f"A plan is simulated as it is, or as one of {', '.join((*HOSTS_ALONE, AUTO))} on its "
            f"partition, but not as {options.system}: for that give --graph in place of --plan."
        )
    return _planned(STRAWMAN if plan.manifest.strawman else PLANNED, plan, options)


def _hosts_alone(
    system: str, options: SimulateOptions, graph: Graph, workers: int, tell: Progress
) -> Subject:
    """Return a partition, and the rows that hosts send each other."""
    tell("partition")
    check_workers(graph, workers)
    partition = PARTITION_STRATEGIES[options.asked.partition or HOSTS_ALONE[system]]
    given = options.asked.load_assignment()
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
) -> Subject:
    setup = host_setup(found.rows, options.features, options.network.pace, options.mtu)
    vertices = int(np.bincount(assignment).max())
    # A sum's members are added where they are, and the sum itself where it arrives.
    additions = (edges + found.sums) / setup.workers
    bins = bins_of(vertices, options.bin_size or BIN_SIZE) if options.system == G3 else 0
    return Subject(options.system or PLANNED, graph, None, setup, 0, vertices, additions, bins)


def _make_plan(
    system: str, graph: Graph, options: SimulateOptions, workers: int, tell: Progress
) -> Plan:
    program = load_program()
    situation = planned_for(options, workers, options.slots or program.slots)
    if situation.room < MIN_SLOTS:
        raise SimulatorError(f"A plan needs {MIN_SLOTS} slots: give more --memory.")
    asked = options.asked
    assignment = asked.load_assignment()
    if system == STRAWMAN:
        return build_plan(
            graph,
            workers=workers,
            slots=situation.slots,
            program=program.digest,
            seed=options.seed,
            partition=asked.partition or _PARTITION,
            blocks=STRAWMAN,
            order=asked.order or "random",
            assignment=assignment,
            banks=situation.banks,
            lanes=situation.lanes,
            progress=tell,
        )
    if assignment is None and asked.partition is None:
        # On leaves and spines `best` has a partition of its own, but systems are compared with
        # the same vertices at each worker.
        asked = replace(asked, partition=_PARTITION)
    return build_chosen(
        graph,
        choose_asked(replace(asked, preset=preset_of(system)), graph, situation),
        situation,
        program=program.digest,
        seed=options.seed,
        assignment=assignment,
        fits=room_for(options),
        progress=tell,
    )


def _fastest(plan: Plan, options: SimulateOptions, tell: Progress) -> Subject:
    """Return the plan, or leave all sums to hosts if that is predicted to be faster."""
    if options.leaf_spine is not None:
        return replace(_planned(AUTO, plan, options), chosen=PLANNED)
    tell("predict the seconds of exchanges")
    network, whole = predicted_on(options), options.slot_features is not None
    seconds = {
        PLANNED: plan_seconds(plan, Direction.FORWARD, options.features, network, together=whole)
    }
    between = {}
    for system in (HOST_PARTIAL, BNS_GCN):
        between[system] = rows_of_plan(plan, _SENT[system])
        seconds[system] = host_seconds(between[system].rows, options.features, network)
    chosen = min(seconds, key=lambda system: seconds[system])
    if chosen == PLANNED:
        subject = _planned(AUTO, plan, options)
    else:
        graph = plan.manifest.graph
        subject = _alone(options, between[chosen], graph.name, plan.assignment, graph.edges)
    return replace(subject, predicted_seconds=seconds, chosen=chosen)


def _planned(system: str, plan: Plan, options: SimulateOptions) -> Subject:
    memory = check_fits(plan, options)
    lanes = plan.manifest.lanes
    carried = fragment_lanes(options.features, lanes)
    return Subject(
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
