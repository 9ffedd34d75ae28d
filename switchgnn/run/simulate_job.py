# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of `switchgnn simulate`: plan, or read a plan, and simulate one exchange."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.header import FEATURE_FRAME_BYTES, fragments_of
from switchgnn.p4src import load_program
from switchgnn.planner.blocks import MIN_SLOTS
from switchgnn.planner.boundary import boundary_edges
from switchgnn.planner.build import build_plan
from switchgnn.planner.chosen import build_chosen
from switchgnn.planner.files import read_plan
from switchgnn.planner.graph import Graph
from switchgnn.planner.load import load_graph
from switchgnn.planner.manifest import STRAWMAN
from switchgnn.planner.partition import partition_workers
from switchgnn.planner.plan import Plan
from switchgnn.planner.presets import PRESETS, SLOT_BYTES, Situation, choose
from switchgnn.simulator import (
    SimulatorError,
    StarOptions,
    StarRun,
    compute_seconds,
    copies_of_edges,
    copies_of_plan,
    host_setup,
    plan_setup,
    run_star,
)
from switchgnn.simulator.compile import compiled_models
from switchgnn.simulator.exchange_setup import Setup

_BITS = 8
_MEGA = 1e6
# As the paper: hosts alone, with a switch that has neither blocks nor order, and with plans.
BNS_GCN = "bns-gcn"
SYSTEMS = (BNS_GCN, STRAWMAN, *PRESETS)
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
        system: one of SYSTEMS; with a plan `bns-gcn`, or None for the plan's own.
        layers: exchanges in an epoch.
        features: width F of what is exchanged.
        seed: for partition, blocks and order; the background's is in `star`.
        star: the network.
    """

    plan: Path | None
    graph: str | None
    workers: int | None
    slots: int | None
    system: str | None
    layers: int
    features: int
    seed: int
    star: StarOptions


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
        edges: of a worker on average; each direction counts.
    """

    system: str
    graph: str
    digest: str | None
    setup: Setup
    slots: int
    vertices: int
    edges: float


@dataclass(frozen=True, eq=False)
class SimulateReport:
    """An epoch: some exchanges, each as long as the one that was simulated, and computing.

    Attributes:
        options: what was asked for.
        subject: what was simulated.
        run: one exchange, of one layer.
        compute_seconds: of an epoch, by the model of `simulator/compute.py`.
    """

    options: SimulateOptions
    subject: Subject
    run: StarRun
    compute_seconds: float

    @property
    def communication_seconds(self) -> float:
        """Of an epoch."""
        return self.options.layers * self.run.seconds

    @property
    def epoch_seconds(self) -> float:
        """Communication and computing, one after the other."""
        return self.communication_seconds + self.compute_seconds

    @property
    def bytes(self) -> int:
        """Of one exchange, on all links, both ways."""
        return sum(self.run.bytes_up) + sum(self.run.bytes_down)

    @property
    def busiest_link_seconds(self) -> float:
        """What one exchange takes at least: the bytes of the fullest link over its rate."""
        most = max(*self.run.bytes_up, *self.run.bytes_down)
        return most * _BITS / (self.options.star.bandwidth * _MEGA)

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
            if name not in ("series", "trace", "finished", "background")
        }
        background = None if run.background is None else run.background.to_dict()
        return {
            "system": subject.system,
            "graph": subject.graph,
            "plan": subject.digest,
            "workers": subject.setup.workers,
            "memory_bytes": subject.slots * SLOT_BYTES,
            "slots": subject.slots,
            "blocks": subject.setup.blocks,
            "layers": options.layers,
            "features": options.features,
            "seed": options.seed,
            "star": asdict(options.star),
            "epoch_seconds": self.epoch_seconds,
            "communication_seconds": self.communication_seconds,
            "compute_seconds": self.compute_seconds,
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
    tell("compile the models")
    compiled_models()  # or say what is missing, before minutes of planning
    subject = _subject(options, tell)
    tell("simulate")
    run = run_star(subject.setup, options.star)
    computing = compute_seconds(subject.vertices, subject.edges, options.features, options.layers)
    return SimulateReport(options, subject, run, computing)


def _subject(options: SimulateOptions, tell: Progress) -> Subject:
    if options.plan is not None:
        return _read(options, options.plan, tell)
    if options.system is None or options.graph is None or options.workers is None:
        raise SimulatorError("Give a plan, or a graph, the number of workers and a system.")
    if options.system not in SYSTEMS:
        raise SimulatorError(f"No system {options.system!r}; known: {', '.join(SYSTEMS)}.")
    tell(f"load {options.graph}")
    graph = load_graph(options.graph)
    if options.system == BNS_GCN:
        return _hosts_alone(options, graph, options.workers, tell)
    plan = _make_plan(options.system, graph, options, options.workers, tell)
    return _planned(options.system, plan, options)


def _read(options: SimulateOptions, folder: Path, tell: Progress) -> Subject:
    tell(f"read {folder}")
    plan = read_plan(folder)
    if options.system == BNS_GCN:
        copies = copies_of_plan(plan)
        vertices = int(np.bincount(plan.assignment).max())
        return _copied(options, copies, plan.manifest.graph.name, vertices, _edges(plan))
    if options.system is not None:
        raise SimulatorError(
            f"A plan is simulated as it is, or as {BNS_GCN} on its partition, but not as "
            f"{options.system}: for that give --graph in place of --plan."
        )
    return _planned(STRAWMAN if plan.manifest.strawman else PLANNED, plan, options)


def _hosts_alone(options: SimulateOptions, graph: Graph, workers: int, tell: Progress) -> Subject:
    """METIS, and a copy for each worker that needs it."""
    tell("partition")
    assignment: NDArray[np.int32] = partition_workers(graph, workers, options.seed)
    copies = copies_of_edges(boundary_edges(graph, assignment), workers)
    vertices = int(np.bincount(assignment, minlength=workers).max())
    return _copied(options, copies, graph.name, vertices, len(graph.indices) / workers)


def _copied(
    options: SimulateOptions, copies: NDArray[np.int64], graph: str, vertices: int, edges: float
) -> Subject:
    setup = host_setup(copies, fragments_of(options.features), options.star.pace)
    return Subject(BNS_GCN, graph, None, setup, 0, vertices, edges)


def _make_plan(
    system: str, graph: Graph, options: SimulateOptions, workers: int, tell: Progress
) -> Plan:
    program = load_program()
    situation = Situation(workers, options.slots or program.slots)
    if situation.slots < MIN_SLOTS:
        raise SimulatorError(f"A plan needs {MIN_SLOTS} slots: give more --memory.")
    if system == STRAWMAN:
        return build_plan(
            graph,
            workers=workers,
            slots=situation.slots,
            program=program.digest,
            seed=options.seed,
            blocks=STRAWMAN,
            order="random",
            progress=tell,
        )
    choice = choose(system, graph, situation)
    return build_chosen(
        graph, choice, situation, program=program.digest, seed=options.seed, progress=tell
    )


def _planned(system: str, plan: Plan, options: SimulateOptions) -> Subject:
    return Subject(
        system=system,
        graph=plan.manifest.graph.name,
        digest=plan.manifest.digest,
        setup=plan_setup(plan, fragments_of(options.features)),
        slots=plan.manifest.slots,
        vertices=int(np.bincount(plan.assignment).max()),
        edges=_edges(plan),
    )


def _edges(plan: Plan) -> float:
    return plan.manifest.graph.edges / plan.manifest.workers
