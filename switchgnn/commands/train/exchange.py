# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Installs a plan and trains over the network, where packets are sent and counted."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from switchgnn.commands.shared.leaf_spine_report import all_cables, partial_sums_taken
from switchgnn.commands.shared.live.onlooker import NOBODY, Onlooker, Running
from switchgnn.commands.shared.logs import log_install
from switchgnn.commands.shared.releases import naming_who_releases
from switchgnn.commands.shared.site import bank_slots_of, shares_of
from switchgnn.commands.shared.workers import EventListener, follow_workers
from switchgnn.commands.train.job import TrainJob
from switchgnn.commands.train.nursery import TRAIN_WORKER
from switchgnn.commands.train.plan import Prepared, schedule_file_of
from switchgnn.commands.train.report import Recorder
from switchgnn.controller import P4RuntimeClient, install_each, read_counters
from switchgnn.host.metrics import metrics_place
from switchgnn.host.registry import SwitchProgram
from switchgnn.topologies import BackgroundTraffic, Fabric, WireBytes, carried
from switchgnn.topologies.processes.child import Child
from switchgnn.training.worker import TrainTask

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
