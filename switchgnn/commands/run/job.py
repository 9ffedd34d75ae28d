# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of a run, one after another."""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import private_folder
from switchgnn.base.full_disk import writing
from switchgnn.base.machine import require_memory
from switchgnn.commands.run.reference import SUM_BYTES, Comparison
from switchgnn.commands.run.report import Measured, Prepared, RunOptions, RunReport, make_report
from switchgnn.commands.shared.console import naming_who_releases, releases_between
from switchgnn.commands.shared.leaf_spine import all_cables, partial_sums_taken
from switchgnn.commands.shared.onlooker import NOBODY, Onlooker, Running
from switchgnn.commands.shared.outputs import (
    Recordings,
    log_install,
    logged_steps,
    recordings_in,
    run_logs,
)
from switchgnn.commands.shared.site import bank_slots_of, faults_on_cables, make_site, shares_of
from switchgnn.commands.shared.workers import WorkerOutcome, run_workers
from switchgnn.controller import (
    Counters,
    P4RuntimeClient,
    TlsOptions,
    install_each,
    read_counters,
)
from switchgnn.host.metrics import metrics_place
from switchgnn.host.mixed import write_left_schedules
from switchgnn.host.wire.header import LANES, WIDEST
from switchgnn.host.wire.native import compile_for_hosts
from switchgnn.host.worker import WRITTEN, WorkerTask, steps_of
from switchgnn.p4src import load_program
from switchgnn.planner.chosen import build_chosen, choose_asked
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.plan.files import read_assignment, write_plan
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine
from switchgnn.planner.presets import Situation
from switchgnn.topologies import (
    BackgroundTraffic,
    Fabric,
    TlsFolder,
    WireBytes,
    build_fabric,
    carried,
    choose,
    compile_for,
    folder_for_sockets,
)
from switchgnn.topologies.processes.nursery import Nursery

# The last step; after it a run only cleans up.
COMPARING = "comparing with the reference"
# A feature is a float32.
_FEATURE_BYTES = 4

StepListener = Callable[[str, float, int], None]
_LOG = logging.getLogger(__name__)


def run_job(
    options: RunOptions,
    step: StepListener,
    *,
    hold: Callable[[Fabric, RunReport], None] | None = None,
    nursery: Nursery | None = None,
    log_dir: Path | None = None,
    onlooker: Onlooker = NOBODY,
) -> RunReport:
    """Plan, build, install, exchange and verify.

    Args:
        options: what to run.
        step: called with (name of the step, done, total; total 0 when unknown).
        hold: called with the running fabric and the report; None: the fabric ends.
        nursery: forks embedded switches and workers; None: they are started as any program.
        log_dir: as ``run_logs`` takes it.
        onlooker: hears of it.

    Returns:
        The report.

    Raises:
        SwitchGNNError: a step failed; the fabric and all files are removed.
    """
    cable_faults = faults_on_cables(options.faults, options.workers, options.leaf_spine)
    choice = choose(options.target, options.fabric, options.backend)
    step = logged_steps(_heard(step, onlooker))
    with private_folder("switchgnn-") as folder, ExitStack() as stack:
        recordings = stack.enter_context(
            recordings_in(options.pcap, options.workers, options.leaf_spine)
        )
        logs = stack.enter_context(run_logs(log_dir, folder))
        _LOG.info("%s", choice.reason)
        prepared = _prepare(options, folder, step)
        site = make_site(
            options.workers,
            options.leaf_spine,
            choice.target,
            folder=options.sockets or stack.enter_context(folder_for_sockets(folder)),
            grpc_port=options.grpc_port,
            bandwidth=options.bandwidth,
            tls=_tls_folder(options),
            backend=options.backend,
        )
        step("compiling the program", 0, 0)
        ahead = compile_for(choice.target, prepared.program.json, options.backend)
        compile_for_hosts()
        step("starting the switch" if options.leaf_spine is None else "starting the switches", 0, 0)
        with build_fabric(
            choice.fabric,
            site,
            folder,
            cable_faults=cable_faults,
            nursery=nursery,
            cable_recordings=recordings.cables,
            logs=logs.folder,
        ) as fabric:
            comparison = Comparison(
                prepared.graph,
                read_assignment(prepared.plan),
                prepared.features,
                rounds=options.rounds,
                folder=folder,
                left=prepared.left,
            )
            measured = _install_and_exchange(
                options, prepared, fabric, recordings, comparison, step, onlooker
            )
            step(COMPARING, 0, 0)
            verdict = comparison.finish()
            report = make_report(options, choice, ahead, prepared, measured, verdict)
            report = replace(report, pcap=tuple(map(str, recordings.files)))
            logs.failed = not report.exact
            onlooker.done(_verdict(report), right=report.exact)
            if hold is not None:
                hold(fabric, report)
    return report


