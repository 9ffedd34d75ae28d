# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of `switchgnn train`, one after another."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.controller import P4RuntimeClient, install
from switchgnn.controller.network import star_network
from switchgnn.host.addresses import Addresses
from switchgnn.host.faults import Faults
from switchgnn.host.pace import Pace
from switchgnn.p4src import load_program
from switchgnn.planner.build import build_plan
from switchgnn.planner.files import write_plan
from switchgnn.run.workers import follow_workers
from switchgnn.topologies import (
    BackgroundTraffic,
    Choice,
    Fabric,
    Star,
    build_fabric,
    choose,
    free_tcp_port,
)
from switchgnn.topologies.child import Child
from switchgnn.training.dataset import Dataset
from switchgnn.training.partition_files import write_partitions
from switchgnn.training.worker import G3, HOST, HOST_PARTIAL, LOCAL, SWITCH, TrainTask
from switchgnn.transports import (
    binned_schedules,
    copy_schedules,
    partial_schedules,
    write_binned_schedule,
    write_schedule,
)

_HOST = "127.0.0.1"
_COMMAND = (sys.executable, "-m", "switchgnn.cli", "train-worker")
_DISTRIBUTED_PORT = 29500

StepListener = Callable[[str, int, int], None]
# Called with worker 0's event of an epoch.
EpochListener = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class TrainJob:
    """What to train, where, and over what.

    Attributes:
        task: what is the same for all workers; its worker, link, addresses and files are
            filled in.
        workers: their number.
        slots: aggregators that a block may use.
        target, fabric: a choice or ``auto``.
        bandwidth: Mbit/s per link, or None.
        ecn_threshold: queue length in packets from which packets are marked.
        background: TCP flows from each worker to the next.
        partition: a key of the planner's partition strategies; None takes that of the
            transport: G3's for ``g3``, and METIS.
    """

    task: TrainTask
    workers: int
    slots: int
    target: str
    fabric: str
    bandwidth: float | None
    ecn_threshold: int
    background: int = 0
    partition: str | None = None


