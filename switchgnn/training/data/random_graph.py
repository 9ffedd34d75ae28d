# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Random graphs with features and classes, for measurements; all follow from the name."""

import numpy as np

from switchgnn.planner.graphs.random_graph import PREFIX, load_random
from switchgnn.training.data.dataset import Dataset, dataset_from_graph
from switchgnn.training.data.split import split_vertices

__all__ = ["PREFIX", "load_random_dataset"]

FEATURES = 32
CLASSES = 8
# The spread of the classes' means; the spread within a class is 1.
_DISTANCE = 1.0


def load_random_dataset(spec: str, seed: int) -> Dataset:
    """Return the graph ``random:VERTICES:EDGES:SEED`` with 32 features and 8 classes.

    The class of a vertex is drawn; its features are normally distributed around the mean of
    its class. The edges do not depend on the classes, so accuracies mean little: the data
    sets are for measuring times and bytes.

    Args:
        spec: the name, as for ``load_graph``.
        seed: the seed of the split.

    Returns:
        The data set.

    Raises:
        PlannerError: the name is not valid; see ``load_graph``.
    """
    graph = load_random(spec)
    random = np.random.default_rng(int(spec.rsplit(":", 1)[1]))
    labels = random.integers(CLASSES, size=graph.vertices, dtype=np.int64)
    means = random.standard_normal((CLASSES, FEATURES)) * _DISTANCE
    features = means[labels] + random.standard_normal((graph.vertices, FEATURES))
    return dataset_from_graph(
        graph,
        features=features.astype(np.float32),
        labels=labels,
        split=split_vertices(labels, seed),
        classes=CLASSES,
    )
