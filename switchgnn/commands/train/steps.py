# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of `switchgnn train`, one after another."""

import logging
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from switchgnn.base.files import private_folder
from switchgnn.commands.shared.leaf_spine_report import LeafSpineReport, report_leaf_spine
from switchgnn.commands.shared.live.onlooker import NOBODY, Onlooker
from switchgnn.commands.shared.logs import logged_steps, run_logs
from switchgnn.commands.shared.site import faults_on_cables, make_site
from switchgnn.commands.shared.workers import follow_workers
from switchgnn.commands.train.exchange import (
    Measured,
    StepListener,
    heard_by,
    install_and_train,
)
from switchgnn.commands.train.job import TrainJob
from switchgnn.commands.train.nursery import TRAIN_WORKER
from switchgnn.commands.train.plan import Prepared, prepare_training
from switchgnn.commands.train.report import EpochListener, Recorder, TrainReport
from switchgnn.host.alone import Exchanges, host_traffic
from switchgnn.host.direct.framing import USUAL_MTU, Framing
from switchgnn.host.metrics import metrics_place
from switchgnn.host.registry import SwitchProgram
from switchgnn.host.wire.native import compile_for_hosts, hosts_run_as
from switchgnn.planner.chosen import STRATEGY_NAMES, strategy_names
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.topologies import Ahead, build_fabric, choose, compile_for, folder_for_sockets
from switchgnn.topologies.processes.child import temporary_files_in
from switchgnn.topologies.processes.nursery import Nursery
from switchgnn.training.data.dataset import Dataset
from switchgnn.training.partition import write_partitions

_LOG = logging.getLogger(__name__)
_NO_PLAN: dict[str, Any] = dict.fromkeys(STRATEGY_NAMES)


def run_training(
    job: TrainJob,
    data: Dataset,
    step: StepListener,
    on_epoch: EpochListener,
    *,
    nursery: Nursery,
    log_dir: Path | None = None,
    onlooker: Onlooker = NOBODY,
) -> TrainReport:
    """Plan, build, install and train.

    Args:
        job: what to do.
        data: the data set to train on.
        step: called with (name of the step, done, total; total 0 when unknown).
        on_epoch: called after each epoch.
        nursery: forks the workers of this training and perhaps of others.
        log_dir: as ``run_logs`` takes it.
        onlooker: hears of it.

    Returns:
        What was planned, measured and trained.

    Raises:
        SwitchGNNError: a step failed; the fabric and all files are removed.
    """
    cable_faults = faults_on_cables(job.task.faults, job.workers, job.leaf_spine)
    step = logged_steps(_heard(step, onlooker))
    with ExitStack() as stack:
        folder = stack.enter_context(private_folder("switchgnn-"))
        logs = stack.enter_context(run_logs(log_dir, folder)).folder
        step("planning", 0, 0)
        if not job.transport.networked:
            return _alone(job, data, nursery, folder, logs, step, on_epoch, onlooker)
        choice = choose(job.target, job.fabric, job.backend)
        _LOG.info("%s", choice.reason)
        prepared = prepare_training(job, data, folder, lambda what: step(f"planning: {what}", 0, 0))
        site = make_site(
            job.workers,
            job.leaf_spine,
            choice.target,
            folder=stack.enter_context(folder_for_sockets(folder)),
            bandwidth=job.bandwidth,
            backend=job.backend,
            mtu=_mtu_of_links(job.framing),
        )
        step("compiling the program", 0, 0)
        ahead = compile_for(choice.target, job.program.json, job.backend)
        compile_for_hosts()
        step("starting the switch" if job.leaf_spine is None else "starting the switches", 0, 0)
        with build_fabric(
            choice.fabric,
            site,
            folder,
            cable_faults=cable_faults,
            nursery=nursery,
            cable_recordings=job.recordings.cables,
            logs=logs,
        ) as fabric:
            recorder = Recorder(job.workers, on_epoch)
            measured = install_and_train(job, fabric, prepared, recorder, step, onlooker=onlooker)
        what = _what(job, data, choice.reason, ahead) | _planned(job, prepared)
        between = _leaf_spine_report(job, data, prepared, measured)
        wires = None if measured.wires is None else [wire._asdict() for wire in measured.wires]
        return recorder.report(measured.finished, wires, leaf_spine=between, **what)


