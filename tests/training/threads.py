"""Trainings whose workers are threads, and their distance from a plain loop."""

import threading
from contextlib import contextmanager

import numpy as np
import torch

from switchgnn.training.base.compression import CompressionOptions
from switchgnn.training.base.options import TrainOptions
from switchgnn.training.data.partition import partition_dataset
from switchgnn.training.exchange.gradients import GradientSums
from switchgnn.training.exchange.sums import RemoteSum
from switchgnn.training.layers.models import ModelOptions, build_model, distribute
from switchgnn.training.trainer import Trainer
from tests.support.speed import seconds_here
from tests.training.gathering import Gathering, in_threads
from tests.training.plain_loop import train_plainly

EPOCHS = 8
TOLERANCE = 2e-4


class ThreadSums(GradientSums):
    """Sums over threads; worker 0 is `own`."""

    def __init__(self, shared, *, own=False):
        super().__init__()
        self.times = 0
        self._alone = False
        self.shared = shared
        self.own = own

    def start(self, values, *_, **options):
        self._reduce(values)
        return lambda: values

    def open_group(self):
        return None

    def _reduce(self, values):
        barrier, pile = self.shared
        self.times += 1
        pile.append(values.clone())
        barrier.wait()
        total = sum(pile)
        barrier.wait()
        values.copy_(total)
        self._clear()

    def _broadcast(self, values):
        barrier, pile = self.shared
        if self.own:
            pile.append(values.clone())
        barrier.wait()
        values.copy_(pile[0])
        self._clear()

    def _clear(self):
        barrier, pile = self.shared
        if barrier.wait() == 0:
            pile.clear()
        barrier.wait()


def train_parts(
    data, assignment, transports, shape, options, distributed, *, compression=None, kept=None
):
    """Return reports and weights; `distributed(model, part, transport)` yields the remote sums."""
    parts = list(partition_dataset(data, assignment))
    shared = (threading.Barrier(len(parts), timeout=seconds_here(60)), [])
    torch.manual_seed(0)
    state = build_model(shape, data.features.shape[1], data.classes).state_dict()

    def work(worker):
        net = build_model(shape, data.features.shape[1], data.classes)
        net.load_state_dict(state)
        own, reports = worker == 0, []
        sums = ThreadSums(shared, own=own)
        if kept is not None:
            kept.append(sums)
        with distributed(net, parts[worker], transports[worker]) as remote:
            trainer = Trainer(
                net, parts[worker], remote, options, sums=sums, compression=compression
            )
            trainer.resume()
            for report in trainer.run():
                reports.append(report)
                transports[worker].next_epoch()
        transports[worker].close()
        return reports, net.state_dict()

    return in_threads(work, len(parts), shared[0])


def shared_out(vertices, workers):
    return np.random.default_rng(5).permutation(np.arange(vertices) % workers)


def train_in_threads(
    data,
    workers,
    *,
    model,
    dropout=0.0,
    seed=0,
    epochs=EPOCHS,
    checkpoint=None,
    hidden=8,
    precompute=True,
    compression=None,
    evaluate_every=None,
    kept=None,
    ends=None,
    remotes=None,
):
    assignment = shared_out(data.vertices, workers)
    left_out = compression or CompressionOptions()
    options = TrainOptions(
        epochs=epochs,
        weight_decay=5e-4,
        input_dropout=dropout / 2,
        evaluate_every=evaluate_every or epochs,
        seed=seed,
        checkpoint=checkpoint,
    )

    @contextmanager
    def distributed(net, part, transport):
        with RemoteSum(transport, keep=left_out.keep) as remote:
            distribute(net, part, remote, seed=seed, precompute=precompute)
            if remotes is not None:
                remotes.append(remote)
            yield remote

    gathering = Gathering(data.graph, assignment, compression=left_out.of_rows(0))
    transports = gathering.transports
    if ends is not None:
        ends.extend(transports)
    shape = ModelOptions(model=model, layers=3, hidden=hidden, dropout=dropout)
    return train_parts(
        data, assignment, transports, shape, options, distributed, compression=left_out, kept=kept
    )


def losses(results):
    return [report.loss for report in results[0][0]]


def distance(data, results, *, model, hidden=8):
    """Return the largest difference of losses and weights from the plain loop, and its accuracies.

    The plain loop of PyG on the whole graph shares no code with the trainer. In fixed point a sum
    of n features of magnitude m is off by n * m / 2^31 at most, below the rounding of float32 for
    the fan-ins here; so the TOLERANCE is that of float32 sums in another order, carried through
    the epochs.
    """
    losses, weights, accuracies = train_plainly(
        data, model=model, layers=3, hidden=hidden, epochs=EPOCHS, seed=0
    )
    off = max(abs(a - b.loss) for a, b in zip(losses, results[0][0], strict=True))
    for _, state in results:
        assert state.keys() == weights.keys()
        off = max(off, *(float((state[name] - weights[name]).abs().max()) for name in weights))
    return off, accuracies
