# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of `switchgnn allreduce`: build a network, reduce tensors, compare with Gloo."""

import importlib.util
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.arrays import read_arrays
from switchgnn.base.machine import python_program, require_memory
from switchgnn.commands.shared.observer import NOBODY
from switchgnn.commands.shared.outputs import recordings_in
from switchgnn.commands.shared.runner import (
    FinishedWorkers,
    LinkSettings,
    NetworkJob,
    StepListener,
    Workers,
    Workplace,
    finished,
    rank_variables,
    workplace,
)
from switchgnn.commands.shared.workers import follow_workers
from switchgnn.controller.controls.banks import reduce_slots
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.host.pace import Pace
from switchgnn.host.reduce.frames import LANES
from switchgnn.host.reduce.scale import GroupScale, group_codes
from switchgnn.host.reduce.worker import FLOATS, INTEGERS, REDUCED, AllReduceTask, tensor_of
from switchgnn.host.registry import SWITCH
from switchgnn.p4src import load_program
from switchgnn.planner.build import build_plan
from switchgnn.planner.graphs.graph import graph_from_edges
from switchgnn.planner.plan.files import write_plan
from switchgnn.planner.plan.leaf_spine import LeafSpineParts, split_for_leaf_spine
from switchgnn.topologies import Fabric, FabricChoice, WireBytes, carried
from switchgnn.topologies.forkserver import Forkserver

NUMBER_BYTES = 4
_WORKER = python_program("switchgnn.commands", "reduce-worker")
_GLOO_WORKER = python_program("switchgnn.commands", "gloo-worker")
# What a task has of the fields that all jobs share.
_SHARED = ("worker", "plan", "session", "link", "addresses", "faults", "recording")
# Of a plan without a graph.
_FEWEST_SLOTS = 8
_ROUNDING = 2.0**-24  # of float32, relative
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ReduceOptions(NetworkJob):
    """What to reduce.

    Attributes:
        elements: numbers of a tensor.
        rounds: all-reduces of integers, and then as many of floats.
        words: int32 of each float, 2 or 1.
        gloo: whether to compare with Gloo where its packets go over the same links.
        pcap: the folder for a file of each link's packets, or None.
    """

    elements: int
    rounds: int
    seed: int
    pace: Pace
    words: int = 2
    gloo: bool = True
    pcap: Path | None = None


@dataclass(frozen=True)
class ReduceReport:
    """All-reduces of made-up tensors.

    Attributes:
        reason: what ran, and why.
        exact: whether all sums of integers equal NumPy's, at all workers.
        max_error, error_bound: of the sums of floats; the bound is that of the element whose
            error comes closest to its own.
        within: whether all sums of floats are within their bounds.
        seconds: of one all-reduce of floats, the slowest worker's.
        gloo_seconds: the same with Gloo; None: it did not run on these links.
        bytes_per_link: of one all-reduce, both ways, the busiest worker's link.
        ring_bytes_per_link: the same with Gloo's ring; without a count the payload alone.
        wires: what counted the bytes of the switch and of the ring.
        resent: fragments that workers sent again.
        counters: those of the workers, added up.
    """

    reason: str
    workers: int
    elements: int
    rounds: int
    exact: bool
    within: bool
    max_error: float
    error_bound: float
    seconds: float
    gloo_seconds: float | None
    bytes_per_link: int
    ring_bytes_per_link: int
    wires: tuple[str, str]
    counters: dict[str, int]
    faults_injected: dict[str, int]
    bandwidth: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON's types."""
        return asdict(self)


