# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Training on many workers is training on one: losses of every epoch, and the weights."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from switchgnn.training.data.load import load_dataset  # noqa: E402
from tests.training.threads import TOLERANCE, distance, train_in_threads  # noqa: E402


def off_by(data, workers, *, model, hidden=8, **options):
    results = train_in_threads(data, workers, model=model, hidden=hidden, **options)
    return distance(data, results, model=model, hidden=hidden)[0]


@pytest.fixture(scope="module")
def karate():
    return load_dataset("karate")


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
@pytest.mark.parametrize("model", ["gcn", "sage", "gin"])
def test_many_workers_train_like_one(karate, model, workers):
    results = train_in_threads(karate, workers, model=model)
    off, expected = distance(karate, results, model=model)
    assert off < TOLERANCE
    for name, share in expected.items():
        assert getattr(results[0][0][-1].accuracy, name) == pytest.approx(share)


@pytest.mark.parametrize("precompute", [True, False], ids=["kept", "each time"])
@pytest.mark.parametrize("model", ["gcn", "sage"])
def test_the_same_where_features_are_summed_before_the_map(karate, model, precompute):
    """Karate has 34 features, fewer than the hidden units here."""
    assert off_by(karate, 2, model=model, hidden=40, precompute=precompute) < TOLERANCE


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda u, v: (u[1:], v[1:]), id="a neighbour dropped"),
        pytest.param(lambda u, v: (np.append(u, u[0]), np.append(v, v[0])), id="counted twice"),
    ],
)
def test_one_wrong_neighbour_is_found(karate, spoil):
    assert off_by(karate, 2, model="gcn", spoil=spoil) > 5 * TOLERANCE


def test_wrongly_weighted_labels_are_found(karate):
    assert off_by(karate, 2, model="gcn", factor=1.1) > 5 * TOLERANCE


def losses_with_dropout(data, workers, seed=0):
    results = train_in_threads(data, workers, model="gcn", dropout=0.5, seed=seed)
    return [report.loss for report in results[0][0]]


def test_dropout_drops_the_same_however_many_workers(karate):
    alone = losses_with_dropout(karate, 1)
    assert losses_with_dropout(karate, 4) == pytest.approx(alone, abs=TOLERANCE)
    without = [report.loss for report in train_in_threads(karate, 1, model="gcn")[0][0]]
    assert max(abs(a - b) for a, b in zip(alone, without, strict=True)) > 5 * TOLERANCE


def test_another_seed_drops_others(karate):
    first, second = (losses_with_dropout(karate, 1, seed=seed) for seed in (0, 1))
    assert max(abs(a - b) for a, b in zip(first, second, strict=True)) > 5 * TOLERANCE
