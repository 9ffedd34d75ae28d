# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Data sets on graphs that the planner reads or makes: digits, karate, Planetoid, random."""

from pathlib import Path

import numpy as np

from switchgnn.planner.graphs import bundled, planetoid
from switchgnn.planner.graphs.npz_file import load_npz
from switchgnn.planner.graphs.random_graph import load_random
from switchgnn.training.data.dataset import Dataset, dataset_from_graph
from switchgnn.training.data.split import split_of_codes, split_vertices
from switchgnn.training.errors import DatasetError

# Of random graphs.
FEATURES = 32
CLASSES = 8
# The spread of the classes' means; the spread within a class is 1.
_DISTANCE = 1.0


def load_digits(name: str, seed: int) -> Dataset:
    """Return the digits: 1,797 vertices, 64 features, 10 classes and a random split.

    Args:
        name: ``digits``, or ``digits:NEIGHBOURS``.
        seed: of the split.

    Returns:
        The data set.

    Raises:
        PlannerError: the name is malformed.
    """
    graph = bundled.load_bundled(name)
    assert graph.features is not None  # noqa: S101 - digits have both
    assert graph.labels is not None  # noqa: S101
    split = split_vertices(graph.labels, seed)
    return dataset_from_graph(graph, features=graph.features, labels=graph.labels, split=split)


def load_karate(seed: int) -> Dataset:
    """Return the karate club: 34 vertices, one-hot vertex ids as features, 2 classes of 17."""
    graph = bundled.load_karate()
    assert graph.labels is not None  # noqa: S101 - karate has them
    features = np.eye(graph.vertices, dtype=np.float32)
    split = split_vertices(graph.labels, seed)
    return dataset_from_graph(graph, features=features, labels=graph.labels, split=split)


def load_graph_file(path: Path, seed: int) -> Dataset:
    """Return the data set in an archive of the planner's form, with a random split.

    Args:
        path: an ``.npz`` with the arrays indptr, indices, features and labels, as ``load_npz``
            takes it.
        seed: of the split.

    Returns:
        The data set.

    Raises:
        PlannerError: the file cannot be read, or holds something else.
        DatasetError: it has no features or no labels.
    """
    graph = load_npz(path)
    if graph.features is None or graph.labels is None:
        missing = "features" if graph.features is None else "labels"
        raise DatasetError(
            f"{path} has no array {missing}: training needs indptr, indices, features and labels"
        )
    split = split_vertices(graph.labels, seed)
    return dataset_from_graph(graph, features=graph.features, labels=graph.labels, split=split)


def find_planetoid(name: str, root: Path) -> Path | None:
    """Return the folder that holds ind.NAME.graph: root, root/raw or root/NAME/raw; or None.

    The case of NAME in root/NAME does not matter.
    """
    named = [path / "raw" for path in root.glob("*") if path.name.lower() == name]
    for folder in (root, root / "raw", *sorted(named)):
        if (folder / f"ind.{name}.graph").is_file():
            return folder
    return None


def read_planetoid(name: str, folder: Path) -> Dataset:
    """Read ind.NAME.* without executing the pickles in these files.

    Raises:
        PlannerError: a file is missing or does not hold what it should.
    """
    graph = planetoid.load_planetoid(folder, name)
    assert graph.features is not None  # noqa: S101 - a Planetoid graph has all three
    assert graph.labels is not None  # noqa: S101
    assert graph.split is not None  # noqa: S101
    return dataset_from_graph(
        graph, features=graph.features, labels=graph.labels, split=split_of_codes(graph.split)
    )


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