def _heard(step: StepListener, onlooker: Onlooker) -> StepListener:
    def listen(name: str, done: float, total: int) -> None:
        onlooker.step(name)
        step(name, done, total)

    return listen


def _verdict(report: RunReport) -> str:
    if report.exact:
        return "Every sum equals the reference."
    return f"{report.wrong_sums:,} sums differ from the reference."


def _tls_folder(options: RunOptions) -> TlsFolder | None:
    if options.tls is None:
        return None
    folder = TlsFolder(options.tls.absolute())
    folder.check()
    return folder


def _prepare(options: RunOptions, folder: Path, step: StepListener) -> Prepared:
    started = time.perf_counter()
    step("planning: load the graph", 0, 0)
    program = load_program()
    graph = load_graph(options.graph)
    features = _features(graph, options)
    situation = Situation(
        options.workers,
        options.slots,
        leaf_spine=options.leaf_spine,
        lanes=options.asked.lanes_for([features.shape[1]], options.slots),
    )
    strategies = choose_asked(options.asked, graph, situation)
    plan = build_chosen(
        graph,
        strategies,
        situation,
        program=program.digest,
        seed=options.seed,
        assignment=options.asked.load_assignment(),
        progress=lambda what: step(f"planning: {what}", 0, 0),
    )
    write_plan(plan, folder / "plan")
    if plan.leaves_any:
        paths = [_schedule_file(folder, worker) for worker in range(options.workers)]
        write_left_schedules(graph, plan, paths)
    parts = split_for_leaf_spine(plan, options.leaf_spine) if options.leaf_spine else None
    seconds = time.perf_counter() - started
    return Prepared(
        program,
        graph,
        features,
        plan=folder / "plan",
        left=plan.left(Direction.FORWARD) if plan.leaves_any else None,
        strategies=strategies,
        manifest=plan.manifest,
        parts=parts,
        seconds=seconds,
    )


def _schedule_file(folder: Path, worker: int) -> Path:
    """Return the file of what a worker sends to other hosts, where the plan leaves them any."""
    return folder / f"schedule-{worker}.npz"


def _features(graph: Graph, options: RunOptions) -> NDArray[np.float32]:
    """Return the graph's own features if their width is asked for, or seeded ones."""
    own = graph.features
    width = options.features or (LANES if own is None else own.shape[1])
    _check_size(graph.vertices, width)
    if own is not None and options.features in (None, own.shape[1]):
        return np.ascontiguousarray(own, dtype=np.float32)
    generator = np.random.default_rng(options.seed)
    return generator.standard_normal((graph.vertices, width), dtype=np.float32)


def _check_size(vertices: int, width: int) -> None:
    """Check that features and the sums of a round have room."""
    if width > WIDEST:
        raise SwitchGNNError(
            f"Features of {width:,} numbers are too wide: a header counts the frames of at most "
            f"{WIDEST:,}. Give --features less."
        )
    require_memory(
        f"{vertices:,} features of {width:,} numbers and their sums",
        vertices * width * (_FEATURE_BYTES + SUM_BYTES),
        "give --features less",
    )


