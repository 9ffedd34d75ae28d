# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One worker process of `switchgnn train`.

Rank, number of workers and where they meet come from the environment, as torchrun sets
it (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT). The rest is a task in JSON.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

from switchgnn.host.direct import BinnedTransport
from switchgnn.host.innetwork.transport import InNetworkTransport
from switchgnn.host.metrics import WorkerView, serving_metrics, telling_metrics
from switchgnn.host.pace import Pace
from switchgnn.host.registry import transport_kind
from switchgnn.host.transport import Transport, WorkerEnd
from switchgnn.host.wire.addresses import Addresses
from switchgnn.station import Station
from switchgnn.tasks.task_events import FAILED, EventWriter, Heartbeat
from switchgnn.tasks.task_json import task_from_json, task_to_json
from switchgnn.training.bins.models import distribute_in_bins
from switchgnn.training.bins.options import BinOptions
from switchgnn.training.bins.rounds import BinnedSum
from switchgnn.training.errors import ModelError, TrainingError
from switchgnn.training.layers.models import ModelOptions, build_model
from switchgnn.training.layers.own_code import own_code
from switchgnn.training.layers.templates import templates_removed
from switchgnn.training.layers.whole import distribute
from switchgnn.training.partition import Partition
from switchgnn.training.partition_files import read_partition
from switchgnn.training.sums.remote_sum import RemoteSum
from switchgnn.training.trainer import Trainer, TrainOptions


@dataclass(frozen=True)
class TrainTask:
    """What one worker process does.

    Attributes:
        worker: its number.
        partitions: the folder of all partitions.
        transport: the name of a transport of ``switchgnn.host.registry``.
        model, options: what to train, and how.
        pace: the limits of sending and waiting.
        link: ``eth:...`` or ``udp:...``.
        addresses: the worker's addresses.
        plan: the plan folder, for ``switch`` and ``strawman``.
        session: the number of its install.
        schedule: this worker's schedule, for ``host``, ``host-partial`` and ``g3``.
        stations: those of all workers, for the same transports.
        sampling: the share of rows that are sent, for ``host``.
        faults: what to inject on its link, as ``--faults`` takes it.
        bins: the size of bins and what overlaps, for ``g3``.
        recording: the file that keeps what passes its link, or None.
        meeting: a file through which workers of one machine meet; None: at MASTER_ADDR and
            MASTER_PORT, where worker 0 listens on all interfaces.
        metrics: ``ADDRESS:PORT`` where the worker serves them; empty: it does not.
        tell_every: seconds between two events with its metrics; 0: it tells none.
    """

    worker: int
    partitions: Path
    transport: str
    model: ModelOptions
    options: TrainOptions
    pace: Pace
    link: str
    addresses: Addresses
    plan: Path | None = None
    session: int = 0
    schedule: Path | None = None
    stations: tuple[Station, ...] = ()
    sampling: float = 1.0
    faults: str = ""
    bins: BinOptions = field(default_factory=BinOptions)
    recording: Path | None = None
    meeting: Path | None = None
    metrics: str = ""
    tell_every: float = 0.0

    def to_json(self) -> str:
        """Return the task as one line of JSON."""
        return task_to_json(self)

    @classmethod
    def from_json(cls, text: str) -> "TrainTask":
        """Read what :meth:`to_json` wrote.

        Raises:
            TaskError: no JSON; or a field is missing, unknown, or of another type.
        """
        return task_from_json(cls, text)


def run_train_worker(task: TrainTask) -> None:
    """Do the task: print one JSON line per epoch on standard output, and a last one.

    Raises:
        SwitchGNNError: whatever stops the training.
    """
    events = EventWriter(sys.stdout)
    with Heartbeat(events):
        try:
            with own_code(task.model.model):
                _train(task, events)
        except ModelError as error:
            # Before its end lets the others fail, who only miss this one.
            events.write(FAILED, message=str(error), details=error.details)
            raise


