"""The steps of a run, one after another, and its report."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from switchgnn.base.array_types import Bools, Float32s, Int32s
from switchgnn.base.arrays import pack_arrays
from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import writing
from switchgnn.base.machine import Amount, require_memory
from switchgnn.base.options import shared_fields
from switchgnn.host.base.operations import Operation
from switchgnn.host.base.pace import Pace
from switchgnn.host.direct.framing import Framing
from switchgnn.host.host_baseline import Exchanges, HostTraffic, host_traffic
from switchgnn.host.links.transport import LinkConfig
from switchgnn.host.paths.edges import write_edges
from switchgnn.host.registry import HOST, HOST_PARTIAL, SWITCH
from switchgnn.host.wire.header import LANES, WIDEST
from switchgnn.host.wire.native import hosts_run_as
from switchgnn.host.worker import WRITTEN, HostKind, WorkerTask
from switchgnn.jobs import runner
from switchgnn.jobs.logs import Recordings, recordings_in
from switchgnn.jobs.reference import SUM_BYTES, Comparison, Verdict
from switchgnn.jobs.report import Report, ran_ahead, report_leaf_spine, strategy_names
from switchgnn.jobs.workers import WorkerOutcome, releases_between, run_workers, worker_command
from switchgnn.p4src import Program
from switchgnn.planner import Direction, Graph, Manifest, ResolvedStrategies, boundary_edges
from switchgnn.planner.build import build_resolved
from switchgnn.planner.costs.forecast import choose_lanes
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.plan.files import write_plan
from switchgnn.planner.plan.leaf_spine import LeafSpineParts, split_for_leaf_spine
from switchgnn.planner.presets import resolve_strategies
from switchgnn.topologies import Fabric, FabricChoice, Target, WireBytes
from switchgnn.topologies.forkserver import Forkserver

Measured = runner.FinishedWorkers[list[WorkerOutcome]]
_BYTES = (
    *("bytes_up", "bytes_down", "host_bytes_up", "host_bytes_down"),
    *("host_partial_bytes_up", "host_partial_bytes_down"),
)
_REPAIRS = (
    *("features_resent", "probes", "recalls", "sums_recalled", "fetches", "features_fetched"),
    *("sums_made", "late", "repeated", "wrong", "malformed", "barriers_repeated", "marked"),
    "notices",
)
# The last step before the clean-up.
COMPARING = "comparing with the reference"
_FEATURE_BYTES = 4  # float32
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RunOptions(runner.NetworkJob):
    """What to run."""

    graph: str  # as `load_graph` takes it
    features: int | None  # the width F; None: that of the graph's own features
    rounds: int  # the number of exchanges, each with other features
    seed: int  # of the planner and of made-up features
    pace: Pace
    ignore_weights: bool = False
    # of the exchanges between hosts that the report compares with
    framing: Framing = field(default_factory=Framing)
    left: bool = False  # whether the hosts make all sums alone
    operation: Operation = Operation.SUM  # of each exchange
    hosts: HostKind = HostKind.NATIVE


@dataclass(frozen=True)
class WorkerReport:
    """One worker's part of a run."""

    worker: int
    # data packets over all rounds
    features_sent: int
    sums_received: int
    bytes_up: int
    bytes_down: int
    # bytes of copies between hosts alone
    host_bytes_up: int
    host_bytes_down: int
    # the same for copies or partial sums, whichever are fewer
    host_partial_bytes_up: int
    host_partial_bytes_down: int
    seconds: float  # from its first `done` to its last `advance`
    round_seconds: list[float]  # of each exchange
    releases: int  # slots released for it, as counted by the switch
    counters: dict[str, int]  # all its counts, by name


