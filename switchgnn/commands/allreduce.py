"""`switchgnn allreduce`: tensors through the switch, each sum checked."""

import json
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from switchgnn.base.array_types import Float32s
from switchgnn.base.arrays import read_arrays
from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.interruptible import end_like_interrupted
from switchgnn.base.machine import Amount, against_bound, require_memory
from switchgnn.base.options import (
    DATA,
    OUTPUT,
    option,
    parse_bytes,
    shared_fields,
    with_groups,
)
from switchgnn.commands.shared.config_file import ConfigOption
from switchgnn.commands.shared.console import StepBars, counted, plain_console, progress_bars
from switchgnn.commands.shared.live import NOBODY
from switchgnn.commands.shared.options import (
    JobNetworkOptions,
    json_option,
    seed_option,
    timeout_option,
    workers_option,
)
from switchgnn.commands.shared.outputs import LogOptions, check_outputs, recordings_in, told_aloud
from switchgnn.commands.shared.runner import (
    FinishedWorkers,
    NetworkJob,
    StepListener,
    Workers,
    Workspace,
    finished,
    workspace,
)
from switchgnn.commands.shared.workers import command_forkserver, run_workers, worker_command
from switchgnn.controller.controls.banks import reduce_slots
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.host.base.pace import Pace
from switchgnn.host.links.faults import Faults
from switchgnn.host.links.transport import LinkConfig
from switchgnn.host.reduce import scale
from switchgnn.host.reduce.worker import FLOATS, INTEGERS, REDUCED, AllReduceTask, tensor_of
from switchgnn.host.registry import SWITCH
from switchgnn.p4src import load_program
from switchgnn.planner import build_plan, graph_from_edges, write_plan
from switchgnn.planner.plan.leaf_spine import LeafSpineParts, split_for_leaf_spine
from switchgnn.topologies import Fabric, FabricChoice, WireBytes
from switchgnn.topologies.forkserver import Forkserver

_WRONG = 1
NUMBER_BYTES = 4
# Of a plan without a graph.
_FEWEST_SLOTS = 8
_ROUNDING = 2.0**-24  # of float32, relative
_LOG = logging.getLogger(__name__)
Reduced = FinishedWorkers[list[dict[str, Any]]]


@dataclass(frozen=True, kw_only=True)
class ReduceOptions(NetworkJob):
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
    step: StepListener,
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
        workspace(step, forkserver, log_dir, NOBODY) as work,
    ):
        _LOG.info("%s", choice.reason)
        parts = write_empty_plan(options, work.folder / "plan")
        workers = Workers(
            program=load_program(),
            parts=parts,
            transport=SWITCH.name,
            run=lambda fabric, links: _reduce(fabric, links, options, work),
            recordings=recordings,
            shows_slots=False,
        )
        with finished(options, choice, workers, work) as done:
            work.step("comparing with NumPy", 0, 0)
            report = _report(options, choice, done, work.folder)
            if hold is not None:
                hold(done.fabric)
            return report


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


