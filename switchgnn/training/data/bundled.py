# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Two small data sets that need no download: digits and karate."""

import numpy as np

from switchgnn.planner.graphs import bundled as load_bundled
from switchgnn.training.data.dataset import Dataset, dataset_from_graph
from switchgnn.training.data.split import split_vertices


def load_digits(seed: int) -> Dataset:
    """Return the digits: 1,797 vertices, 64 features, 10 classes and a random split."""
    graph = load_bundled.load_digits()
    assert graph.features is not None  # noqa: S101 - digits have both
    assert graph.labels is not None  # noqa: S101
    split = split_vertices(graph.labels, seed)
    return dataset_from_graph(graph, features=graph.features, labels=graph.labels, split=split)


def load_karate(seed: int) -> Dataset:
    """Return the karate club: 34 vertices, one-hot vertex ids as features, 2 classes of 17."""
    graph = load_bundled.load_karate()
    assert graph.labels is not None  # noqa: S101 - karate has them
    features = np.eye(graph.vertices, dtype=np.float32)
    split = split_vertices(graph.labels, seed)
    return dataset_from_graph(graph, features=features, labels=graph.labels, split=split)
