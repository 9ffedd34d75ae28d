"""The steps of a run, one after another."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from switchgnn.base.array_types import Float32s
from switchgnn.base.arrays import pack_arrays
from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.full_disk import writing
from switchgnn.base.machine import require_memory
from switchgnn.commands.run.reference import SUM_BYTES, Comparison
from switchgnn.commands.run.report import PreparedRun, RunOptions, RunReport, make_report
from switchgnn.commands.shared.live import NOBODY, RunObserver
from switchgnn.commands.shared.outputs import Recordings, recordings_in
from switchgnn.commands.shared.runner import (
    StepListener,
    Workers,
    Workspace,
    finished,
    schedule_file_of,
    workspace,
)
from switchgnn.commands.shared.workers import WorkerOutcome, run_workers, worker_command
from switchgnn.host.hybrid import write_left_schedules
from switchgnn.host.registry import SWITCH
from switchgnn.host.transport import LinkConfig
from switchgnn.host.wire.header import LANES, WIDEST
from switchgnn.host.worker import WRITTEN, WorkerTask
from switchgnn.p4src import load_program
from switchgnn.planner.build import build_resolved
from switchgnn.planner.costs.forecast import choose_lanes
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.plan.files import write_plan
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine
from switchgnn.planner.presets import PlanContext, resolve_strategies
from switchgnn.topologies import Fabric
from switchgnn.topologies.forkserver import Forkserver

# The last step before the clean-up.
COMPARING = "comparing with the reference"
_FEATURE_BYTES = 4  # float32

_LOG = logging.getLogger(__name__)


def run_job(
    options: RunOptions,
    step: StepListener,
    *,
    hold: Callable[[Fabric, RunReport], None] | None = None,
    forkserver: Forkserver | None = None,
    log_dir: Path | None = None,
    observer: RunObserver = NOBODY,
) -> RunReport:
    """Plan, build, install, exchange and verify.

    Args:
        options: what to run.
        step: called with (name of the step, done, total; total 0 when unknown).
        hold: called with the running fabric and the report before the fabric ends.
        forkserver: forks switches and workers; None: each starts as a program.
        log_dir: as ``run_logs`` takes it.
        observer: observes the run.

    Returns:
        The comparison of measurements with plan and reference.

    Raises:
        SwitchGNNError: a step failed; the fabric and all files are removed.
    """
    choice = options.choose_fabric()
    with (
        recordings_in(options.pcap, options.workers, options.leaf_spine) as recordings,
        workspace(step, forkserver, log_dir, observer) as work,
    ):
        _LOG.info("%s", choice.reason)
        prepared = _prepare(options, work.folder, work.step)
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
        with finished(options, choice, workers, work) as done:
            work.step(COMPARING, 0, 0)
            report = make_report(options, choice, prepared, done, comparison.finish())
            report = replace(report, pcap=tuple(map(str, recordings.files)))
            work.logs.failed = not report.exact
            right = f"Every {report.operation} equals the reference."
            wrong = f"{report.wrong_sums:,} sums differ from the reference."
            observer.done(right if report.exact else wrong, right=report.exact)
            if hold is not None:
                hold(done.fabric, report)
    return report


def _prepare(options: RunOptions, folder: Path, step: StepListener) -> PreparedRun:
    started = time.perf_counter()
    step("planning: load the graph", 0, 0)
    program = load_program()
    graph = load_graph(options.graph, edge_weights=False if options.ignore_weights else None)
    features = _features(graph, options)
    step("planning: partition the vertices over the workers", 0, 0)
    context = PlanContext(options.workers, options.slots, leaf_spine=options.leaf_spine)
    exchange = {features.shape[1]: 1.0}
    context, assignment = choose_lanes(options.request, graph, context, exchange, options.seed)
    strategies = resolve_strategies(options.request, graph, context)
    plan = build_resolved(
        graph,
        strategies,
        context,
        program=program.digest,
        seed=options.seed,
        assignment=assignment,
        left=np.ones(graph.vertices, dtype=np.bool_) if options.left else None,
        progress=lambda what: step(f"planning: {what}", 0, 0),
    )
    write_plan(plan, folder / "plan")
    if plan.leaves_any:
        paths = [schedule_file_of(folder, worker) for worker in range(options.workers)]
        write_left_schedules(graph, plan, paths)
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
    """Return the graph's own features if they have the width that was asked for, or seeded ones."""
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
    work: Workspace,
    recordings: Recordings,
) -> Workers[list[WorkerOutcome]]:
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

    return Workers(
        program=prepared.program,
        parts=prepared.parts,
        transport=SWITCH.name,
        run=run,
        recordings=recordings,
        scheduled=prepared.left is not None,
    )