def run_allreduce(
    options: ReduceOptions,
    step: StepListener,
    *,
    nursery: Forkserver | None = None,
    log_dir: Path | None = None,
) -> ReduceReport:
    """Reduce integers and floats through the switch, check every sum, and compare with Gloo.

    Raises:
        SwitchGNNError: a step failed; the network and all files are removed.
    """
    tensors = options.elements * NUMBER_BYTES * (options.workers + 4)
    require_memory(
        f"{options.workers} tensors of {options.elements:,} numbers",
        tensors,
        "ask for fewer --bytes",
    )
    choice = options.choose_site()
    with (
        recordings_in(options.pcap, options.workers, options.leaf_spine) as recordings,
        workplace(step, nursery, log_dir, NOBODY) as work,
    ):
        _LOG.info("%s", choice.reason)
        parts = write_empty_plan(options, work.folder / "plan")
        workers = Workers(
            program=load_program(),
            parts=parts,
            transport=SWITCH.name,
            task=lambda shared: AllReduceTask(
                **{name: shared[name] for name in _SHARED},
                elements=options.elements,
                rounds=options.rounds,
                seed=options.seed,
                words=options.words,
                output=_output(work.folder, shared["worker"]),
                pace=options.pace,
            ),
            run=lambda fabric, tasks: _reduce(fabric, tasks, options, work),
            recordings=recordings,
            links=LinkSettings(),
            scheduled=False,
            shows_slots=False,
        )
        with finished(options, choice, workers, work) as done:
            work.step("comparing with NumPy", 0, 0)
            return _report(options, choice, done, work.folder)


def write_empty_plan(job: NetworkJob, folder: Path) -> LeafSpineParts | None:
    """Write the plan of a graph without edges, for switches that only reduce."""
    nothing = np.zeros(0, dtype=np.int64)
    graph = graph_from_edges(nothing, nothing, name="none", vertices=job.workers, directed=False)
    plan = build_plan(
        graph,
        workers=job.workers,
        slots=_FEWEST_SLOTS,
        program=load_program().digest,
        assignment=np.arange(job.workers, dtype=np.int32),
    )
    write_plan(plan, folder)
    return split_for_leaf_spine(plan, job.leaf_spine) if job.leaf_spine else None


def _output(folder: Path, worker: int) -> Path:
    return folder / f"sums-{worker}.safetensors"


@dataclass(frozen=True)
class _Runs:
    """What the workers report, and the bytes of each link; None where nothing counts them."""

    switch: list[dict[str, Any]]
    gloo: list[dict[str, Any]] | None
    wires: list[WireBytes] | None
    ring_wires: list[WireBytes] | None


def _reduce(
    fabric: Fabric, tasks: Sequence[AllReduceTask], options: ReduceOptions, work: Workplace
) -> _Runs:
    """Run the workers, and then, on the same links, those of Gloo."""
    done = [0] * len(tasks)

    def hear(worker: int, event: dict[str, Any]) -> None:
        if event["event"] == "progress":
            done[worker] = event["done"]
            work.step("reducing", sum(done), event["steps"] * len(tasks))

    before = fabric.wire_bytes()
    children = [fabric.worker_child(task.worker, _WORKER) for task in tasks]
    ends = follow_workers(children, tasks, hear)
    after = fabric.wire_bytes()
    if not _gloo_runs_here(options, fabric):
        return _Runs(ends, None, carried(before, after), None)
    work.step("reducing with Gloo", 0, 0)
    return _Runs(
        ends,
        _reduce_with_gloo(fabric, options, work.folder),
        carried(before, after),
        carried(after, fabric.wire_bytes()),
    )


def _gloo_runs_here(options: ReduceOptions, fabric: Fabric) -> bool:
    """Whether Gloo is installed, and its packets meet the same links, limits and no faults."""
    if not options.gloo or options.faults or importlib.util.find_spec("torch") is None:
        return False
    return options.bandwidth is None or fabric.workers_have_hosts


def _reduce_with_gloo(fabric: Fabric, options: ReduceOptions, folder: Path) -> list[dict[str, Any]]:
    from switchgnn.training.allreduce import GlooTask  # noqa: PLC0415  it needs PyTorch

    tasks = [
        GlooTask(
            worker=worker,
            workers=options.workers,
            elements=options.elements,
            rounds=options.rounds,
            seed=options.seed,
            meeting=folder / "meeting",
            pace=options.pace,
        )
        for worker in range(options.workers)
    ]
    children = [
        fabric.worker_child(
            task.worker, _GLOO_WORKER, environment=rank_variables(fabric, task.worker)
        )
        for task in tasks
    ]
    return follow_workers(children, tasks, lambda _worker, _event: None)


