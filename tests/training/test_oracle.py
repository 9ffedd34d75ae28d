# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Training on many workers is training on one: losses of every epoch, and the weights.

The oracle is a plain loop of PyG on the whole graph, which shares no code with the
trainer. In fixed point a sum of n features of magnitude m is off by n * m / 2^31 at
most, below the rounding of float32 for the fan-ins here; so the tolerance is that of
float32 sums in another order, carried through the epochs.
"""

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from switchgnn.training.data.load import load_dataset  # noqa: E402
from switchgnn.training.gradients import Sums  # noqa: E402
from switchgnn.training.layers.models import ModelOptions, build_model  # noqa: E402
from switchgnn.training.layers.whole import distribute  # noqa: E402
from switchgnn.training.partition import partition_dataset  # noqa: E402
from switchgnn.training.sums.remote_sum import RemoteSum  # noqa: E402
from switchgnn.training.trainer import Trainer, TrainOptions  # noqa: E402
from tests.support.speed import seconds_here  # noqa: E402
from tests.training.gathering import Gathering  # noqa: E402
from tests.training.plain_loop import train_plainly  # noqa: E402

TOLERANCE = 2e-4
EPOCHS = 8


class ThreadSums(Sums):
    """Adds up over threads; the last to come adds."""

    def __init__(self, shared, *, factor=1.0):
        super().__init__()
        self._alone = False
        self.shared = shared
        self.factor = factor

    def _reduce(self, values):
        barrier, pile = self.shared
        pile.append(values.clone() * self.factor)
        barrier.wait()
        total = sum(pile)
        barrier.wait()
        values.copy_(total)
        if barrier.wait() == 0:
            pile.clear()
        barrier.wait()


def train_in_threads(data, workers, *, model, spoil=None, factor=1.0, dropout=0.0, seed=0):
    assignment = np.random.default_rng(5).permutation(np.arange(data.vertices) % workers)
    gathering = Gathering(data.graph, assignment, spoil=spoil)
    shared = (threading.Barrier(workers, timeout=seconds_here(60)), [])
    shape = ModelOptions(model=model, layers=3, hidden=8, dropout=dropout)
    options = TrainOptions(
        epochs=EPOCHS, weight_decay=5e-4, evaluate_every=EPOCHS, input_dropout=dropout / 2
    )
    torch.manual_seed(0)
    state = build_model(shape, data.features.shape[1], data.classes).state_dict()
    results, errors = {}, []

    def work(part):
        try:
            net = build_model(shape, data.features.shape[1], data.classes)
            net.load_state_dict(state)
            with RemoteSum(gathering.transport(part.worker)) as remote:
                distribute(net, part, remote, seed=seed)
                sums = ThreadSums(shared, factor=factor if part.worker == 0 else 1.0)
                reports = list(Trainer(net, part, remote, options, sums=sums).run())
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


def distance(data, workers, **options):
    """The largest difference of losses and weights from the plain loop, and the accuracies."""
    losses, weights, accuracies = train_plainly(
        data, model=options["model"], layers=3, hidden=8, epochs=EPOCHS, seed=0
    )
    results = train_in_threads(data, workers, **options)
    found = [report.loss for report in results[0][0]]
    off = max(abs(a - b) for a, b in zip(losses, found, strict=True))
    for _, state in results:
        off = max(off, *(float((state[name] - weights[name]).abs().max()) for name in weights))
    return off, accuracies, results[0][0][-1].accuracy


@pytest.fixture(scope="module")
def karate():
    return load_dataset("karate")


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
@pytest.mark.parametrize("model", ["gcn", "sage", "gin"])
def test_many_workers_train_like_one(karate, model, workers):
    off, expected, found = distance(karate, workers, model=model)
    assert off < TOLERANCE
    for name, share in expected.items():
        assert getattr(found, name) == pytest.approx(share)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda u, v: (u[1:], v[1:]), id="a neighbour dropped"),
        pytest.param(lambda u, v: (np.append(u, u[0]), np.append(v, v[0])), id="counted twice"),
    ],
)
def test_one_wrong_neighbour_is_found(karate, spoil):
    off, *_ = distance(karate, 2, model="gcn", spoil=spoil)
    assert off > 5 * TOLERANCE


def test_wrongly_weighted_labels_are_found(karate):
    off, *_ = distance(karate, 2, model="gcn", factor=1.1)
    assert off > 5 * TOLERANCE


def losses_with_dropout(data, workers, seed=0):
    results = train_in_threads(data, workers, model="gcn", dropout=0.5, seed=seed)
    return [report.loss for report in results[0][0]]


def test_dropout_drops_the_same_however_many_workers(karate):
    alone = losses_with_dropout(karate, 1)
    assert losses_with_dropout(karate, 4) == pytest.approx(alone, abs=TOLERANCE)
    without, *_ = train_plainly(karate, model="gcn", layers=3, hidden=8, epochs=EPOCHS, seed=0)
    assert max(abs(a - b) for a, b in zip(alone, without, strict=True)) > 5 * TOLERANCE


def test_another_seed_drops_others(karate):
    first, second = (losses_with_dropout(karate, 1, seed=seed) for seed in (0, 1))
    assert max(abs(a - b) for a, b in zip(first, second, strict=True)) > 5 * TOLERANCE