def _install_and_exchange(
    options: RunOptions,
    prepared: Prepared,
    fabric: Fabric,
    recordings: Recordings,
    comparison: Comparison,
    step: StepListener,
    onlooker: Onlooker,
) -> Measured:
    def hear(worker: int, event: dict[str, Any]) -> None:
        if event["event"] == WRITTEN:
            comparison.written(worker)
        onlooker.event(worker, event)

    tls = fabric.site.tls
    credentials = TlsOptions(tls["ca"], tls["controller"], tls["controller-key"]) if tls else None
    started = time.perf_counter()
    with ExitStack() as stack:
        clients = [
            stack.enter_context(P4RuntimeClient(switch.grpc_address, tls=credentials))
            for switch in fabric.site.switches
        ]
        shares = shares_of(prepared.plan, prepared.parts, fabric.site, clients)
        report = install_each(
            shares,
            program=prepared.program,
            ecn_threshold=options.ecn_threshold,
            new_session=True,
            progress=lambda _address, done, total: step("installing", done, total),
        )
        log_install(report)
        install_seconds = time.perf_counter() - started
        tasks = [
            replace(task, tell_every=onlooker.tell_every)
            for task in _tasks(
                options, prepared, fabric, recordings, comparison, session=report.session
            )
        ]
        with BackgroundTraffic(fabric, options.background) as background:
            before = [read_counters(client) for client in clients]
            wire_before, cables_before = fabric.wire_bytes(), fabric.cable_bytes()
            foreign = background.received_bytes()
            running = Running(
                "switch",
                fabric,
                credentials,
                bank_slots_of(shares),
                steps_of(prepared.manifest, prepared.features.shape[1], options.rounds),
            )
            with (
                onlooker.over(running),
                naming_who_releases(clients, options.leaf_spine, options.workers),
            ):
                outcomes = run_workers(
                    fabric,
                    tasks,
                    lambda done, total: step("exchanging", done, total),
                    listen=hear,
                )
            foreign = background.received_bytes() - foreign
            wire_after, cables_after = fabric.wire_bytes(), fabric.cable_bytes()
            after = [read_counters(client) for client in clients]
            cable_faults = fabric.cable_injected()
    if options.background:
        # The interfaces would count the background flows as well.
        wire_before = wire_after = cables_before = None
    wire, wires = _wire_bytes(outcomes, wire_before, wire_after)
    queues = [
        [late - early for early, late in zip(old.port_queue, new.port_queue, strict=True)]
        for old, new in zip(before, after, strict=True)
    ]
    return Measured(
        outcomes=outcomes,
        wire=wire,
        wires=wires,
        counters=_grown(before, after),
        releases=releases_between(options.leaf_spine, options.workers, before, after),
        port_queue=tuple(map(sum, zip(*queues, strict=True))),
        background_bytes=foreign,
        entries=sum(sum(switch.entries.values()) for switch in report.switches),
        install_seconds=install_seconds,
        partial_sums=partial_sums_taken(options.leaf_spine, before, after),
        cables=all_cables(cables_before, cables_after),
        cable_faults=cable_faults,
    )


def _grown(before: Sequence[Counters], after: Sequence[Counters]) -> dict[str, int]:
    """Return by how much the counters of all switches together have grown."""
    grown: dict[str, int] = {}
    for old, new in zip(before, after, strict=True):
        for name, number in new.named().items():
            grown[name] = grown.get(name, 0) + number - old.named()[name]
    return grown


def _wire_bytes(
    outcomes: list[WorkerOutcome],
    before: list[WireBytes] | None,
    after: list[WireBytes] | None,
) -> tuple[list[WireBytes], str]:
    counted = carried(before, after)
    if counted is not None:
        return counted, "interfaces"
    heard = [
        WireBytes(outcome.traffic["bytes_up"], outcome.traffic["bytes_down"])
        for outcome in outcomes
    ]
    return heard, "sockets"


def _tasks(
    options: RunOptions,
    prepared: Prepared,
    fabric: Fabric,
    recordings: Recordings,
    comparison: Comparison,
    *,
    session: int,
) -> list[WorkerTask]:
    assignment = read_assignment(prepared.plan)
    tasks = []
    for worker in range(fabric.site.workers):
        path = fabric.folder / f"features-{worker}.npy"
        with writing(path):
            np.save(path, prepared.features[assignment == worker])
        tasks.append(
            WorkerTask(
                plan=prepared.plan,
                worker=worker,
                session=session,
                link=fabric.worker_link(worker),
                addresses=fabric.site.addresses(worker),
                features=path,
                rounds=options.rounds,
                output=comparison.output(worker),
                rounds_per_file=comparison.rounds_per_file,
                pace=options.pace,
                faults=options.faults,
                recording=recordings.of_worker(worker),
                metrics=metrics_place(options.metrics, worker) if options.metrics else "",
                schedule=None if prepared.left is None else _schedule_file(fabric.folder, worker),
                stations=tuple(map(fabric.site.station, range(fabric.site.workers))),
            )
        )
    return tasks
