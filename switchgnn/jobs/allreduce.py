"""All-reduces of made-up tensors through the switch, each sum checked."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Float32s
from switchgnn.base.arrays import read_arrays
from switchgnn.base.machine import require_memory
from switchgnn.base.options import shared_fields
from switchgnn.controller.controls.banks import reduce_slots
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.host.base.pace import Pace
from switchgnn.host.links.transport import LinkConfig
from switchgnn.host.reduce import scale
from switchgnn.host.reduce.worker import FLOATS, INTEGERS, REDUCED, AllReduceTask, tensor_of
from switchgnn.host.registry import SWITCH
from switchgnn.jobs import runner
from switchgnn.jobs.logs import recordings_in
from switchgnn.jobs.workers import run_workers, worker_command
from switchgnn.planner import build_plan, graph_from_edges, write_plan
from switchgnn.planner.plan.leaf_spine import LeafSpineParts, split_for_leaf_spine
from switchgnn.topologies import Fabric, FabricChoice, WireBytes
from switchgnn.topologies.forkserver import Forkserver

NUMBER_BYTES = 4
# Of a plan without a graph.
_FEWEST_SLOTS = 8
_ROUNDING = 2.0**-24  # of float32, relative
_LOG = logging.getLogger(__name__)
Reduced = runner.FinishedWorkers[list[dict[str, Any]]]


@dataclass(frozen=True, kw_only=True)
class ReduceOptions(runner.NetworkJob):
    """What to reduce."""

    elements: int  # numbers of a tensor
    rounds: int  # all-reduces of integers, and then as many of floats
    seed: int
    pace: Pace
    bits: int = scale.PRECISE  # of each float, 48 or 32


@dataclass(frozen=True)
class ReduceReport:
    """All-reduces of made-up tensors."""

    reason: str  # what ran, and why
    workers: int
    elements: int
    rounds: int
    exact: bool  # whether all sums of integers equal NumPy's, at all workers
    within: bool  # whether all sums of floats are within their bounds
    # of the sums of floats; the bound is that of the element whose error comes closest to its own
    max_error: float
    error_bound: float
    seconds: float  # of one all-reduce of floats, the slowest worker's
    bytes_per_link: int  # of one all-reduce, both ways, the busiest worker's link
    ring_bytes_per_link: int  # the same in a ring, as Gloo's, without headers
    wires: str  # the source of `bytes_per_link`, `interfaces` or `sockets`
    counters: dict[str, int]  # those of the workers, added up
    faults_injected: dict[str, int]
    bandwidth: float | None


def run_allreduce(
    options: ReduceOptions,
    step: runner.StepListener,
    *,
    forkserver: Forkserver | None = None,
    log_dir: Path | None = None,
    hold: Callable[[Fabric], None] | None = None,
) -> ReduceReport:
    """Reduce integers and floats through the switch, and check every sum.

    `hold` is called with the running fabric before the fabric ends.
    """
    tensors = options.elements * NUMBER_BYTES * (options.workers + 4)
    require_memory(
        f"{options.workers} tensors of {options.elements:,} numbers",
        tensors,
        "ask for fewer --bytes",
    )
    choice = options.choose_fabric()
    with (
        recordings_in(options.pcap, options.workers, options.leaf_spine) as recordings,
        runner.workspace(step, forkserver, log_dir, runner.NOBODY) as work,
    ):
        _LOG.info("%s", choice.reason)
        parts = write_empty_plan(options, work.folder / "plan")
        workers = runner.Workers(
            program=options.program,
            parts=parts,
            transport=SWITCH.name,
            run=lambda fabric, links: _reduce(fabric, links, options, work),
            recordings=recordings,
            shows_slots=False,
        )
        with runner.finished(options, choice, workers, work) as done:
            work.step("comparing with NumPy")
            report = _report(options, choice, done, work.folder)
            if hold is not None:
                hold(done.fabric)
            return report


def write_empty_plan(job: runner.NetworkJob, folder: Path) -> LeafSpineParts | None:
    """Write the plan of a graph without edges, for switches that only reduce."""
    nothing = np.zeros(0, dtype=np.int64)
    graph = graph_from_edges(nothing, nothing, name="none", vertices=job.workers, directed=False)
    plan = build_plan(
        graph,
        workers=job.workers,
        slots=_FEWEST_SLOTS,
        program=job.program.digest,
        assignment=np.arange(job.workers, dtype=np.int32),
    )
    write_plan(plan, folder)
    return split_for_leaf_spine(plan, job.leaf_spine) if job.leaf_spine else None


def _output(folder: Path, worker: int) -> Path:
    return folder / f"sums-{worker}.safetensors"


def _reduce(
    fabric: Fabric, links: Sequence[LinkConfig], options: ReduceOptions, work: runner.Workspace
) -> list[dict[str, Any]]:
    shared = shared_fields(options, AllReduceTask)
    tasks = [
        AllReduceTask(each, **shared, output=_output(work.folder, each.worker)) for each in links
    ]
    show = partial(work.step, "reducing")
    return run_workers(fabric, worker_command("reduce-worker"), tasks, options.pace, progress=show)


def _report(
    options: ReduceOptions, choice: FabricChoice, done: Reduced, folder: Path
) -> ReduceReport:
    ends, sums = done.result, read_arrays(_output(folder, 0), REDUCED, remedy="run again")
    same = len({end["digest"] for end in ends}) == 1
    integers = reduce(np.add, _tensors(options, INTEGERS))
    worst, bound, within = _compare_floats(options, sums["floats"])
    counters, faults = Counter[str](), Counter[str]()
    for end in ends:
        counters.update(end["counters"])
        for direction in end["faults"].values():
            faults.update(direction)
    wires = done.wires or [
        WireBytes(end["traffic"]["bytes_up"], end["traffic"]["bytes_down"]) for end in ends
    ]
    return ReduceReport(
        **shared_fields(options, ReduceReport),
        reason=choice.reason,
        exact=same and bool(np.array_equal(sums["integers"], integers)),
        within=same and within,
        max_error=worst,
        error_bound=bound,
        seconds=max(end["seconds"] for end in ends),
        bytes_per_link=round(max(map(sum, wires)) / (2 * options.rounds)),
        ring_bytes_per_link=ring_bytes(options.elements, options.workers),
        wires="interfaces" if done.wires else "sockets",
        counters=dict(counters),
        faults_injected={name: number for name, number in faults.items() if number},
    )


def _tensors(options: ReduceOptions, kind: str) -> list[NDArray[Any]]:
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


def _compare_floats(options: ReduceOptions, sums: Float32s) -> tuple[float, float, bool]:
    """Return the error that comes closest to its bound, that bound, and whether all are within."""
    tensors = _tensors(options, FLOATS)
    exact = reduce(np.add, tensors, np.zeros(options.elements, dtype=np.float64))
    lanes = runner.reduced_lanes(options.target)
    slots = reduce_slots(Layout.from_text(options.program.p4info))
    shared = options.workers, slots, options.bits, lanes
    codes = np.max([scale.fragment_codes(each, *shared)[0] for each in tensors], axis=0)
    bounds = scale.FragmentScales(codes, options.workers, options.bits).error_bounds()
    bounds = np.repeat(bounds, scale.numbers_of(options.bits, lanes))[: options.elements]
    bound = bounds + np.abs(exact) * _ROUNDING
    error = np.abs(sums - exact)
    worst = int(np.argmax(error / bound))
    return float(error[worst]), float(bound[worst]), bool((error <= bound).all())


def ring_bytes(elements: int, workers: int) -> int:
    """Return the bytes of numbers on a worker's link, both ways, of an all-reduce in a ring."""
    return round(4 * elements * NUMBER_BYTES * (workers - 1) / workers)
