# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of `switchgnn simulate`: plan, or read a plan, and simulate one exchange."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.wire.header import FEATURE_FRAME_BYTES, fragments_of
from switchgnn.p4src import load_program
from switchgnn.planner.blocks.mlgp import MIN_SLOTS
from switchgnn.planner.build import build_plan
from switchgnn.planner.chosen import Asked, build_chosen, choose_asked
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.partition.workers import check_assignment, check_workers
from switchgnn.planner.plan.files import read_plan
from switchgnn.planner.plan.manifest import STRAWMAN
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.presets import PRESETS, Situation, slot_bytes
from switchgnn.planner.strategies import PARTITION_STRATEGIES
from switchgnn.simulator import (
    BIN_SIZE,
    LeafSpine,
    NetworkOptions,
    SimulationRun,
    SimulatorError,
    bins_of,
    compute_seconds,
    copies_of_edges,
    copies_of_plan,
    host_setup,
    overlapped_seconds,
    plan_setup,
    run_simulation,
)
from switchgnn.simulator.compile import compiled_models
from switchgnn.simulator.exchange_setup import Setup

_BITS = 8
_MEGA = 1e6
# As the paper: hosts alone, with a switch that has neither blocks nor order, and with plans.
BNS_GCN, G3 = "bns-gcn", "g3"
# The partition of the systems that send copies from host to host.
HOSTS_ALONE = {BNS_GCN: "metis", G3: "g3"}
SYSTEMS = (*HOSTS_ALONE, STRAWMAN, *PRESETS)
# What else can be asked for in place of a system's strategies.
_OPEN = {
    **dict.fromkeys(HOSTS_ALONE, ("partition",)),
    STRAWMAN: ("partition", "order"),
    **dict.fromkeys(PRESETS, ("partition", "blocks", "send", "order")),
}
# What a plan in a folder is called when nothing else is asked for.
PLANNED = "plan"

Progress = Callable[[str], None]