def _reduce(
    fabric: Fabric, links: Sequence[LinkConfig], options: ReduceOptions, work: Workspace
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
    shared = options.workers, reduce_slots(Layout.from_text(load_program().p4info)), options.bits
    codes = np.max([scale.fragment_codes(each, *shared)[0] for each in tensors], axis=0)
    bounds = scale.FragmentScales(codes, options.workers, options.bits).error_bounds()
    bounds = np.repeat(bounds, scale.numbers_of(options.bits))[: options.elements]
    bound = bounds + np.abs(exact) * _ROUNDING
    error = np.abs(sums - exact)
    worst = int(np.argmax(error / bound))
    return float(error[worst]), float(bound[worst]), bool((error <= bound).all())


def ring_bytes(elements: int, workers: int) -> int:
    """Return the bytes of numbers on a worker's link, both ways, of an all-reduce in a ring."""
    return round(4 * elements * NUMBER_BYTES * (workers - 1) / workers)


@dataclass(frozen=True, kw_only=True)
class AllReduceCommandOptions:
    """The options of `switchgnn allreduce`."""

    workers: int = workers_option(4)
    size: str = option(
        DATA, "SIZE", "Reduce tensors of this size, such as 4MB.", "--bytes", default="4MB"
    )
    rounds: int = option(
        DATA, "N", "Do N all-reduces of integers, then N of floats.", default=3, min=1
    )
    bits: int = option(DATA, "BITS", "Send each float in 48 or, coarse, 32 bits.", default=48)
    seed: int = seed_option()
    network: JobNetworkOptions
    timeout: float = timeout_option(20.0)
    pcap: Path | None = option(
        OUTPUT, "FOLDER", "Write all packets to pcap files in this folder, one per link."
    )
    logs: LogOptions
    as_json: bool = json_option()

    def options(self) -> ReduceOptions:
        """Return the job that is asked for."""
        size = parse_bytes("--bytes", self.size)
        if size < NUMBER_BYTES or size % NUMBER_BYTES:
            raise SwitchGNNError(
                f"A tensor of {size:,} bytes has no whole number of {NUMBER_BYTES} bytes each: "
                "give --bytes as a multiple of 4."
            )
        if self.bits not in (scale.PRECISE, scale.COARSE):
            raise SwitchGNNError(f"Floats cannot take {self.bits} bits: give --bits as 48 or 32.")
        Faults.parse(self.network.faults)
        return ReduceOptions(
            **shared_fields(self, ReduceOptions) | self.network.job_fields(self.workers),
            elements=size // NUMBER_BYTES,
            pace=Pace(window=self.network.in_flight(), timeout=self.timeout),
        )


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Example: switchgnn allreduce --workers 4 --bytes 1MB --fabric loopback")
@with_groups
def allreduce(asked: AllReduceCommandOptions, config: ConfigOption = None) -> None:
    """Sum tensors over all workers in the switch, and check every number.

    Starts a switch with the P4 program and a process for each worker. They
    reduce tensors of integers, which must equal NumPy's sums to the bit, and of
    floats, whose errors have a bound. Exit code 0 when all sums are right, 1
    when one is not, 2 when it could not be done.
    """
    check_outputs({"--log-dir": asked.logs.log_dir})
    options = asked.options()
    end_like_interrupted()
    with (
        command_forkserver() as forkserver,
        progress_bars(plain_console(stderr=True)) as progress,
        told_aloud(verbose=asked.logs.verbose),
    ):
        steps = StepBars(progress)
        report = run_allreduce(options, steps, forkserver=forkserver, log_dir=asked.logs.log_dir)
        steps.finish()
    if asked.as_json:
        typer.echo(json.dumps(asdict(report)))
    else:
        print_report(plain_console(soft_wrap=True, highlight=False), report)
    if not (report.exact and report.within):
        raise typer.Exit(_WRONG)


def print_report(console: Console, report: ReduceReport) -> None:
    """Print the report, for people."""
    size = report.elements * NUMBER_BYTES
    console.print(
        f"All-reduce of {Amount(report.elements):number} ({size:,} bytes) over "
        f"{Amount(report.workers):worker}"
    )
    console.print(f"Ran on: {report.reason}.")
    ratio = report.ring_bytes_per_link / max(1, report.bytes_per_link)
    console.print(
        f"Bytes on a worker's link: {report.bytes_per_link:,} (counted by {report.wires}); a ring "
        f"takes {report.ring_bytes_per_link:,} without headers, {ratio:.2f} times as many."
    )
    console.print(f"Time: {report.seconds:.4f} s")
    if report.faults_injected:
        console.print(counted("Faults injected", report.faults_injected))
        console.print(f"Fragments sent again: {report.counters['resent']:,}.")
    integers = "equal NumPy's to the bit" if report.exact else "DIFFER from NumPy's"
    floats = against_bound(report.max_error, report.error_bound)
    console.print(f"Sums of integers {integers}; those of floats are off by at most {floats}.")