@dataclass(kw_only=True)
class RunReport(Report):
    """A whole run."""

    target: str
    fabric: str
    graph: str
    boundary_vertices: int
    features: int
    rounds: int
    blocks: int
    slots: int  # the aggregators of 32 numbers that a block may use
    operation: str  # of each exchange; sums, here and below, are its results
    exact: bool  # whether every fixed-point sum equals the reference
    wrong_sums: int  # the number of elements that do not
    max_error: float  # the largest absolute error of a float sum
    error_bound: float  # the largest error that fixed point allows
    # bytes on the links of all workers
    bytes_up: int
    bytes_down: int
    host_mtu: int | str  # bytes of the largest IP packet between hosts alone, or ``fragment``
    # bytes of copies between hosts alone, with acknowledgements
    host_bytes_up: int
    host_bytes_down: int
    # the same for copies or partial sums, whichever are fewer
    host_partial_bytes_up: int
    host_partial_bytes_down: int
    wires: str  # the source of the bytes, ``interfaces`` or ``sockets``
    # frames of all workers, counted by their sockets
    frames_up: int
    frames_down: int
    passes: int
    contributions: int
    table_entries: int
    plan_seconds: float
    install_seconds: float
    seconds: float  # the slowest worker's exchange time
    marked: int  # packets that the switch marked because of a long queue
    # packets by the length of the queue that they found at their port, in packets; the last element
    # also counts longer queues
    port_queue: tuple[int, ...]
    background_bytes: int  # bytes that background TCP flows delivered in that time
    # frames that a fault was injected into, by kind, on links and cables
    faults_injected: dict[str, int]
    repairs: dict[str, int]  # repaired or ignored frames of the workers, by kind
    per_worker: tuple[WorkerReport, ...]
    pcap: tuple[str, ...] = ()  # the files with the packets of the links


@dataclass(frozen=True)
class PreparedRun:
    """Everything that is known before a packet is sent."""

    program: Program
    graph: Graph
    features: Float32s  # float32[n, F] of the n vertices
    assignment: Int32s  # int32[n], the worker of each vertex
    # bool[n], the destinations that it leaves to the hosts; None: none
    left: Bools | None
    strategies: ResolvedStrategies
    manifest: Manifest
    parts: LeafSpineParts | None  # those of the plan for leaves and spines; None for a star
    seconds: float  # the time that planning took


def make_report(
    options: RunOptions,
    choice: FabricChoice,
    prepared: PreparedRun,
    measured: Measured,
    verdict: Verdict,
) -> RunReport:
    """Compare measurements with the plan."""
    forward = prepared.manifest.direction(Direction.FORWARD)
    exchanges = Exchanges(Direction.FORWARD, prepared.features.shape[1], options.rounds)
    boundary = boundary_edges(prepared.graph, prepared.assignment)
    alone = host_traffic(boundary, options.workers, [exchanges], options.framing)
    releases = releases_between(
        options.leaf_spine, options.workers, measured.before, measured.after
    )
    per_worker = _report_workers(measured, releases, alone[HOST.name], alone[HOST_PARTIAL.name])
    parts, between = prepared.parts, None
    if parts is not None:
        between = report_leaf_spine(
            parts, prepared.manifest, boundary, [exchanges], alone, done=measured
        )
    # By how much the counters of all switches together have grown.
    counters, queues = Counter[str](), []
    for old, new in zip(measured.before, measured.after, strict=True):
        counters.update(new.named())
        counters.subtract(old.named())
        queues.append(np.subtract(new.port_queue, old.port_queue))
    injected = Counter(measured.cable_faults)
    for outcome in measured.result:
        for counts in outcome.faults.values():
            injected.update(counts)
    return RunReport(
        target=choice.target.value,
        **ran_ahead(measured.ahead),
        hosts=hosts_run_as() if options.hosts is HostKind.NATIVE else "Scapy",
        fabric=choice.fabric.value,
        reason=choice.reason,
        workers=options.workers,
        graph=prepared.graph.name,
        vertices=prepared.graph.vertices,
        edges=len(prepared.graph.indices),
        boundary_vertices=forward.prediction.boundary_vertices,
        features=prepared.features.shape[1],
        rounds=options.rounds,
        blocks=len(forward.block_numbers),
        slots=options.slots,
        lanes=prepared.manifest.lanes,
        strategy=options.request.preset,
        why=tuple(prepared.strategies.because.values()),
        **strategy_names(prepared.manifest),
        operation=options.operation.value,
        exact=verdict.wrong_sums == 0,
        **shared_fields(verdict, RunReport),
        **{name: sum(getattr(each, name) for each in per_worker) for name in _BYTES},
        host_mtu=options.framing.told,
        wires="interfaces" if measured.wires else "sockets",
        frames_up=sum(outcome.traffic["frames_up"] for outcome in measured.result),
        frames_down=sum(outcome.traffic["frames_down"] for outcome in measured.result),
        passes=counters["passes"],
        contributions=counters["contributions"],
        table_entries=measured.entries,
        plan_seconds=prepared.seconds,
        install_seconds=measured.install_seconds,
        seconds=max(outcome.seconds for outcome in measured.result),
        marked=counters["marked"],
        port_queue=tuple(np.sum(queues, axis=0).tolist()),
        background_bytes=measured.background_bytes,
        faults_injected=dict(injected),
        repairs={name: sum(each.counters[name] for each in measured.result) for name in _REPAIRS},
        per_worker=per_worker,
        leaf_spine=between,
    )


