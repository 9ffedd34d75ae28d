# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Trains as one worker, however its part, its transport and the other workers were found."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import nn

from switchgnn.base.network import Station
from switchgnn.base.tasks import FAILED, EventWriter, Heartbeat, task_from_json, task_to_json
from switchgnn.host.direct import BinnedTransport
from switchgnn.host.direct.framing import USUAL_MTU
from switchgnn.host.innetwork.transport import InNetworkTransport
from switchgnn.host.metrics import WorkerView, serving_metrics, telling_metrics
from switchgnn.host.pace import Pace
from switchgnn.host.registry import transport_kind
from switchgnn.host.transport import Transport, WorkerEnd
from switchgnn.host.wire.addresses import Addresses
from switchgnn.training.bins import BinnedSum, BinOptions, distribute_in_bins
from switchgnn.training.device import DeviceName, own_device
from switchgnn.training.errors import ModelError, TrainingError
from switchgnn.training.gradients import Sums, share_cores, together_in_file
from switchgnn.training.layers.models import ModelOptions, build_model, distribute
from switchgnn.training.layers.pyg_layers import own_code, templates_removed
from switchgnn.training.partition import Partition, read_partition
from switchgnn.training.sums import Ledger, RemoteSum
from switchgnn.training.trainer import EpochReport, Trainer, TrainOptions

EpochListener = Callable[[EpochReport], None]


@dataclass(frozen=True)
class Training:
    """What all workers train, and how.

    Attributes:
        model: which model.
        options: how to train it.
        bins: the size of bins and what overlaps, for ``g3``.
        device: where to compute.
    """

    model: ModelOptions
    options: TrainOptions
    bins: BinOptions = field(default_factory=BinOptions)
    device: DeviceName = DeviceName.CPU


def train_as_worker(
    partition: Partition,
    transport: Transport,
    training: Training,
    on_epoch: EpochListener,
    *,
    first: int = 0,
    seen: Callable[[WorkerView], AbstractContextManager[object]] = nullcontext,
) -> Ledger:
    """Train as one of several workers, who have met over torch.distributed, or alone.

    Args:
        partition: this worker's part of the graph.
        transport: carries the sums; it stays open.
        training: what to train, the same on all workers.
        on_epoch: called after each epoch.
        first: the rank of worker 0.
        seen: shows what can be seen of this worker as long as it trains.

    Returns:
        The exchanges, and the traffic that they should have caused.

    Raises:
        ModelError: the user's model failed; the error has the user's lines.
        SwitchGNNError: whatever stops the training.
    """
    with own_code(training.model.model):
        torch.manual_seed(training.options.seed)
        with templates_removed():
            model = build_model(training.model, partition.features.shape[1], partition.classes)
        model.to(own_device(training.device))
        with _distributed(model, partition, transport, training) as remote:
            sums = Sums(first, remote.attending)
            sums.spread_model(model)
            trainer = Trainer(model, partition, remote, training.options, sums=sums)
            with seen(view_of(partition.worker, transport, remote)):
                for _ in range(trainer.resume()):
                    transport.next_epoch()
                for report in trainer.run():
                    transport.next_epoch()
                    on_epoch(report)
        return remote.ledger


@contextmanager
def _distributed(
    model: nn.Module, partition: Partition, transport: Transport, training: Training
) -> Iterator[RemoteSum | BinnedSum]:
    """Let the model compute on the partition, at once or in bins."""
    seed, precompute = training.options.seed, training.options.precompute
    if isinstance(transport, BinnedTransport):
        with BinnedSum(transport, training.bins) as binned:
            distribute_in_bins(model, partition, binned, seed=seed, precompute=precompute)
            yield binned
        return
    with RemoteSum(transport) as remote:
        distribute(model, partition, remote, seed=seed, precompute=precompute)
        yield remote


