"""Full-graph training: one step per epoch, the same on every worker."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from switchgnn.host.links.transport import Transport
from switchgnn.host.metrics import WorkerView
from switchgnn.host.reduce.reducer import Reducer
from switchgnn.training.base.compression import CompressionOptions
from switchgnn.training.base.errors import TrainingError
from switchgnn.training.base.options import (
    DeviceName,
    ModelOptions,
    TrainOptions,
    device_of,
    own_device,
)
from switchgnn.training.base.steps import SharedSteps
from switchgnn.training.buckets import GradientBuckets, Overlap
from switchgnn.training.checkpoint import Checkpoint, TrainingProgress, what_is_trained
from switchgnn.training.data.partition import Partition
from switchgnn.training.exchange.adaptation import Adaptation
from switchgnn.training.exchange.cache import CacheControl, Compressing
from switchgnn.training.exchange.gradients import GradientSums
from switchgnn.training.exchange.machine import Machine
from switchgnn.training.exchange.standby import Standby
from switchgnn.training.exchange.sums import Ledger, RemoteSum
from switchgnn.training.layers.bins import BinOptions, RemoteSums, distribute_over, sums_over
from switchgnn.training.layers.dropout import Draws, VertexDropout, begin_epoch
from switchgnn.training.layers.models import build_model
from switchgnn.training.layers.norms import VertexSums
from switchgnn.training.layers.pyg_layers import own_code, templates_removed


@dataclass(frozen=True)
class Accuracy:
    """Shares of correctly classified vertices over all workers; None without vertices."""

    train: float | None
    validation: float | None
    test: float | None


@dataclass(frozen=True)
class EpochReport:
    """One epoch; times in seconds, of this worker."""

    epoch: int  # its number, from 1
    loss: float  # the mean over the training vertices of all workers, before the step
    accuracy: Accuracy | None  # after the step, in the epochs that are evaluated
    seconds: float  # the whole step without evaluation
    exchange: float  # the time of exchanges, with all the waiting for them
    waiting: float  # the part of `exchange` in which the worker could not compute
    all_reduce: float  # the time of summing gradients
    epsilon: float | None = None  # of the cache, in this epoch; None without a cache
    # rows that were due so far, and those of them that were not sent as they had changed too
    # little; None without compression
    rows: int | None = None
    skipped_rows: int | None = None
    # of the exchanges so far, both ways, if nothing were left out or lost; None if nothing is
    bytes_without: int | None = None
    # the paths of this epoch and what changes from the next one on, see `Adaptation`
    paths: dict[str, Any] | None = None
    changes: list[dict[str, Any]] | None = None


@contextmanager
def _garbage_between_epochs() -> Iterator[None]:
    """Collect garbage only between epochs: others would wait for this worker meanwhile.

    Objects that are here already are not visited at all.
    """
    enabled = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if enabled:
            gc.enable()


class Trainer:
    """One worker's part in training a model."""

    def __init__(
        self,
        model: nn.Module,
        partition: Partition,
        remote: RemoteSums,
        options: TrainOptions,
        *,
        sums: GradientSums | None = None,
        compression: CompressionOptions | None = None,
        adaptation: Adaptation | None = None,
        overlap: Overlap = Overlap.CLASSES,
    ) -> None:
        self.model = model
        self._adaptation = adaptation
        self._partition = partition
        self._remote = remote
        self._options = options
        self._sums = sums or GradientSums(attending=remote.attending)
        self._compression = compression = compression or CompressionOptions()
        self._columns = remote.columns
        if self._columns is not None and compression.keep_by is not None:
            self._columns.by = compression.keep_by
            self._columns.draws.manual_seed(options.seed)
        self._cache: CacheControl | None = None
        if compression.of_rows(0).active:
            self._cache = CacheControl(cast("Compressing", remote.transport), compression)
            remote.skipped = self._cache.skipped
            if partition.partial is not None and remote.skipped is not None:
                raise TrainingError(
                    "--rest skips rows, and with these edge weights workers send partial sums: "
                    "leave it out."
                )
        self._optimizer = torch.optim.Adam(
            model.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay
        )
        self.buckets = GradientBuckets(model, self._optimizer, self._sums, overlap)
        vertices = torch.from_numpy(partition.vertices)
        self._input_dropout = nn.Dropout(options.input_dropout)
        VertexDropout(self._input_dropout, Draws(vertices, options.seed - 1))
        # As a module of the model it switches between training and evaluation with it.
        model.add_module("input_dropout", self._input_dropout)
        device = device_of(model)
        self._features = torch.from_numpy(partition.features).to(device)
        graph = (partition.edges, partition.edge_weights)
        # The model is called with them.
        self._edges = [torch.from_numpy(each).to(device) for each in graph if each is not None]
        self._labels = torch.from_numpy(partition.labels).to(device)
        masks = (partition.train, partition.validation, partition.test)
        self._masks = tuple(torch.from_numpy(mask).to(device) for mask in masks)
        if partition.total_train == 0:
            raise TrainingError("No vertex has a label to train on: look at the split.")
        self._progress = TrainingProgress()
        self._checkpoint: Checkpoint | None = None
        if options.checkpoint is not None:
            self._checkpoint = Checkpoint(
                options.checkpoint,
                model,
                self._optimizer,
                what_is_trained(partition, options.seed),
                self._sums,
                own=partition.worker == 0,
            )

    def resume(self) -> int:
        """Continue from the checkpoint, if there is one; return the number of epochs done."""
        if self._checkpoint is not None:
            self._progress = self._checkpoint.restore()
        return self._progress.epoch

    def run(self) -> Iterator[EpochReport]:
        """Train; yield a report after each epoch."""
        done = self._progress
        with _garbage_between_epochs():
            for epoch in range(done.epoch + 1, self._options.epochs + 1):
                report = self._epoch(epoch)
                gc.collect()
                yield report
                if report.accuracy is None:
                    continue
                reached = report.accuracy.validation or 0.0
                tries = 0 if reached > done.best else done.tries + 1
                done = TrainingProgress(epoch, max(reached, done.best), tries)
                if self._checkpoint is not None:
                    self._checkpoint.save(done)
                if self._options.patience and done.tries >= self._options.patience:
                    return

    def _epoch(self, epoch: int) -> EpochReport:
        clock = self._remote.clock
        exchange, waiting, reduce = clock.exchanging, clock.waiting, self._sums.seconds
        begin_epoch(self.model, seed=self._options.seed, epoch=epoch, worker=self._partition.worker)
        epsilon = self._cache.epsilon if self._cache is not None else None
        if self._cache is not None and self._cache.skipped is not None:
            self._cache.skipped.begin_epoch(epoch)
        paths = None if self._adaptation is None else self._adaptation.paths
        started = time.perf_counter()
        loss = self._step(epoch)
        due = epoch % self._options.evaluate_every == 0 or epoch == self._options.epochs
        if due:
            self.buckets.finish()
        seconds = time.perf_counter() - started
        clock = self._remote.clock
        waited, exchange = clock.waiting - waiting, clock.exchanging - exchange
        all_reduce = self._sums.seconds - reduce
        accuracy = self.evaluate() if due else None
        plain = self._remote.ledger.plain if self._compression.active else None
        saved = None if self._cache is None else self._cache.savings
        return EpochReport(
            epoch=epoch,
            loss=loss,
            accuracy=accuracy,
            seconds=seconds,
            exchange=max(exchange, waited),
            waiting=waited,
            all_reduce=all_reduce,
            epsilon=epsilon,
            rows=None if saved is None else saved.rows,
            skipped_rows=None if saved is None else saved.skipped,
            bytes_without=None if plain is None else plain.bytes_up + plain.bytes_down,
            paths=paths,
            changes=None if self._adaptation is None else self._adaptation.changes,
        )

    def _step(self, epoch: int) -> float:
        self.model.train()
        columns = self._columns if epoch % self._compression.columns_every == 0 else None
        if columns is not None:
            columns.scoring = True
        self._optimizer.zero_grad()
        outputs = self.model(self._input_dropout(self._features), *self._edges)
        loss = self._loss(outputs)
        shares = loss.reshape(1)
        following = self._cache if self._cache is not None and self._cache.follows else None
        if following is not None:
            hits = self._right(outputs.detach())[self._masks[0]].sum()
            shares = torch.cat([shares, hits.reshape(1) / self._partition.total_train])
        if self._adaptation is not None:
            shares = torch.cat([shares, self._adaptation.votes().to(shares)])
        # Also without labels here, as the others wait for this worker's gradients.
        total, *others = self.buckets.step(loss, shares)
        if self._adaptation is not None:
            self._adaptation.decide(epoch, others)
        if following is not None:
            following.note(*others)
        if columns is not None:
            columns.scoring = False
            replaced = columns.choose(columns.take(), self._sums)
            if self._cache is not None:
                self._cache.forget(replaced)
        return total

    def _loss(self, outputs: Tensor) -> Tensor:
        train = self._masks[0]
        chosen, labels = outputs[train], self._labels[train]
        if self._partition.multilabel:
            each = functional.binary_cross_entropy_with_logits(
                chosen, labels.float(), reduction="sum"
            )
            return each / (self._partition.total_train * outputs.shape[1])
        total = functional.cross_entropy(chosen, labels, reduction="sum")
        return total / self._partition.total_train

    @torch.no_grad()
    def evaluate(self) -> Accuracy:
        """Return the accuracies over all workers (micro-averaged over labels if multi-label)."""
        self.buckets.finish()
        self.model.eval()
        right = self._right(self.model(self._features, *self._edges))
        counts = torch.stack(
            [torch.stack([right[mask].sum(), mask.sum().float()]) for mask in self._masks]
        ).double()
        shares = [float(hit / all_) if all_ else None for hit, all_ in self._sums.add(counts)]
        return Accuracy(*shares)

    def _right(self, outputs: Tensor) -> Tensor:
        if self._partition.multilabel:
            return ((outputs > 0) == (self._labels > 0)).float().mean(dim=1)
        return (outputs.argmax(dim=1) == self._labels).float()