def _report_workers(
    measured: Measured, releases: Sequence[int], copied: HostTraffic, partial: HostTraffic
) -> tuple[WorkerReport, ...]:
    wires = measured.wires or [
        WireBytes(each.traffic["bytes_up"], each.traffic["bytes_down"]) for each in measured.result
    ]
    return tuple(
        WorkerReport(
            worker=worker,
            features_sent=outcome.counters["features_sent"],
            sums_received=outcome.counters["sums_received"],
            bytes_up=wire.up,
            bytes_down=wire.down,
            host_bytes_up=copied.up[worker],
            host_bytes_down=copied.down[worker],
            host_partial_bytes_up=partial.up[worker],
            host_partial_bytes_down=partial.down[worker],
            releases=released,
            **shared_fields(outcome, WorkerReport),
        )
        for worker, (outcome, wire, released) in enumerate(
            zip(measured.result, wires, releases, strict=True)
        )
    )


def run_job(
    options: RunOptions,
    step: runner.StepListener,
    *,
    hold: Callable[[Fabric, RunReport], None] | None = None,
    forkserver: Forkserver | None = None,
    log_dir: Path | None = None,
    observer: runner.RunObserver = runner.NOBODY,
) -> RunReport:
    """Plan, build, install, exchange, verify, and compare measurements with the plan.

    `hold` is called with the running fabric and the report before the fabric ends.
    """
    choice = options.choose_fabric()
    with (
        recordings_in(options.pcap, options.workers, options.leaf_spine) as recordings,
        runner.workspace(step, forkserver, log_dir, observer) as work,
    ):
        _LOG.info("%s", choice.reason)
        prepared = _prepare(options, choice.target, work)
        comparison = Comparison(
            prepared.graph,
            prepared.assignment,
            prepared.features,
            rounds=options.rounds,
            folder=work.folder,
            left=prepared.left,
            operation=options.operation,
        )
        workers = _workers(options, prepared, comparison, work, recordings)
        with runner.finished(options, choice, workers, work) as done:
            work.step(COMPARING)
            report = make_report(options, choice, prepared, done, comparison.finish())
            report = replace(report, pcap=tuple(map(str, recordings.files)))
            work.logs.failed = not report.exact
            right = f"Every {report.operation} equals the reference."
            wrong = f"{Amount(report.wrong_sums):sum} differed from the reference."
            observer.done(right if report.exact else wrong, right=report.exact)
            if hold is not None:
                hold(done.fabric, report)
    return report