def _train(task: TrainTask, events: EventWriter) -> None:
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // _world_size()))
    partition = read_partition(task.partitions, task.worker)
    # The weights are the same everywhere; later random numbers may differ by worker.
    torch.manual_seed(task.options.seed)
    with templates_removed():
        model = build_model(task.model, partition.features.shape[1], partition.classes)
    torch.manual_seed(task.options.seed * 1000 + 1 + task.worker)
    opened = transport_kind(task.transport).open(_end(task, partition))
    with _together(task), opened as transport:
        with _distributed(model, partition, transport, task) as remote:
            trainer = Trainer(model, partition, remote, _own_options(task))
            view = _view(task, transport, remote)
            with (
                serving_metrics(task.metrics, view),
                telling_metrics(events, task.tell_every, view),
            ):
                events.write("ready")
                for report in trainer.run():
                    transport.next_epoch()
                    events.write("epoch", **asdict(report), traffic=transport.traffic._asdict())
        traffic = transport.traffic._asdict()
        transport.close()
    ledger = remote.ledger.to_dict()
    events.write("finished", traffic=traffic, **ledger, vertices=len(partition.vertices))


def _view(task: TrainTask, transport: Transport, remote: RemoteSum | BinnedSum) -> WorkerView:
    def seconds() -> tuple[float, float]:
        return remote.clock.exchanging, remote.clock.waiting

    if not isinstance(transport, InNetworkTransport):
        return WorkerView(task.worker, lambda: transport.traffic, seconds=seconds)
    return WorkerView(
        task.worker, lambda: transport.traffic, transport.exchange, seconds, transport.injected
    )


@contextmanager
def _distributed(
    model: nn.Module, partition: Partition, transport: Transport, task: TrainTask
) -> Iterator[RemoteSum | BinnedSum]:
    """Let the model compute on the partition, at once or in bins."""
    if isinstance(transport, BinnedTransport):
        with BinnedSum(transport, task.bins) as binned:
            distribute_in_bins(model, partition, binned, seed=task.options.seed)
            yield binned
        return
    with RemoteSum(transport) as remote:
        distribute(model, partition, remote, seed=task.options.seed)
        yield remote


def _own_options(task: TrainTask) -> TrainOptions:
    """Give each worker its own checkpoint, because their random numbers differ."""
    checkpoint = task.options.checkpoint
    if checkpoint is None:
        return task.options
    own = checkpoint.with_name(f"{checkpoint.name}.{task.worker}")
    return replace(task.options, checkpoint=own)


def _world_size() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def _together(task: TrainTask) -> Iterator[None]:
    """Join the other workers for torch.distributed.

    Raises:
        TrainingError: the file where they meet cannot be written.
    """
    # They add gradients after each has computed its own.
    size, patience = _world_size(), timedelta(seconds=task.pace.patience + task.pace.skew)
    if size == 1:
        yield
        return
    if task.meeting is None:
        dist.init_process_group("gloo", timeout=patience)
    else:
        try:
            store = dist.FileStore(str(task.meeting), size)  # type: ignore[attr-defined]
            dist.init_process_group(
                "gloo", store=store, rank=task.worker, world_size=size, timeout=patience
            )
        except dist.DistStoreError as error:
            raise TrainingError(
                f"The workers cannot meet in {task.meeting}: {error}; make room there, or set "
                "TMPDIR to a folder on another disk."
            ) from error
    try:
        yield
    finally:
        dist.destroy_process_group()


def _end(task: TrainTask, partition: Partition) -> WorkerEnd:
    return WorkerEnd(
        worker=task.worker,
        workers=partition.workers,
        vertices=len(partition.vertices),
        pace=task.pace,
        link=task.link,
        faults=task.faults,
        addresses=task.addresses,
        stations=task.stations,
        plan=task.plan,
        session=task.session,
        schedule=task.schedule,
        sampling=task.sampling,
        seed=task.options.seed,
        recording=task.recording,
    )
