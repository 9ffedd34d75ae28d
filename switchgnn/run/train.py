# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of `switchgnn train`, one after another."""

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from switchgnn.controller import P4RuntimeClient, install_each
from switchgnn.host.addresses import Addresses
from switchgnn.host.pace import Pace
from switchgnn.p4src import Program, load_program, load_strawman
from switchgnn.planner.chosen import (
    STRATEGY_NAMES,
    Asked,
    build_chosen,
    choose_asked,
    strategy_names,
)
from switchgnn.planner.files import write_plan
from switchgnn.planner.manifest import Manifest
from switchgnn.planner.presets import PAPER, Situation
from switchgnn.planner.presets import Choice as Strategies
from switchgnn.planner.presets import choose as choose_strategies
from switchgnn.planner.racks import Racks
from switchgnn.planner.tiers import Tiers, make_tiers
from switchgnn.run.addresses import worker_addresses
from switchgnn.run.site import faults_on_cables, make_site, shares_of
from switchgnn.run.train_report import EpochListener, Recorder, TrainReport
from switchgnn.run.workers import follow_workers
from switchgnn.topologies import (
    BackgroundTraffic,
    Fabric,
    build_fabric,
    choose,
    free_tcp_port,
)
from switchgnn.topologies.child import Child
from switchgnn.training.dataset import Dataset
from switchgnn.training.partition_files import write_partitions
from switchgnn.training.worker import G3, HOST, HOST_PARTIAL, LOCAL, STRAWMAN, SWITCH, TrainTask
from switchgnn.transports import (
    binned_schedules,
    copy_schedules,
    partial_schedules,
    write_binned_schedule,
    write_schedule,
)

_HOST = "127.0.0.1"
# Threads of OpenMP that wait for each other would spin, and switch and workers share the cores.
# https://gcc.gnu.org/onlinedocs/libgomp/OMP_005fWAIT_005fPOLICY.html
_PATIENT = "OMP_WAIT_POLICY=PASSIVE"
_COMMAND = ("env", _PATIENT, sys.executable, "-m", "switchgnn.cli", "train-worker")
_DISTRIBUTED_PORT = 29500
_NO_PLAN: dict[str, Any] = dict.fromkeys(STRATEGY_NAMES)

StepListener = Callable[[str, int, int], None]


@dataclass(frozen=True)
class TrainJob:
    """What to train, where, and over what.

    Attributes:
        task: what is the same for all workers; its worker, link, addresses and files are
            filled in.
        workers: their number.
        slots: aggregators that a block may use.
        racks: the leaves that the workers hang on, and spines; None: a star around one switch.
        target, fabric: a choice or ``auto``.
        bandwidth: Mbit/s per link, or None.
        ecn_threshold: queue length in packets from which packets are marked.
        background: TCP flows from each worker to the next.
        asked: the strategies to plan with. Over transports other than ``switch`` only the
            partition counts, and for ``g3`` it is G3's unless another is asked for by name.
    """

    task: TrainTask
    workers: int
    slots: int
    target: str
    fabric: str
    bandwidth: float | None
    ecn_threshold: int
    background: int = 0
    asked: Asked = field(default_factory=Asked)
    racks: Racks | None = None


def run_training(
    job: TrainJob, data: Dataset, step: StepListener, on_epoch: EpochListener
) -> TrainReport:
    """Plan, build, install, train.

    Args:
        job: what to do.
        data: what to train on.
        step: called with (name of the step, done, total; total 0 when unknown).
        on_epoch: called after each epoch.

    Raises:
        SwitchGNNError: with a sentence for the user; nothing is left behind.
    """
    cable_faults = faults_on_cables(job.task.faults, job.workers, job.racks)
    with TemporaryDirectory(prefix="switchgnn-") as name:
        folder = Path(name)
        step("planning", 0, 0)
        if job.task.transport == LOCAL:
            return _alone(job, data, folder, on_epoch)
        choice = choose(job.target, job.fabric)
        strategies = _strategies(job, data)
        manifest, tiers = _prepare(job, data, strategies, folder, step)
        site = make_site(job.workers, job.racks, choice.target, bandwidth=job.bandwidth)
        step("starting the switch" if job.racks is None else "starting the switches", 0, 0)
        with build_fabric(choice.fabric, site, folder, cable_faults=cable_faults) as fabric:
            with ExitStack() as stack:
                clients = [
                    stack.enter_context(P4RuntimeClient(switch.grpc_address))
                    for switch in site.switches
                ]
                install_each(
                    shares_of(folder / "plan", tiers, site, clients),
                    program=_program(job),
                    ecn_threshold=job.ecn_threshold,
                    new_session=True,
                    progress=lambda _address, done, total: step("installing", done, total),
                )
            with BackgroundTraffic(fabric, job.background):
                recorder = Recorder(job.workers, on_epoch)
                finished, wires = _train(job, fabric, recorder)
        what = _what(job, data, choice.reason) | _planned(job, strategies, manifest)
        return recorder.report(finished, wires, **what)


def _alone(job: TrainJob, data: Dataset, folder: Path, on_epoch: EpochListener) -> TrainReport:
    """Train in one process, without a network."""
    write_partitions(data, np.zeros(data.vertices, dtype=np.int32), folder / "partitions")
    task = replace(job.task, worker=0, partitions=folder / "partitions")

    def child(worker: int, command: Sequence[str]) -> Child:
        return Child(f"Worker {worker}", command, folder / f"worker-{worker}.log", pipe=True)

    recorder = Recorder(1, on_epoch)
    finished = follow_workers(child, [task], [_COMMAND], recorder)
    what = _what(replace(job, workers=1), data, "one process, without a network")
    return recorder.report(finished, None, **what, **_NO_PLAN, strategy=job.asked.preset, why=[])