@dataclass(frozen=True)
class SimulateOptions:
    """What to simulate.

    Attributes:
        plan: a folder with a plan, or None to make one.
        graph: as load_graph takes it, or None with a plan.
        workers: their number, or None with a plan.
        slots: aggregators of the switch, or None with a plan.
        system: one of SYSTEMS; with a plan one of HOSTS_ALONE, or None for the plan's own.
        layers: exchanges in an epoch.
        features: width F of what is exchanged.
        seed: for partition, blocks and order; the background's is in `network`.
        network: links, switches and hosts.
        leaf_spine: leaves and spines; None: a star, one switch with all workers.
        slot_features: numbers in a slot that holds a whole feature; None: it holds a fragment.
        asked: what takes the place of the system's strategies; the preset is the system's.
        bin_size: vertices of a bin of G3, or None for its own.
    """

    plan: Path | None
    graph: str | None
    workers: int | None
    slots: int | None
    system: str | None
    layers: int
    features: int
    seed: int
    network: NetworkOptions
    leaf_spine: LeafSpine | None = None
    slot_features: int | None = None
    asked: Asked = field(default_factory=Asked)
    bin_size: int | None = None


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
        additions: rows that a worker adds up by itself on average: for each edge inside it and
            each of its partial sums; where hosts send copies, for each edge.
        bins: of the worker that has most; 0 where all vertices are computed before any is sent.
    """

    system: str
    graph: str
    digest: str | None
    setup: Setup
    slots: int
    vertices: int
    additions: float
    bins: int = 0


@dataclass(frozen=True, eq=False)
class SimulateReport:
    """An epoch: some exchanges, each as long as the one that was simulated, and computing.

    Attributes:
        options: what was asked for.
        subject: what was simulated.
        run: one exchange, of one layer.
        compute_seconds: of an epoch, by the model of `switchgnn/simulator/compute.py`.
    """

    options: SimulateOptions
    subject: Subject
    run: SimulationRun
    compute_seconds: float

    @property
    def communication_seconds(self) -> float:
        """Of an epoch."""
        return self.options.layers * self.run.seconds

    @property
    def overlapped_seconds(self) -> float:
        """Of an epoch, what bins save by computing while they send."""
        communication = self.communication_seconds
        return overlapped_seconds(self.compute_seconds, communication, self.subject.bins)

    @property
    def epoch_seconds(self) -> float:
        """Communication and computing, one after the other but for what overlaps."""
        return self.communication_seconds + self.compute_seconds - self.overlapped_seconds

    @property
    def bytes(self) -> int:
        """Of one exchange, on all links, both ways."""
        inside = self.run.inside
        return self.host_link_bytes + (inside.bytes if inside else 0)

    @property
    def host_link_bytes(self) -> int:
        """The same without links between switches."""
        return sum(self.run.bytes_up) + sum(self.run.bytes_down)

    @property
    def busiest_link_seconds(self) -> float:
        """What one exchange takes at least: the bytes of the fullest link over its rate."""
        inside = self.run.inside
        between = (*inside.bytes_up, *inside.bytes_down) if inside else ()
        most = max(*self.run.bytes_up, *self.run.bytes_down, *between)
        return most * _BITS / (self.options.network.bandwidth * _MEGA)

    @property
    def aggregation_bits_per_second(self) -> float:
        """Frames of sums that leave the switch, over the time of an exchange."""
        return self._bits_per_second(self.run.sums)

    @property
    def total_bits_per_second(self) -> float:
        """The same with features that leave it as they came."""
        return self._bits_per_second(self.run.sums + sum(self.run.features_down))

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data; docs/simulator.md says what is what."""
        run, subject, options = self.run, self.subject, self.options
        series = {name: list(values) for name, values in vars(run.series).items()}
        plain = {
            name: value
            for name, value in vars(run).items()
            if name not in ("series", "trace", "finished", "inside", "background")
        }
        background = None if run.background is None else run.background.to_dict()
        return {
            "system": subject.system,
            "graph": subject.graph,
            "plan": subject.digest,
            "workers": subject.setup.workers,
            "memory_bytes": subject.slots * slot_bytes(options.slot_features),
            "slots": subject.slots,
            "slot_features": options.slot_features,
            "blocks": subject.setup.blocks,
            "layers": options.layers,
            "features": options.features,
            "seed": options.seed,
            "network": asdict(options.network),
            **self._tiers(),
            "epoch_seconds": self.epoch_seconds,
            "communication_seconds": self.communication_seconds,
            "compute_seconds": self.compute_seconds,
            "overlapped_seconds": self.overlapped_seconds,
            "bins": subject.bins,
            "exchange_seconds": run.seconds,
            "busiest_link_seconds": self.busiest_link_seconds,
            "bytes": self.bytes,
            "aggregation_bits_per_second": self.aggregation_bits_per_second,
            "total_bits_per_second": self.total_bits_per_second,
            **plain,
            "events_per_second": run.events / run.wall_seconds,
            "background": background,
            "series": series,
        }

    def _tiers(self) -> dict[str, Any]:
        """What a star has nothing of."""
        network, inside = self.options.leaf_spine, self.run.inside
        if network is None or inside is None:
            return {}
        links = {name: list(values) for name, values in vars(inside).items()}
        return {
            **asdict(network),
            "host_link_bytes": self.host_link_bytes,
            "leaf_spine_bytes": inside.bytes,
            "partial_sums": sum(inside.sums_up),
            "leaf_spine_links": links,
        }

    def _bits_per_second(self, frames: int) -> float:
        # One worker alone exchanges nothing, in no time.
        seconds = self.run.seconds
        return frames * FEATURE_FRAME_BYTES * _BITS / seconds if seconds else 0.0


def simulate_job(options: SimulateOptions, tell: Progress) -> SimulateReport:
    """Plan or read a plan, simulate one exchange, and work out an epoch.

    Args:
        options: what to simulate.
        tell: called with a few words at the start of each step.

    Raises:
        SwitchGNNError: with a sentence for the user.
    """
    if options.leaf_spine is not None and options.workers is not None:
        options.leaf_spine.words(options.workers)  # or say what cannot be, before planning
    _check_slots(options)
    _check_background(options)
    tell("compile the models")
    compiled_models()  # or say what is missing, before minutes of planning
    subject = _subject(options, tell)
    tell("simulate")
    run = run_simulation(subject.setup, options.network, leaf_spine=options.leaf_spine)
    computing = compute_seconds(
        subject.vertices,
        subject.additions + _received(run, subject.setup),
        options.features,
        options.layers,
    )
    return SimulateReport(options, subject, run, computing)


def _check_slots(options: SimulateOptions) -> None:
    if options.slot_features is not None and options.slot_features < options.features:
        raise SimulatorError(
            f"A slot of {options.slot_features} numbers does not hold a feature of "
            f"{options.features}: give a larger --slot-features, or none."
        )