def _prepare(options: RunOptions, target: Target, work: runner.Workspace) -> PreparedRun:
    started = time.perf_counter()
    work.step("planning: load the graph")
    program = options.program
    graph = load_graph(options.graph, edge_weights=False if options.ignore_weights else None)
    graph = options.request.cut(graph, options.workers, options.seed)
    features = _features(graph, options)
    work.step("planning: partition the vertices over the workers")
    exchange = {features.shape[1]: 1.0}
    context, assignment = choose_lanes(
        *(options.request, graph, options.context, exchange, options.seed),
        network=options.network_on(target),
        widest=runner.widest_on(target),
    )
    strategies = resolve_strategies(options.request, graph, context)
    plan = build_resolved(
        graph,
        strategies,
        context,
        program=program.digest,
        seed=options.seed,
        assignment=assignment,
        left=np.ones(graph.vertices, dtype=np.bool_) if options.left else None,
        progress=lambda what: work.step(f"planning: {what}"),
    )
    write_plan(plan, work.folder / "plan")
    if plan.leaves_any:
        paths = [runner.schedule_file_of(work.folder, worker) for worker in range(options.workers)]
        write_edges(graph, plan, paths)
    return PreparedRun(
        program,
        graph,
        features,
        assignment=plan.assignment,
        left=plan.left(Direction.FORWARD) if plan.leaves_any else None,
        strategies=strategies,
        manifest=plan.manifest,
        parts=split_for_leaf_spine(plan, options.leaf_spine) if options.leaf_spine else None,
        seconds=time.perf_counter() - started,
    )


def _features(graph: Graph, options: RunOptions) -> Float32s:
    own = graph.features
    width = options.features or (LANES if own is None else own.shape[1])
    if width > WIDEST:
        raise SwitchGNNError(
            f"Features of {width:,} numbers are too wide: a header counts the frames of at most "
            f"{WIDEST:,}. Give --features less."
        )
    require_memory(
        f"{graph.vertices:,} features of {width:,} numbers and their sums",
        graph.vertices * width * (_FEATURE_BYTES + SUM_BYTES),
        "give --features less",
    )
    if own is not None and options.features in (None, own.shape[1]):
        return np.ascontiguousarray(own, dtype=np.float32)
    generator = np.random.default_rng(options.seed)
    return generator.standard_normal((graph.vertices, width), dtype=np.float32)


def _workers(
    options: RunOptions,
    prepared: PreparedRun,
    comparison: Comparison,
    work: runner.Workspace,
    recordings: Recordings,
) -> runner.Workers[list[WorkerOutcome]]:
    def task(config: LinkConfig) -> WorkerTask:
        path = work.folder / f"features-{config.worker}.safetensors"
        with writing(path):
            mine = {"features": prepared.features[prepared.assignment == config.worker]}
            path.write_bytes(pack_arrays(mine))
        return WorkerTask(
            config,
            features=path,
            rounds=options.rounds,
            output=comparison.output(config.worker),
            rounds_per_file=comparison.rounds_per_file,
            pace=options.pace,
            operation=options.operation,
            hosts=options.hosts,
        )

    def hear(worker: int, event: dict[str, Any]) -> None:
        if event["event"] == WRITTEN:
            comparison.written(worker)
        work.observer.event(worker, event)

    def run(fabric: Fabric, links: list[LinkConfig]) -> list[WorkerOutcome]:
        tasks, command = list(map(task, links)), worker_command("worker")
        show = partial(work.step, "exchanging")
        ends = run_workers(fabric, command, tasks, options.pace, progress=show, listen=hear)
        return list(map(WorkerOutcome.of, ends))

    return runner.Workers(
        program=prepared.program,
        parts=prepared.parts,
        transport=SWITCH.name,
        run=run,
        recordings=recordings,
        scheduled=prepared.left is not None,
    )
