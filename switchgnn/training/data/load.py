# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Data sets by name."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.graphs import bundled, planetoid
from switchgnn.planner.graphs.bundled import DIGITS_PREFIX
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.graphs.npz_file import load_npz
from switchgnn.planner.graphs.shaped import RANDOM_PREFIX, load_random
from switchgnn.training.data.dataset import (
    Dataset,
    dataset_from_graph,
    normalize_rows,
    split_of_codes,
    split_vertices,
)
from switchgnn.training.data.outside import (
    PRODUCTS,
    download_planetoid,
    load_of_pyg,
    load_products,
)
from switchgnn.training.errors import DatasetError

# The folder of data sets, to which they are downloaded as well.
DEFAULT_ROOT = Path("data")
PLANETOID = ("citeseer", "cora", "pubmed")
_ARCHIVE = ".npz"
# Of random graphs: features, classes, and the spread of the classes' means; the spread within a
# class is 1.
FEATURES, CLASSES, _DISTANCE = 32, 8, 1.0


def load_dataset(
    name: str,
    root: str | Path | None = None,
    seed: int = 0,
    *,
    normalize_features: bool | None = None,
) -> Dataset:
    """Load the data set with a name; docs/data.md lists them.

    Args:
        name: one of DATASETS, in upper or lower case; or the digits with more or fewer
            neighbours, ``digits:NEIGHBOURS``, or a random graph, ``random:VERTICES:EDGES:SEED``;
            or a file ``.npz`` of the planner's form, with features and labels.
        root: the folder with the files, or to download them to; None is data/ in the current
            folder. Digits and karate need none.
        seed: the seed of the split, if the data set comes without one.
        normalize_features: whether each row of the features is made to sum to 1; None does
            it for the Planetoid data sets only, as is usual.

    Returns:
        The data set.

    Raises:
        DatasetError: an unknown name, a missing package, a failed download or bad files.
        PlannerError: a Planetoid file or the name of a random graph is not valid.
    """
    key = name.lower()
    if key.endswith(_ARCHIVE):
        return _graph_file(Path(name), seed)
    if key.startswith(RANDOM_PREFIX):
        return _random(key, seed)
    if key.startswith(DIGITS_PREFIX):
        return _split_at_random(bundled.load_bundled(key), seed)
    if key not in DATASETS:
        raise DatasetError(
            f"no data set {name}; there are {', '.join(DATASETS)}, digits:NEIGHBOURS, "
            "random:VERTICES:EDGES:SEED, and files .npz"
        )
    data = DATASETS[key](key, DEFAULT_ROOT if root is None else Path(root), seed)
    if normalize_features is None:
        normalize_features = key in PLANETOID
    return replace(data, features=normalize_rows(data.features)) if normalize_features else data


def _graph_file(path: Path, seed: int) -> Dataset:
    """Load an archive of the planner's form."""
    graph = load_npz(path)
    for array in ("features", "labels"):
        if getattr(graph, array) is None:
            raise DatasetError(
                f"{path} has no array {array}: training needs indptr, indices, features and labels"
            )
    return _split_at_random(graph, seed)


def _random(spec: str, seed: int) -> Dataset:
    """Load ``random:VERTICES:EDGES:SEED``, for measuring times and bytes.

    The class of a vertex is drawn; its features are normally distributed around the mean of
    its class. The edges do not depend on the classes, so accuracies mean little.
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


def _digits(name: str, _root: Path, seed: int) -> Dataset:
    """Load the digits: 1,797 vertices, 64 features, 10 classes."""
    return _split_at_random(bundled.load_bundled(name), seed)


def _karate(_name: str, _root: Path, seed: int) -> Dataset:
    """Load the karate club: 34 vertices, one-hot vertex ids as features, 2 classes of 17."""
    graph = bundled.load_karate()
    return _split_at_random(graph, seed, np.eye(graph.vertices, dtype=np.float32))


def _split_at_random(
    graph: Graph, seed: int, features: NDArray[np.float32] | None = None
) -> Dataset:
    features = graph.features if features is None else features
    assert features is not None  # noqa: S101 - the callers' graphs have both
    assert graph.labels is not None  # noqa: S101
    split = split_vertices(graph.labels, seed)
    return dataset_from_graph(graph, features=features, labels=graph.labels, split=split)


def _planetoid(name: str, root: Path, _seed: int) -> Dataset:
    """Read ind.NAME.* without executing the pickles in these files."""
    folder = _find_planetoid(name, root)
    if folder is None:
        download_planetoid(name, root)
        folder = root / name / "raw"
    graph = planetoid.load_planetoid(folder, name)
    assert graph.features is not None  # noqa: S101 - a Planetoid graph has all three
    assert graph.labels is not None  # noqa: S101
    assert graph.split is not None  # noqa: S101
    return dataset_from_graph(
        graph, features=graph.features, labels=graph.labels, split=split_of_codes(graph.split)
    )


def _find_planetoid(name: str, root: Path) -> Path | None:
    """Return root, root/raw or root/NAME/raw (in any case), the first with ind.NAME.graph."""
    named = [path / "raw" for path in root.glob("*") if path.name.lower() == name]
    for folder in (root, root / "raw", *sorted(named)):
        if (folder / f"ind.{name}.graph").is_file():
            return folder
    return None


DATASETS: Mapping[str, Callable[[str, Path, int], Dataset]] = {
    "digits": _digits,
    "karate": _karate,
    **dict.fromkeys(PLANETOID, _planetoid),
    **dict.fromkeys(("reddit", "yelp"), lambda name, root, _: load_of_pyg(name, root)),
    PRODUCTS: lambda _, root, __: load_products(root),
}
