# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Trainings whose workers are threads of one process."""

import threading

import numpy as np
import torch

from switchgnn.training.gradients import Sums
from switchgnn.training.layers.models import ModelOptions, build_model, distribute
from switchgnn.training.partition import partition_dataset
from switchgnn.training.sums import RemoteSum
from switchgnn.training.trainer import Trainer, TrainOptions
from tests.support.speed import seconds_here
from tests.training.gathering import Gathering

EPOCHS = 8


class ThreadSums(Sums):
    """Adds up over threads; the last to come adds.

    Args:
        shared: a barrier of all workers, and an empty list.
        factor: what this worker's values are multiplied by, which is a mistake.
        own: whether this is worker 0, whose values are spread.
    """

    def __init__(self, shared, *, factor=1.0, own=False):
        super().__init__()
        self._alone = False
        self.shared = shared
        self.factor = factor
        self.own = own

    def _reduce(self, values):
        barrier, pile = self.shared
        pile.append(values.clone() * self.factor)
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


def train_in_threads(
    data,
    workers,
    *,
    model,
    spoil=None,
    factor=1.0,
    dropout=0.0,
    seed=0,
    epochs=EPOCHS,
    checkpoint=None,
    hidden=8,
    precompute=True,
):
    """Return what each worker has reported, and its weights."""
    assignment = np.random.default_rng(5).permutation(np.arange(data.vertices) % workers)
    gathering = Gathering(data.graph, assignment, spoil=spoil)
    shared = (threading.Barrier(workers, timeout=seconds_here(60)), [])
    shape = ModelOptions(model=model, layers=3, hidden=hidden, dropout=dropout)
    options = TrainOptions(
        epochs=epochs,
        weight_decay=5e-4,
        input_dropout=dropout / 2,
        evaluate_every=epochs,
        seed=seed,
        checkpoint=checkpoint,
    )
    torch.manual_seed(0)
    state = build_model(shape, data.features.shape[1], data.classes).state_dict()
    results, errors = {}, []

    def work(part):
        try:
            net = build_model(shape, data.features.shape[1], data.classes)
            net.load_state_dict(state)
            with RemoteSum(gathering.transport(part.worker)) as remote:
                distribute(net, part, remote, seed=seed, precompute=precompute)
                own = part.worker == 0
                sums = ThreadSums(shared, factor=factor if own else 1.0, own=own)
                trainer = Trainer(net, part, remote, options, sums=sums)
                trainer.resume()
                reports = list(trainer.run())
            results[part.worker] = (reports, net.state_dict())
        except BaseException as error:
            errors.append(error)
            gathering.barrier.abort()
            shared[0].abort()

    threads = [
        threading.Thread(target=work, args=(part,), daemon=True)
        for part in partition_dataset(data, assignment)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds_here(100))
    assert not errors, errors
    return [results[worker] for worker in range(workers)]