def _mtu_of_links(framing: Framing | None) -> int:
    """Return the MTU of links that carry such frames, and gradients besides."""
    return max(USUAL_MTU, framing.packet_bytes if framing else 0)


def _heard(step: StepListener, onlooker: Onlooker) -> StepListener:
    def listen(name: str, done: int, total: int) -> None:
        onlooker.step(name)
        step(name, done, total)

    return listen


def _alone(
    job: TrainJob,
    data: Dataset,
    nursery: Nursery,
    folder: Path,
    logs: Path,
    step: StepListener,
    on_epoch: EpochListener,
    onlooker: Onlooker,
) -> TrainReport:
    """Train in one process, without a network."""
    write_partitions(data, np.zeros(data.vertices, dtype=np.int32), folder / "partitions")
    metrics = metrics_place(job.metrics, 0) if job.metrics else ""
    task = replace(job.task, worker=0, partitions=folder / "partitions", metrics=metrics)
    child = nursery.child(
        "Worker 0",
        TRAIN_WORKER,
        logs / "worker-0.log",
        pipe=True,
        environment=temporary_files_in(folder),
    )
    recorder = Recorder(1, on_epoch)
    step("training", 0, 0)
    with onlooker.over_one_process(job.task.transport):
        finished = follow_workers([child], [task], heard_by(recorder, onlooker))
    what = _what(replace(job, workers=1), data, "one process, without a network")
    return recorder.report(finished, None, **what, **_NO_PLAN, strategy=job.asked.preset, why=[])


def _leaf_spine_report(
    job: TrainJob, data: Dataset, prepared: Prepared, measured: Measured
) -> LeafSpineReport | None:
    """Return what passed between leaves and spines; plans do not predict copies of hosts."""
    if prepared.parts is None or job.transport.program is not SwitchProgram.SWITCHGNN:
        return None
    exchanges = [
        Exchanges(Direction(each["direction"]), each["width"], each["times"])
        for each in measured.finished[0]["exchanges"]
    ]
    boundary = boundary_edges(data.graph, prepared.assignment)
    framing = Framing.parse(job.task.mtu)
    return report_leaf_spine(
        prepared.parts,
        prepared.manifest,
        exchanges,
        alone=host_traffic(boundary, job.workers, exchanges, framing),
        partial_sums=measured.partial_sums,
        cables=measured.cables,
        faults_injected=measured.cable_faults,
    )


def _what(job: TrainJob, data: Dataset, reason: str, ahead: Ahead | None = None) -> dict[str, Any]:
    """Return the first fields of a report."""
    return {
        "transport": job.task.transport,
        "dataset": data.name,
        "model": job.task.training.model.model.rpartition(":")[2],
        "reason": reason,
        "backend": None if ahead is None else ahead.backend.value,
        "backend_reason": None if ahead is None else ahead.reason,
        "compile_seconds": None if ahead is None else ahead.seconds,
        "mtu": None if job.framing is None else job.framing.told,
        "bandwidth": job.bandwidth if job.transport.networked else None,
        "hosts": hosts_run_as() if job.transport.networked else None,
        "vertices": data.vertices,
        "edges": len(data.graph.indices),
        "workers": job.workers,
    }


def _planned(job: TrainJob, prepared: Prepared) -> dict[str, Any]:
    """Return the strategies for a report: None for those that did not apply."""
    names = strategy_names(prepared.manifest)
    if not job.transport.needs_plan:
        names = _NO_PLAN | {"partition": names["partition"]}
    return {
        **names,
        "lanes": prepared.manifest.lanes if job.transport.needs_plan else None,
        "strategy": job.asked.preset,
        "why": list(prepared.strategies.because.values()),
    }