def _strategies(job: TrainJob, data: Dataset) -> Strategies:
    """What the plan is made with: all that is asked for, or nothing of it but the partition."""
    situation, asked, transport = _situation(job), job.asked, job.task.transport
    if transport == G3 and asked.partition is None and asked.assignment is None:
        asked = replace(asked, partition=G3)
    chosen = choose_asked(asked, data.graph, situation)
    if transport == SWITCH:
        return chosen
    plain = choose_strategies(PAPER, data.graph, situation)
    plain = replace(plain, partition=chosen.partition, because={})
    return replace(plain, blocks=STRAWMAN, order="random") if transport == STRAWMAN else plain


def _prepare(
    job: TrainJob, data: Dataset, strategies: Strategies, folder: Path, step: StepListener
) -> tuple[Manifest, Tiers | None]:
    """Write the plan, the partitions and the schedules; share the plan out to the racks."""
    plan = build_chosen(
        data.graph,
        strategies,
        _situation(job),
        program=_program(job).digest,
        seed=job.task.options.seed,
        directions="both",
        assignment=job.asked.load_assignment(),
        progress=lambda what: step(f"planning: {what}", 0, 0),
    )
    write_plan(plan, folder / "plan")
    write_partitions(data, plan.assignment, folder / "partitions")
    schedules = {HOST: copy_schedules, HOST_PARTIAL: partial_schedules}.get(job.task.transport)
    if schedules is not None:
        for worker, schedule in enumerate(schedules(data.graph, plan.assignment, job.workers)):
            write_schedule(schedule, _schedule(folder, worker))
    if job.task.transport == G3:
        binned = binned_schedules(data.graph, plan.assignment, job.workers)
        for worker, both in enumerate(binned):
            write_binned_schedule(both, _schedule(folder, worker))
    return plan.manifest, make_tiers(plan, job.racks) if job.racks else None


def _situation(job: TrainJob) -> Situation:
    return Situation(job.workers, job.slots, racks=job.racks)


def _program(job: TrainJob) -> Program:
    return load_strawman() if job.task.transport == STRAWMAN else load_program()


def _schedule(folder: Path, worker: int) -> Path:
    return folder / f"schedule-{worker}.npz"


def _train(
    job: TrainJob, fabric: Fabric, recorder: Recorder
) -> tuple[list[dict[str, Any]], list[dict[str, int]] | None]:
    """Return the last word of each worker, and what the interfaces counted, if they did."""
    tasks = [_task(job, worker, fabric) for worker in range(job.workers)]
    before = fabric.wire_bytes()
    finished = follow_workers(fabric.worker_child, tasks, _commands(fabric), recorder)
    after = fabric.wire_bytes()
    wires = None
    if before is not None and after is not None:
        wires = [
            {"up": late.up - early.up, "down": late.down - early.down}
            for early, late in zip(before, after, strict=True)
        ]
    return finished, wires


def _what(job: TrainJob, data: Dataset, reason: str) -> dict[str, Any]:
    """Return what a report begins with."""
    return {
        "transport": job.task.transport,
        "dataset": data.name,
        "model": job.task.model.model.rpartition(":")[2],
        "reason": reason,
        "vertices": data.vertices,
        "edges": len(data.graph.indices),
        "workers": job.workers,
    }


def _planned(job: TrainJob, strategies: Strategies, manifest: Manifest) -> dict[str, Any]:
    """Return what a report says of the strategies: None for those that did not count."""
    names = strategy_names(manifest)
    if job.task.transport not in (SWITCH, STRAWMAN):
        names = _NO_PLAN | {"partition": names["partition"]}
    return {**names, "strategy": job.asked.preset, "why": list(strategies.because.values())}


def _task(job: TrainJob, worker: int, fabric: Fabric) -> TrainTask:
    site, folder = fabric.site, fabric.folder
    stations = [site.station(each) for each in range(site.workers)]
    switched = job.task.transport in (SWITCH, STRAWMAN)
    return replace(
        job.task,
        worker=worker,
        partitions=folder / "partitions",
        link=fabric.worker_link(worker),
        addresses=worker_addresses(site.network_of(worker), site.places[worker][1]),
        plan=folder / "plan" if switched else None,
        schedule=None if switched else _schedule(folder, worker),
        stations=tuple((each.mac, each.ip) for each in stations),
    )


def _commands(fabric: Fabric) -> list[list[str]]:
    """Return what starts each worker, with the variables that torchrun would set."""
    workers = fabric.site.workers
    meeting = fabric.site.station(0).ip if fabric.workers_have_hosts else _HOST
    port = _DISTRIBUTED_PORT if fabric.workers_have_hosts else free_tcp_port()
    commands = []
    for worker in range(workers):
        variables = {
            "RANK": worker,
            "WORLD_SIZE": workers,
            "LOCAL_RANK": worker,
            "MASTER_ADDR": meeting,
            "MASTER_PORT": port,
        }
        if fabric.workers_have_hosts:
            # gloo would look its own address up by the name of the machine.
            variables["GLOO_SOCKET_IFNAME"] = fabric.worker_link(worker).removeprefix("eth:")
        else:
            variables["GLOO_SOCKET_IFNAME"] = "lo"
        words = [f"{name}={value}" for name, value in variables.items()]
        commands.append(["env", *words, *_COMMAND])
    return commands


def default_task(**changes: Any) -> TrainTask:  # noqa: ANN401
    """Return a task whose worker, files and addresses are still to be filled in."""
    nobody = Addresses("00:00:00:00:00:00", "0.0.0.0", "00:00:00:00:00:00", "0.0.0.0")  # noqa: S104
    fields = {"worker": 0, "partitions": Path(), "pace": Pace(), "link": "", "addresses": nobody}
    return TrainTask(**{**fields, **changes})
