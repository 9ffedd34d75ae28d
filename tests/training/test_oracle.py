# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Training on many workers is training on one: losses of every epoch, and the weights.

The oracle is a plain loop of PyG on the whole graph, which shares no code with the
trainer. In fixed point a sum of n features of magnitude m is off by n * m / 2^31 at
most, below the rounding of float32 for the fan-ins here; so the tolerance is that of
float32 sums in another order, carried through the epochs.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from switchgnn.training.data.load import load_dataset  # noqa: E402
from tests.training.plain_loop import train_plainly  # noqa: E402
from tests.training.threads import EPOCHS, train_in_threads  # noqa: E402

TOLERANCE = 2e-4


def distance(data, workers, *, hidden=8, **options):
    """The largest difference of losses and weights from the plain loop, and the accuracies."""
    losses, weights, accuracies = train_plainly(
        data, model=options["model"], layers=3, hidden=hidden, epochs=EPOCHS, seed=0
    )
    results = train_in_threads(data, workers, hidden=hidden, **options)
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


@pytest.mark.parametrize("precompute", [True, False], ids=["kept", "each time"])
@pytest.mark.parametrize("model", ["gcn", "sage"])
def test_the_same_where_features_are_summed_before_the_map(karate, model, precompute):
    """Karate has 34 features, fewer than the hidden units here."""
    off, *_ = distance(karate, 2, model=model, hidden=40, precompute=precompute)
    assert off < TOLERANCE


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