@dataclass(frozen=True)
class TrainReport:
    """A whole training; per-worker lists are in the order of the workers.

    Attributes:
        transport, dataset, reason: what was done, and why so.
        workers: their number.
        epochs: worker 0's report of each.
        losses: of each epoch.
        train_accuracy, validation_accuracy, test_accuracy: the last ones; None without such
            vertices.
        epoch_seconds: the median over the epochs but the first, of the slowest worker.
        split: medians of the same by what they went to: exchange, of it waiting, all-reduce.
        bytes_per_link: {"up", "down"} of the exchanges of each worker.
        traffic: frames and bytes of each worker's exchanges.
    """

    transport: str
    dataset: str
    reason: str
    workers: int
    epochs: list[dict[str, Any]]
    losses: list[float]
    train_accuracy: float | None
    validation_accuracy: float | None
    test_accuracy: float | None
    epoch_seconds: float
    split: dict[str, float]
    bytes_per_link: list[dict[str, int]]
    traffic: list[dict[str, int]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data, for JSON."""
        return asdict(self)


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
    Faults.parse(job.task.faults)
    with TemporaryDirectory(prefix="switchgnn-") as name:
        folder = Path(name)
        step("planning", 0, 0)
        if job.task.transport == LOCAL:
            return _alone(job, data, folder, on_epoch)
        choice = choose(job.target, job.fabric)
        _prepare(job, data, folder)
        star = Star(
            network=star_network(job.workers),
            target=choice.target,
            grpc_address=f"{_HOST}:{free_tcp_port()}",
            bandwidth=job.bandwidth,
        )
        step("starting the switch", 0, 0)
        with build_fabric(choice.fabric, star, folder) as fabric:
            with P4RuntimeClient(star.grpc_address) as client:
                install(
                    folder / "plan",
                    [client],
                    star.network,
                    program=load_program(),
                    ecn_threshold=job.ecn_threshold,
                    new_session=True,
                    progress=lambda _address, done, total: step("installing", done, total),
                )
            with BackgroundTraffic(fabric, job.background):
                return _train(job, data, choice, fabric, on_epoch)


def _alone(job: TrainJob, data: Dataset, folder: Path, on_epoch: EpochListener) -> TrainReport:
    """Train in one process, without a network."""
    write_partitions(data, np.zeros(data.vertices, dtype=np.int32), folder / "partitions")
    task = replace(job.task, worker=0, partitions=folder / "partitions")

    def child(worker: int, command: Sequence[str]) -> Child:
        return Child(f"Worker {worker}", command, folder / f"worker-{worker}.log", pipe=True)

    recorder = _Recorder(1, on_epoch)
    finished = follow_workers(child, [task], [_COMMAND], recorder)
    return recorder.report(
        replace(job, workers=1), data, "one process, without a network", finished
    )


def _prepare(job: TrainJob, data: Dataset, folder: Path) -> None:
    """Write the plan, the partitions and the schedules."""
    plan = build_plan(
        data.graph,
        workers=job.workers,
        slots=job.slots,
        program=load_program().digest,
        seed=job.task.options.seed,
        partition=job.partition or ("g3" if job.task.transport == G3 else "metis"),
        directions="both",
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


def _schedule(folder: Path, worker: int) -> Path:
    return folder / f"schedule-{worker}.npz"


def _train(
    job: TrainJob, data: Dataset, choice: Choice, fabric: Fabric, on_epoch: EpochListener
) -> TrainReport:
    tasks = [_task(job, worker, fabric) for worker in range(job.workers)]
    recorder = _Recorder(job.workers, on_epoch)
    finished = follow_workers(fabric.worker_child, tasks, _commands(fabric), recorder)
    return recorder.report(job, data, choice.reason, finished)


def _task(job: TrainJob, worker: int, fabric: Fabric) -> TrainTask:
    network, folder = fabric.star.network, fabric.folder
    station = network.stations[worker]
    switched = job.task.transport == SWITCH
    return replace(
        job.task,
        worker=worker,
        partitions=folder / "partitions",
        link=fabric.worker_link(worker),
        addresses=Addresses(
            worker_mac=station.mac,
            worker_ip=station.ip,
            switch_mac=network.switch_mac,
            switch_ip=network.switch_ip,
        ),
        plan=folder / "plan" if switched else None,
        schedule=None if switched else _schedule(folder, worker),
        stations=tuple((each.mac, each.ip) for each in network.stations),
    )


def _commands(fabric: Fabric) -> list[list[str]]:
    """Return what starts each worker, with the variables that torchrun would set."""
    workers = fabric.star.workers
    meeting = fabric.star.network.stations[0].ip if fabric.workers_have_hosts else _HOST
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


class _Recorder:
    """Takes what the workers say in each epoch."""

    def __init__(self, workers: int, on_epoch: EpochListener) -> None:
        self._epochs: list[list[dict[str, Any]]] = [[] for _ in range(workers)]
        self._on_epoch = on_epoch

    def __call__(self, worker: int, event: dict[str, Any]) -> None:
        if event["event"] != "epoch":
            return
        self._epochs[worker].append(event)
        if worker == 0:
            self._on_epoch(event)

    def report(
        self, job: TrainJob, data: Dataset, reason: str, finished: list[dict[str, Any]]
    ) -> TrainReport:
        first = self._epochs[0]
        accuracies = [event["accuracy"] for event in first if event["accuracy"]]
        last = accuracies[-1] if accuracies else {}
        return TrainReport(
            transport=job.task.transport,
            dataset=data.name,
            reason=reason,
            workers=job.workers,
            epochs=first,
            losses=[event["loss"] for event in first],
            train_accuracy=last.get("train"),
            validation_accuracy=last.get("validation"),
            test_accuracy=last.get("test"),
            epoch_seconds=_typical(self._slowest("seconds")),
            split={
                name: _typical(self._slowest(name))
                for name in ("exchange", "waiting", "all_reduce")
            },
            bytes_per_link=[
                {"up": end["traffic"]["bytes_up"], "down": end["traffic"]["bytes_down"]}
                for end in finished
            ],
            traffic=[end["traffic"] for end in finished],
        )

    def _slowest(self, name: str) -> NDArray[np.float64]:
        """float64[epochs], of the slowest worker each."""
        values = [[float(event[name]) for event in events] for events in self._epochs]
        slowest: NDArray[np.float64] = np.array(values, dtype=np.float64).max(axis=0)
        return slowest


def _typical(values: NDArray[np.float64]) -> float:
    """The median; the first epoch also warms everything up."""
    return float(np.median(values[1:] if len(values) > 1 else values)) if len(values) else 0.0


def default_task(**changes: Any) -> TrainTask:  # noqa: ANN401
    """Return a task whose worker, files and addresses are still to be filled in."""
    nobody = Addresses("00:00:00:00:00:00", "0.0.0.0", "00:00:00:00:00:00", "0.0.0.0")  # noqa: S104
    fields = {"worker": 0, "partitions": Path(), "pace": Pace(), "link": "", "addresses": nobody}
    return TrainTask(**{**fields, **changes})