def view_of(worker: int, transport: Transport, remote: RemoteSum | BinnedSum) -> WorkerView:
    """Return what can be seen of a worker that trains.

    Args:
        worker: its number.
        transport: carries the sums.
        remote: brings them there and back, and measures how long that takes.

    Returns:
        What is read when somebody asks.
    """

    def seconds() -> tuple[float, float]:
        return remote.clock.exchanging, remote.clock.waiting

    if not isinstance(transport, InNetworkTransport):
        return WorkerView(worker, lambda: transport.traffic, seconds=seconds)
    return WorkerView(
        *(worker, lambda: transport.traffic),
        exchange=transport.exchange,
        seconds=seconds,
        injected=transport.injected,
    )


@dataclass(frozen=True)
class TrainTask:
    """What one worker process does.

    Attributes:
        worker: its number.
        partitions: the folder of all partitions.
        transport: the name of a transport of ``switchgnn.host.registry``.
        training: what to train, and how.
        pace: the limits of sending and waiting.
        link: ``eth:...`` or ``udp:...``.
        addresses: the worker's addresses.
        plan: the plan folder, for ``switch`` and ``strawman``.
        session: the number of its install.
        schedule: this worker's schedule, for ``host``, ``host-partial`` and ``g3``, and for plans
            that leave destinations to the hosts.
        stations: those of all workers, for the same transports.
        sampling: the share of rows that are sent, for ``host``.
        mtu: what frames between hosts carry, as ``--mtu`` takes it.
        faults: what to inject on its link, as ``--faults`` takes it.
        recording: the file that keeps what passes its link, or None.
        meeting: a file through which the workers meet; None: there is only one.
        metrics: ``ADDRESS:PORT`` where the worker serves them; empty: it does not.
        tell_every: seconds between two events with its metrics; 0: it tells none.
    """

    worker: int
    partitions: Path
    transport: str
    training: Training
    pace: Pace
    link: str
    addresses: Addresses
    plan: Path | None = None
    session: int = 0
    schedule: Path | None = None
    stations: tuple[Station, ...] = ()
    sampling: float = 1.0
    mtu: str = str(USUAL_MTU)
    faults: str = ""
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
            _train(task, events)
        except ModelError as error:
            # Before its end lets the others fail, who only miss this one.
            events.write(FAILED, message=str(error), details=error.details)
            raise


def _train(task: TrainTask, events: EventWriter) -> None:
    partition = read_partition(task.partitions, task.worker)
    share_cores(partition.workers)
    opened = transport_kind(task.transport).open(_end(task, partition))
    with _together(task, partition.workers), opened as transport:

        def tell(report: EpochReport) -> None:
            traffic = transport.traffic._asdict()
            events.write("epoch", **asdict(report), traffic=traffic, **_barriers(transport))

        ledger = train_as_worker(
            partition, transport, task.training, tell, seen=lambda view: _seen(task, events, view)
        ).to_dict()
        traffic = transport.traffic._asdict()
        transport.close()
    events.write("finished", traffic=traffic, **ledger, vertices=len(partition.vertices))


def _barriers(transport: Transport) -> dict[str, int]:
    """Return what an epoch's event says of barriers, so far; nothing where there are none."""
    if not isinstance(transport, InNetworkTransport):
        return {}
    return {"barriers": transport.barriers, "void": transport.void}


@contextmanager
def _seen(task: TrainTask, events: EventWriter, view: WorkerView) -> Iterator[None]:
    """Show a worker to Prometheus and to the parent process, as far as they want to know."""
    with (
        serving_metrics(task.metrics, view),
        telling_metrics(events, task.tell_every, view),
    ):
        yield


def _together(task: TrainTask, size: int) -> AbstractContextManager[None]:
    if size == 1:
        return nullcontext()
    if task.meeting is None:
        raise TrainingError(f"Worker {task.worker} was told of no file to meet the others in.")
    return together_in_file(task.meeting, task.worker, size, task.pace)


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
        seed=task.training.options.seed,
        mtu=task.mtu,
        recording=task.recording,
    )
