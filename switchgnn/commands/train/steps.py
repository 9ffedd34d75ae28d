# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of `switchgnn train`, one after another."""

import importlib
import logging
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import private_folder
from switchgnn.base.machine import how_to_install, python_program
from switchgnn.commands.shared.console import naming_who_releases
from switchgnn.commands.shared.leaf_spine import (
    LeafSpineReport,
    all_cables,
    partial_sums_taken,
    report_leaf_spine,
)
from switchgnn.commands.shared.onlooker import NOBODY, Onlooker, Running
from switchgnn.commands.shared.outputs import log_install, logged_steps, run_logs
from switchgnn.commands.shared.site import bank_slots_of, faults_on_cables, make_site, shares_of
from switchgnn.commands.shared.workers import EventListener, follow_workers, fork_nursery
from switchgnn.commands.train.job import TrainJob
from switchgnn.commands.train.plan import Prepared, prepare_training, schedule_file_of
from switchgnn.commands.train.report import EpochListener, Recorder, TrainReport
from switchgnn.controller import P4RuntimeClient, install_each, read_counters
from switchgnn.host.alone import Exchanges, host_traffic
from switchgnn.host.direct.framing import USUAL_MTU, Framing
from switchgnn.host.metrics import metrics_place
from switchgnn.host.registry import SwitchProgram
from switchgnn.host.wire.native import compile_for_hosts, hosts_run_as
from switchgnn.planner.chosen import STRATEGY_NAMES, strategy_names
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.topologies import (
    Ahead,
    BackgroundTraffic,
    Fabric,
    WireBytes,
    build_fabric,
    carried,
    choose,
    compile_for,
    folder_for_sockets,
)
from switchgnn.topologies.processes.child import Child, temporary_files_in
from switchgnn.topologies.processes.nursery import Nursery
from switchgnn.training.data.dataset import Dataset
from switchgnn.training.partition import write_partitions
from switchgnn.training.worker import TrainTask

# Threads of OpenMP that wait for each other would spin, and switch and workers share the cores.
# https://gcc.gnu.org/onlinedocs/libgomp/OMP_005fWAIT_005fPOLICY.html
ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE"}
TRAIN_WORKER = python_program("switchgnn.commands", "train-worker")


def training_nursery() -> Nursery:
    """Import PyTorch; return a nursery, not yet started, that is forked from this process.

    It must be started before PyTorch computes anything here: a process that is forked from one
    with threads of OpenMP waits for them without end.
    https://github.com/pytorch/pytorch/issues/17199

    Raises:
        SwitchGNNError: PyTorch or PyTorch Geometric is not installed.
    """
    os.environ.update(ENVIRONMENT)
    try:
        importlib.import_module("switchgnn.training.worker")
    except ImportError as error:
        raise SwitchGNNError(
            f"Training needs PyTorch and PyTorch Geometric, but {error.name} is missing: "
            f"{how_to_install('training')}."
        ) from error
    return fork_nursery()


StepListener = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Measured:
    """The events of the workers and the counts of the switches.

    Attributes:
        finished: the last event of each worker.
        wires: what the interfaces of the workers counted, or None.
        cables: what the interfaces between switches counted, or None.
        partial_sums: partial sums that the spines have taken.
        cable_faults: frames that a fault was injected into between switches, by kind.
    """

    finished: list[dict[str, Any]]
    wires: list[WireBytes] | None
    cables: WireBytes | None
    partial_sums: int
    cable_faults: dict[str, int]


def install_and_train(
    job: TrainJob,
    fabric: Fabric,
    prepared: Prepared,
    recorder: Recorder,
    step: StepListener,
    *,
    onlooker: Onlooker = NOBODY,
) -> Measured:
    """Install the plan of the fabric's folder, and let all workers train.

    Args:
        job: what to do.
        fabric: the running fabric; its folder has what ``prepare_training`` wrote.
        prepared: the same, as it is in memory.
        recorder: takes the events of the workers.
        step: called with (name of the step, done, total).
        onlooker: hears of it.

    Returns:
        What was measured.

    Raises:
        SwitchGNNError: the installation or a worker failed.
    """
    with ExitStack() as stack:
        clients = [
            stack.enter_context(P4RuntimeClient(switch.grpc_address))
            for switch in fabric.site.switches
        ]
        shares = shares_of(fabric.folder / "plan", prepared.parts, fabric.site, clients)
        report = install_each(
            shares,
            program=job.program,
            ecn_threshold=job.ecn_threshold,
            new_session=True,
            progress=lambda _address, done, total: step("installing", done, total),
        )
        log_install(report)
        with BackgroundTraffic(fabric, job.background):
            tasks = [
                replace(
                    _task(job, prepared, worker, fabric, report.session),
                    tell_every=onlooker.tell_every,
                )
                for worker in range(job.workers)
            ]
            counters = [read_counters(client) for client in clients]
            wires, cables = fabric.wire_bytes(), fabric.cable_bytes()
            plain = job.transport.program is SwitchProgram.SWITCHGNN and job.transport.needs_plan
            slots = bank_slots_of(shares) if plain else ()
            with (
                onlooker.over(Running(job.task.transport, fabric, bank_slots=slots)),
                naming_who_releases(clients, job.leaf_spine, job.workers),
            ):
                listen = heard_by(recorder, onlooker)
                step("training", 0, 0)
                finished = follow_workers(_children(fabric), tasks, listen)
            return Measured(
                finished=finished,
                wires=carried(wires, fabric.wire_bytes()),
                cables=all_cables(cables, fabric.cable_bytes()),
                partial_sums=partial_sums_taken(
                    job.leaf_spine, counters, [read_counters(client) for client in clients]
                ),
                cable_faults=fabric.cable_injected(),
            )


def heard_by(recorder: Recorder, onlooker: Onlooker) -> EventListener:
    """Return what hands the events of workers to both."""

    def listen(worker: int, event: dict[str, Any]) -> None:
        onlooker.event(worker, event)
        recorder(worker, event)

    return listen


def _task(
    job: TrainJob, prepared: Prepared, worker: int, fabric: Fabric, session: int
) -> TrainTask:
    site, folder = fabric.site, fabric.folder
    return replace(
        job.task,
        worker=worker,
        partitions=folder / "partitions",
        link=fabric.worker_link(worker),
        addresses=site.addresses(worker),
        plan=folder / "plan" if job.transport.needs_plan else None,
        session=session,
        schedule=schedule_file_of(folder, worker) if prepared.scheduled else None,
        stations=tuple(map(site.station, range(site.workers))),
        recording=job.recordings.of_worker(worker),
        meeting=folder / "meeting",
        metrics=metrics_place(job.metrics, worker) if job.metrics else "",
    )


def _children(fabric: Fabric) -> list[Child]:
    """Return each worker's process, with variables as torchrun sets them; they meet in a file."""
    workers = fabric.site.workers
    children: list[Child] = []
    for worker in range(workers):
        variables = {
            "RANK": str(worker),
            "WORLD_SIZE": str(workers),
            "LOCAL_RANK": str(worker),
        }
        if fabric.workers_have_hosts:
            # Without this, gloo takes the address of the machine's name.
            variables["GLOO_SOCKET_IFNAME"] = fabric.worker_link(worker).removeprefix("eth:")
        else:
            variables["GLOO_SOCKET_IFNAME"] = "lo"
        children.append(fabric.worker_child(worker, TRAIN_WORKER, environment=variables))
    return children


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
