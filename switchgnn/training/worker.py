# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Trains as one worker, however its part, its transport and the other workers were found."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

import torch
from torch import nn

from switchgnn.host.direct import BinnedTransport
from switchgnn.host.innetwork.transport import InNetworkTransport
from switchgnn.host.metrics import WorkerView
from switchgnn.host.transport import Transport
from switchgnn.training.bins.models import distribute_in_bins
from switchgnn.training.bins.options import BinOptions
from switchgnn.training.bins.rounds import BinnedSum
from switchgnn.training.device import own_device
from switchgnn.training.device_name import DeviceName
from switchgnn.training.gradients import Sums
from switchgnn.training.layers.models import ModelOptions, build_model
from switchgnn.training.layers.own_code import own_code
from switchgnn.training.layers.templates import templates_removed
from switchgnn.training.layers.whole import distribute
from switchgnn.training.partition import Partition
from switchgnn.training.sums.ledger import Ledger
from switchgnn.training.sums.remote_sum import RemoteSum
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
