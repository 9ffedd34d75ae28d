# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Training as one worker, and the worker processes of `switchgnn train`."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import torch

from switchgnn.base.network import Station
from switchgnn.base.tasks import FAILED, EventWriter, Heartbeat, task_from_json, task_to_json
from switchgnn.host.direct import BinnedTransport
from switchgnn.host.direct.framing import USUAL_MTU
from switchgnn.host.metrics import WorkerView, serving_metrics, telling_metrics
from switchgnn.host.pace import Pace
from switchgnn.host.reduce.reducer import Reducer
from switchgnn.host.registry import transport_kind
from switchgnn.host.transport import Transport, WorkerEnd
from switchgnn.host.wire.addresses import Addresses
from switchgnn.training.asked import ReduceBy
from switchgnn.training.bins import BinnedSum, BinOptions, distribute_in_bins
from switchgnn.training.device import DeviceName, own_device
from switchgnn.training.errors import ModelError, TrainingError
from switchgnn.training.fewer import NOTHING_LESS, FewerBytes
from switchgnn.training.gradients import GradientSums, share_cores, together_in_file
from switchgnn.training.layers.models import build_model, distribute
from switchgnn.training.layers.norms import VertexSums
from switchgnn.training.layers.pyg_layers import own_code, templates_removed
from switchgnn.training.partition import Partition, read_partition
from switchgnn.training.reduce import switch_sums
from switchgnn.training.shape import ModelOptions
from switchgnn.training.sums import Ledger, RemoteSum
from switchgnn.training.trainer import EpochReport, Trainer, TrainOptions

EpochListener = Callable[[EpochReport], None]


@dataclass(frozen=True)
class Training:
    """The model and the options of all workers; ``bins`` are for ``g3``."""

    model: ModelOptions
    options: TrainOptions
    bins: BinOptions = field(default_factory=BinOptions)
    device: DeviceName = DeviceName.CPU
    fewer: FewerBytes = NOTHING_LESS


def train_as_worker(
    partition: Partition,
    transport: Transport,
    training: Training,
    on_epoch: EpochListener,
    *,
    first: int = 0,
    seen: Callable[[WorkerView], AbstractContextManager[object]] = nullcontext,
    reducer: Reducer | None = None,
) -> Ledger:
    """Train alone, or as a member of the process group, where worker 0 has the rank ``first``.

    ``reducer`` adds up the gradients; None: Gloo does.
    """
    with own_code(training.model.model):
        torch.manual_seed(training.options.seed)
        with templates_removed():
            model = build_model(training.model, partition.features.shape[1], partition.classes)
        model.to(own_device(training.device))
        with _remote(transport, training) as remote:
            sums = GradientSums(first, remote.attending, reducer)
            seed, precompute = training.options.seed, training.options.precompute
            if isinstance(remote, BinnedSum):
                distribute_in_bins(model, partition, remote, seed=seed, precompute=precompute)
            else:
                distribute(
                    *(model, partition, remote),
                    seed=seed,
                    precompute=precompute,
                    vertex_sums=VertexSums(sums.add),
                )
            sums.spread_model(model)
            options, fewer = training.options, training.fewer
            trainer = Trainer(model, partition, remote, options, sums=sums, fewer=fewer)
            with seen(view_of(partition.worker, transport, remote)):
                for _ in range(trainer.resume()):
                    transport.next_epoch()
                for report in trainer.run():
                    transport.next_epoch()
                    on_epoch(report)
        return replace(remote.ledger, gradients=sums.gradients)


def _remote(transport: Transport, training: Training) -> RemoteSum | BinnedSum:
    if isinstance(transport, BinnedTransport):
        return BinnedSum(transport, training.bins)
    return RemoteSum(transport, keep=training.fewer.keep)


def view_of(worker: int, transport: Transport, remote: RemoteSum | BinnedSum) -> WorkerView:
    """Return the metrics of a worker that trains."""

    def seconds() -> tuple[float, float]:
        return remote.clock.exchanging, remote.clock.waiting

    return WorkerView(worker, transport, seconds)


@dataclass(frozen=True)
class TrainTask:
    """The task of one worker process.

    Attributes:
        partitions: the folder of all partitions.
        transport: a name of ``switchgnn.host.registry``.
        link: ``eth:...`` or ``udp:...``.
        plan: the plan folder, for ``switch`` and ``strawman``.
        session: the number of its install.
        schedule: this worker's schedule, for ``host``, ``host-partial`` and ``g3``, and for plans
            that leave destinations to the hosts.
        stations: of all workers, for the same transports.
        reduce: what adds up the gradients; the switch for the transport ``switch`` alone.
        sampling: the share of rows that are sent, for ``host``.
        mtu: as ``--mtu``, for frames between hosts.
        faults: as ``--faults``, on its link.
        recording: the file that records the frames of its link.
        meeting: the file in which the workers meet; None for a single one.
        metrics: ``ADDRESS:PORT`` of its metrics; empty for none.
        tell_every: seconds between two events with its metrics; 0 for none.
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
    reduce: ReduceBy = ReduceBy.GLOO

    def to_json(self) -> str:
        """Return the task as one line of JSON."""
        return task_to_json(self)

    @classmethod
    def from_json(cls, text: str) -> "TrainTask":
        """Read what :meth:`to_json` wrote."""
        return task_from_json(cls, text)


def run_train_worker(task: TrainTask) -> None:
    """Do the task; print a line of JSON after each epoch, and one at the end."""
    events = EventWriter(sys.stdout)
    with Heartbeat(events):
        try:
            _train(task, events)
        except ModelError as error:
            # Report it before the others fail because this worker ends.
            events.write(FAILED, message=str(error), details=error.details)
            raise


def _train(task: TrainTask, events: EventWriter) -> None:
    partition = read_partition(task.partitions, task.worker)
    share_cores(partition.workers)
    with ExitStack() as stack:
        stack.enter_context(_group(task, partition.workers))
        end, reducer = _end(task, partition), None
        if task.reduce.words and partition.workers > 1:
            switch = stack.enter_context(switch_sums(end, task.reduce.words))
            end, reducer = switch.end, switch.reducer
        transport = stack.enter_context(transport_kind(task.transport).open(end))

        def tell(report: EpochReport) -> None:
            traffic = transport.traffic._asdict()
            events.write("epoch", **asdict(report), traffic=traffic, **transport.report)

        @contextmanager
        def seen(view: WorkerView) -> Iterator[None]:
            telling = telling_metrics(events, task.tell_every, view)
            with serving_metrics(task.metrics, view), telling:
                yield

        ledger = train_as_worker(
            *(partition, transport, task.training, tell), seen=seen, reducer=reducer
        )
        traffic = transport.traffic._asdict()
        transport.close()
        reduced = None if reducer is None else switch.link.traffic._asdict()
    what = {"traffic": traffic, "reduced": reduced, **ledger.to_dict()}
    events.write("finished", **what, vertices=len(partition.vertices))


def _group(task: TrainTask, size: int) -> AbstractContextManager[None]:
    if size == 1:
        return nullcontext()
    if task.meeting is None:
        raise TrainingError(f"Worker {task.worker} was given no file to meet the others in.")
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
        compression=task.training.fewer.compression,
    )
