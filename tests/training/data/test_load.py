# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys

import numpy as np
import pytest

from switchgnn.planner import load_graph
from switchgnn.training import load_dataset
from tests.training.helpers import pairs, refusal, write_planetoid


def masks(data):
    return np.stack([data.train, data.validation, data.test])


def test_digits():
    data = load_dataset("digits")
    assert data.graph.digest() == load_graph("digits").digest()
    assert data.features.shape == (1797, 64)
    assert (data.classes, data.multilabel, data.undirected) == (10, False, True)
    assert np.array_equal(masks(data).sum(axis=0), np.ones(1797))
    shares = masks(data).mean(axis=1)
    assert np.allclose(shares, [0.6, 0.2, 0.2], atol=0.005)
    for label in range(10):
        assert masks(data)[:, data.labels == label].any(axis=1).all()


def test_karate():
    data = load_dataset("Karate")
    assert np.array_equal(data.features, np.eye(34))
    assert np.bincount(data.labels).tolist() == [17, 17]
    assert (data.classes, len(data.self_loops)) == (2, 0)
    assert masks(data).sum(axis=1).tolist() == [22, 6, 6]


def test_the_seed_changes_only_the_split():
    one, same, other = (load_dataset("karate", seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(masks(one), masks(same))
    assert not np.array_equal(masks(one), masks(other))
    assert one.graph.digest() == other.graph.digest()


@pytest.mark.parametrize("place", [".", "raw", "cora/raw", "Cora/raw"])
def test_planetoid_from_raw_files(tmp_path, place):
    write_planetoid(tmp_path / place)
    data = load_dataset("cora", tmp_path, normalize_features=False)
    graph = load_graph(str(tmp_path / place / "cora"))
    assert pairs(data.graph) == pairs(graph)
    assert np.array_equal(data.features, graph.features)
    assert np.array_equal(data.labels, graph.labels)
    assert masks(data).sum(axis=1).tolist() == [12, 500, 20]
    assert 3 in data.self_loops


def test_planetoid_features_are_normalised_if_nothing_else_is_said(tmp_path):
    write_planetoid(tmp_path)
    raw = load_dataset("cora", tmp_path, normalize_features=False).features
    features = load_dataset("cora", tmp_path).features
    sums = raw.sum(axis=1, keepdims=True)
    assert np.allclose(features, raw / np.maximum(sums, 1))
    assert not features[1].any()
    assert features.dtype == np.float32


def test_an_unknown_name_is_answered_with_the_known_ones():
    with refusal("digits"):
        load_dataset("corra")


def test_options_and_bundled_data_sets_need_no_torch():
    code = (
        "import sys\n"
        "import switchgnn.training.asked\n"
        "from switchgnn.training import load_dataset\n"
        "heavy = ('torch', 'torch_geometric', 'ogb', 'pandas')\n"
        "load_dataset('digits'), load_dataset('karate')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