@dataclass(frozen=True)
class Training:
    """The model and the options of all workers; ``bins`` are for ``g3``."""

    model: ModelOptions
    options: TrainOptions
    bins: BinOptions = field(default_factory=BinOptions)
    device: DeviceName = DeviceName.CPU
    compression: CompressionOptions = field(default_factory=CompressionOptions)
    overlap: Overlap = Overlap.CLASSES


def train_as_worker(
    partition: Partition,
    transport: Transport,
    training: Training,
    on_epoch: Callable[[EpochReport], None],
    *,
    first: int = 0,
    seen: Callable[[WorkerView], AbstractContextManager[object]] = nullcontext,
    reducer: Reducer | None = None,
    binned: bool = False,
    machine: Machine | None = None,
    adaptation: Adaptation | None = None,
    standby: Standby | None = None,
    server: bool = False,
) -> Ledger:
    """Train alone, or as a member of the process group, where worker 0 has the rank ``first``.

    ``reducer`` adds up the gradients; None: Gloo does. ``binned``: see ``TransportKind``.
    ``machine``, ``standby``, ``server``: as for ``GradientSums``. ``adaptation``: chooses the
    paths, without compression.
    """
    with own_code(training.model.model):
        torch.manual_seed(training.options.seed)
        with templates_removed():
            model = build_model(training.model, partition.features.shape[1], partition.classes)
        model.to(own_device(training.device))
        # Of several on a machine, only one knows whether the switch adds up.
        steps = SharedSteps(partition.worker, partition.workers) if machine is None else None
        with sums_over(
            transport, binned=binned, bins=training.bins, keep=training.compression.keep
        ) as remote:
            if isinstance(remote, RemoteSum):
                remote.standby = standby
            sums = GradientSums(
                *(first, remote.attending, reducer, machine, steps), standby=standby, server=server
            )
            if adaptation is not None:
                adaptation.attach(sums)
            distribute_over(
                *(model, partition, remote),
                seed=training.options.seed,
                precompute=training.options.precompute,
                vertex_sums=VertexSums(sums.add, partition),
            )
            sums.spread_model(model)
            trainer = Trainer(
                *(model, partition, remote, training.options),
                sums=sums,
                compression=training.compression,
                adaptation=adaptation,
                overlap=training.overlap,
            )
            paths = None if adaptation is None else adaptation.metrics
            view = replace(view_of(partition.worker, transport, remote), paths=paths)
            with seen(view), trainer.buckets:
                for _ in range(trainer.resume()):
                    transport.next_epoch()
                    if standby is not None:
                        standby.next_epoch()
                for report in trainer.run():
                    transport.next_epoch()
                    if standby is not None:
                        standby.next_epoch()
                    on_epoch(report)
        return remote.ledger


def view_of(worker: int, transport: Transport, remote: RemoteSums) -> WorkerView:
    """Return a training worker's metrics."""
    return WorkerView(worker, transport, lambda: (remote.clock.exchanging, remote.clock.waiting))