def _check_background(options: SimulateOptions) -> None:
    if options.leaf_spine is not None and options.network.background_load:
        raise SimulatorError(
            "Background traffic has a model in a star only: leave out --background-load, or "
            "--topology leaf-spine."
        )


def _subject(options: SimulateOptions, tell: Progress) -> Subject:
    if options.bin_size is not None and options.system != G3:
        raise SimulatorError(f"Only {G3} has bins: leave their size out, or give --system {G3}.")
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
    return _planned(options.system, plan, options)


def _check_asked(system: str, asked: Asked) -> None:
    asked.checked()
    for part in asked.named():
        if part not in _OPEN[system]:
            raise SimulatorError(
                f"{system} has no {part} to choose: leave --{part} out; only "
                f"{' and '.join(f'--{name}' for name in _OPEN[system])} can be given with it."
            )


def _read(options: SimulateOptions, folder: Path, tell: Progress) -> Subject:
    if options.asked.named() or options.asked.assignment:
        raise SimulatorError("A plan has its own strategies: for others give --graph in its place.")
    tell(f"read {folder}")
    plan = read_plan(folder)
    if options.system in HOSTS_ALONE:
        setup = _copied(options, copies_of_plan(plan))
        edges = plan.manifest.graph.edges / plan.manifest.workers
        return _alone(options, setup, plan.manifest.graph.name, plan.assignment, edges)
    if options.system is not None:
        raise SimulatorError(
            f"A plan is simulated as it is, or as {' or '.join(HOSTS_ALONE)} on its partition, "
            f"but not as {options.system}: for that give --graph in place of --plan."
        )
    return _planned(STRAWMAN if plan.manifest.strawman else PLANNED, plan, options)


def _hosts_alone(
    system: str, options: SimulateOptions, graph: Graph, workers: int, tell: Progress
) -> Subject:
    """A partition, and a copy for each worker that needs it."""
    tell("partition")
    check_workers(graph, workers)
    partition = PARTITION_STRATEGIES[options.asked.partition or HOSTS_ALONE[system]]
    given = options.asked.load_assignment()
    made = partition(graph, workers, options.seed) if given is None else given
    assignment = check_assignment(graph, workers, made)
    setup = _copied(options, copies_of_edges(boundary_edges(graph, assignment), workers))
    return _alone(options, setup, graph.name, assignment, len(graph.indices) / workers)


def _copied(options: SimulateOptions, copies: NDArray[np.int64]) -> Setup:
    return host_setup(copies, fragments_of(options.features), options.network.pace)


def _alone(
    options: SimulateOptions,
    setup: Setup,
    graph: str,
    assignment: NDArray[np.integer],
    edges: float,
) -> Subject:
    vertices = int(np.bincount(assignment).max())
    bins = bins_of(vertices, options.bin_size or BIN_SIZE) if options.system == G3 else 0
    return Subject(options.system or PLANNED, graph, None, setup, 0, vertices, edges, bins)


def _make_plan(
    system: str, graph: Graph, options: SimulateOptions, workers: int, tell: Progress
) -> Plan:
    program = load_program()
    situation = Situation(workers, options.slots or program.slots)
    if situation.slots < MIN_SLOTS:
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
            partition=asked.partition or "metis",
            blocks=STRAWMAN,
            order=asked.order or "random",
            assignment=assignment,
            progress=tell,
        )
    return build_chosen(
        graph,
        choose_asked(replace(asked, preset=system), graph, situation),
        situation,
        program=program.digest,
        seed=options.seed,
        assignment=assignment,
        progress=tell,
    )


def _planned(system: str, plan: Plan, options: SimulateOptions) -> Subject:
    return Subject(
        system=system,
        graph=plan.manifest.graph.name,
        digest=plan.manifest.digest,
        setup=plan_setup(
            plan,
            fragments_of(options.features),
            whole_features=options.slot_features is not None,
        ),
        slots=plan.manifest.slots,
        vertices=int(np.bincount(plan.assignment).max()),
        additions=_additions(plan),
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


def _received(run: SimulationRun, setup: Setup) -> float:
    """Sums that a worker adds to its own on average, and features that found no slot."""
    if setup.host_based:
        return 0.0
    return (sum(run.sums_down) + sum(run.features_down)) / (
        setup.fragments_of_feature * setup.workers
    )
