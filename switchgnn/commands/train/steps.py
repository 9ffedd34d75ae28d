"""The steps of `switchgnn train`, one after another."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from switchgnn.commands.shared.live import NOBODY, RunObserver
from switchgnn.commands.shared.report import (
    LeafSpineReport,
    ran_ahead,
    report_leaf_spine,
    strategy_names,
)
from switchgnn.commands.shared.runner import (
    FinishedWorkers,
    StepListener,
    Workers,
    Workspace,
    cables_with_faults,
    finished,
    workspace,
)
from switchgnn.commands.shared.workers import (
    EventListener,
    follow_workers,
    run_workers,
    worker_command,
)
from switchgnn.commands.train.plan import (
    PreparedTraining,
    TrainJob,
    embedded_seconds,
    prepare_training,
)
from switchgnn.commands.train.report import EpochListener, Recorder, TrainReport
from switchgnn.host.direct.framing import USUAL_MTU, Framing
from switchgnn.host.host_baseline import Exchanges, host_traffic
from switchgnn.host.metrics import metrics_address
from switchgnn.host.registry import SwitchProgram
from switchgnn.host.transport import LinkConfig
from switchgnn.host.wire.native import hosts_run_as
from switchgnn.planner import Direction, boundary_edges
from switchgnn.softswitch.native.engine import Ahead
from switchgnn.topologies import Fabric, Target
from switchgnn.topologies.child import Child, temporary_files_in
from switchgnn.topologies.forkserver import Forkserver
from switchgnn.training.data.dataset import Dataset
from switchgnn.training.data.weights import told_cost
from switchgnn.training.partition import write_partitions
from switchgnn.training.worker import TrainTask

_LOG = logging.getLogger(__name__)
TRAIN_WORKER = worker_command("train-worker")


def run_training(
    job: TrainJob,
    data: Dataset,
    step: StepListener,
    on_epoch: EpochListener,
    *,
    forkserver: Forkserver,
    log_dir: Path | None = None,
    observer: RunObserver = NOBODY,
    note: Callable[[str], None] = lambda _: None,
) -> TrainReport:
    """Plan, build, install and train; `note` is called with what is worth a line before that."""
    if not job.transport.networked:
        cables_with_faults(job)
        with workspace(step, forkserver, log_dir, observer) as work:
            return _alone(job, data, work, forkserver, on_epoch)
    choice = job.choose_fabric()
    with workspace(step, forkserver, log_dir, observer) as work:
        work.step("planning", 0, 0)
        _LOG.info("%s", choice.reason)
        prepared = prepare_training(
            job, data, work.folder, lambda what: work.step(f"planning: {what}", 0, 0)
        )
        if cost := told_cost(data.graph, prepared.plan.assignment[: data.vertices], data.factors):
            note(cost)
        recorder = Recorder(job.processes, on_epoch)
        with finished(job, choice, _workers(job, prepared, recorder, work), work) as done:
            ends = done.result
        what = _what(job, data, choice.reason, done.ahead) | _planned(job, prepared)
        if choice.target is Target.BMV2 and job.transport.in_switch and prepared.parts is None:
            what["embedded_seconds"] = embedded_seconds(job, data, prepared.plan)
        between = _leaf_spine_report(job, data, prepared, done)
        wires = None if done.wires is None else [wire._asdict() for wire in done.wires]
        return recorder.report(ends, wires, leaf_spine=between, **what)


def _workers(
    job: TrainJob, prepared: PreparedTraining, recorder: Recorder, work: Workspace
) -> Workers[list[dict[str, Any]]]:
    def task(config: LinkConfig, seat: int) -> TrainTask:
        if seat:  # the first process reports on the link
            config = replace(config, metrics="", tell_every=0.0)
        return replace(
            job.task,
            config=config,
            partitions=work.folder / "partitions",
            meeting=work.folder / "meeting",
            per_machine=job.per_machine,
            seat=seat,
        )

    def train(fabric: Fabric, links: list[LinkConfig]) -> list[dict[str, Any]]:
        work.step("training", 0, 0)
        tasks = [task(link, seat) for link in links for seat in range(job.per_machine)]
        hear = _heard_by(recorder, work.observer, job.per_machine)
        return run_workers(fabric, TRAIN_WORKER, tasks, job.task.pace, listen=hear)

    return Workers(
        program=job.program,
        parts=prepared.parts,
        transport=job.task.transport,
        run=train,
        recordings=job.recordings,
        # Links also carry gradients, in packets of the usual size.
        mtu=max(USUAL_MTU, job.framing.packet_bytes if job.framing else 0),
        scheduled=prepared.scheduled,
        shows_slots=job.transport.program is SwitchProgram.SWITCHGNN and job.transport.needs_plan,
    )


def _heard_by(recorder: Recorder, observer: RunObserver, per_machine: int = 1) -> EventListener:
    def listen(worker: int, event: dict[str, Any]) -> None:
        if worker % per_machine == 0:
            observer.event(worker // per_machine, event)
        recorder(worker, event)

    return listen


def _alone(
    job: TrainJob, data: Dataset, work: Workspace, forkserver: Forkserver, on_epoch: EpochListener
) -> TrainReport:
    folder = work.folder
    work.step("planning", 0, 0)
    write_partitions(data, np.zeros(data.vertices, dtype=np.int32), folder / "partitions")
    metrics = metrics_address(job.metrics, 0) if job.metrics else ""
    config = replace(job.task.config, metrics=metrics)
    task = replace(job.task, config=config, partitions=folder / "partitions")
    child = Child(
        "Worker 0",
        TRAIN_WORKER,
        work.logs.folder / "worker-0.log",
        pipe=True,
        environment=temporary_files_in(folder),
        forkserver=forkserver,
    )
    recorder = Recorder(1, on_epoch)
    work.step("training", 0, 0)
    with work.observer.over(job.task.transport, None):
        ends = follow_workers([child], [task], task.pace, _heard_by(recorder, work.observer))
    job = replace(job, workers=1, per_machine=1)
    what = _what(job, data, "one process, without a network")
    return recorder.report(ends, None, **what, strategy=job.request.preset)


def _leaf_spine_report(
    job: TrainJob,
    data: Dataset,
    prepared: PreparedTraining,
    done: FinishedWorkers[list[dict[str, Any]]],
) -> LeafSpineReport | None:
    """Report the links between leaves and spines; plans do not predict copies of hosts."""
    if prepared.parts is None or job.transport.program is not SwitchProgram.SWITCHGNN:
        return None
    exchanges = [
        Exchanges(Direction(each["direction"]), each["width"], each["times"])
        for each in done.result[0]["exchanges"]
    ]
    assignment = prepared.plan.assignment
    boundary = boundary_edges(data.exchanged(assignment)[0], assignment)
    alone = host_traffic(boundary, job.workers, exchanges, Framing.parse(job.task.mtu))
    return report_leaf_spine(prepared.parts, prepared.plan.manifest, exchanges, alone, done)


def _what(job: TrainJob, data: Dataset, reason: str, ahead: Ahead | None = None) -> dict[str, Any]:
    return {
        "transport": job.task.transport,
        "dataset": data.name,
        "model": job.task.training.model.model.rpartition(":")[2],
        "reason": reason,
        **ran_ahead(ahead),
        "mtu": None if job.framing is None else job.framing.told,
        "bandwidth": job.bandwidth if job.transport.networked else None,
        "hosts": hosts_run_as() if job.transport.networked else None,
        "vertices": data.vertices,
        "edges": len(data.graph.indices),
        "workers": job.processes,
        "workers_per_machine": job.per_machine,
        "reduce": job.task.reduce.value if job.processes > 1 else None,
    }


def _planned(job: TrainJob, prepared: PreparedTraining) -> dict[str, Any]:
    manifest = prepared.plan.manifest
    names = strategy_names(manifest)
    if not job.transport.needs_plan:
        names = {"partition": names["partition"]}
    return {
        **names,
        "lanes": manifest.lanes if job.transport.needs_plan else None,
        "strategy": job.request.preset,
        "why": tuple(prepared.strategies.because.values()),
    }