def _report(
    options: ReduceOptions, choice: FabricChoice, done: FinishedWorkers[_Runs], folder: Path
) -> ReduceReport:
    runs = done.result
    sums = read_arrays(_output(folder, 0), REDUCED, remedy="run again")
    same = len({end["digest"] for end in runs.switch}) == 1
    exact = same and bool(np.array_equal(sums["integers"], _integers(options)))
    worst, bound, within = _compare_floats(options, sums["floats"])
    counters: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for end in runs.switch:
        counters.update(end["counters"])
        for way in end["faults"].values():
            faults.update(way)
    return ReduceReport(
        reason=choice.reason,
        workers=options.workers,
        elements=options.elements,
        rounds=options.rounds,
        exact=exact,
        within=same and within,
        max_error=worst,
        error_bound=bound,
        seconds=max(end["seconds"] for end in runs.switch),
        gloo_seconds=None if runs.gloo is None else max(end["seconds"] for end in runs.gloo),
        bytes_per_link=_busiest(options, runs.wires, runs.switch),
        ring_bytes_per_link=_ring(options, runs.ring_wires),
        wires=(
            "sockets" if runs.wires is None else "interfaces",
            "payload" if runs.ring_wires is None else "interfaces",
        ),
        counters=dict(counters),
        faults_injected={name: number for name, number in faults.items() if number},
        bandwidth=options.bandwidth,
    )


def _tensors(options: ReduceOptions, kind: str) -> list[NDArray[Any]]:
    """Return what the workers have reduced last."""
    return [
        tensor_of(
            kind,
            seed=options.seed,
            worker=worker,
            index=options.rounds - 1,
            elements=options.elements,
        )
        for worker in range(options.workers)
    ]


def _integers(options: ReduceOptions) -> NDArray[np.int32]:
    total = np.zeros(options.elements, dtype=np.int32)
    for each in _tensors(options, INTEGERS):
        total += each
    return total


def _compare_floats(options: ReduceOptions, sums: NDArray[np.float32]) -> tuple[float, float, bool]:
    """Return the error that comes closest to its bound, that bound, and whether all are within."""
    tensors = _tensors(options, FLOATS)
    exact = np.zeros(options.elements, dtype=np.float64)
    for each in tensors:
        exact += each
    group = reduce_slots(Layout.from_text(load_program().p4info)) * LANES // options.words
    codes = np.max([group_codes(each, group) for each in tensors], axis=0)
    scales = [GroupScale(int(code), options.workers, options.words) for code in codes]
    bounds = [scale.error_bound() for scale in scales]
    bound = np.repeat(bounds, group)[: options.elements] + np.abs(exact) * _ROUNDING
    error = np.abs(sums - exact)
    place = int(np.argmax(error / bound))
    return float(error[place]), float(bound[place]), bool((error <= bound).all())


def _busiest(
    options: ReduceOptions, wires: list[WireBytes] | None, ends: list[dict[str, Any]]
) -> int:
    """Return the bytes of one all-reduce on the busiest link."""
    traffic = [end["traffic"] for end in ends]
    links: list[int] = [each["bytes_up"] + each["bytes_down"] for each in traffic]
    if wires is not None:
        links = [each.up + each.down for each in wires]
    return round(max(links) / (2 * options.rounds))


def _ring(options: ReduceOptions, wires: list[WireBytes] | None) -> int:
    if wires is None:
        others = (options.workers - 1) / options.workers
        return round(4 * options.elements * NUMBER_BYTES * others)
    return round(max(each.up + each.down for each in wires) / (2 * options.rounds))
