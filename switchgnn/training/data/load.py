# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Data sets by name."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.graphs import bundled, planetoid
from switchgnn.planner.graphs.bundled import DIGITS_PREFIX
from switchgnn.planner.graphs.graph import (
    SPLIT_NONE,
    SPLIT_TEST,
    SPLIT_TRAIN,
    SPLIT_VALIDATION,
    graph_from_edges,
)
from switchgnn.planner.graphs.npz_file import load_npz
from switchgnn.planner.graphs.random_graph import PREFIX, load_random
from switchgnn.training.data.dataset import (
    Dataset,
    Split,
    dataset_from_graph,
    normalize_rows,
    read_dataset,
    split_of_codes,
    split_vertices,
    write_dataset,
)
from switchgnn.training.data.outside import folder_of, load_outside
from switchgnn.training.errors import DatasetError

NAME = "ogbn-products"
# The folder that OGB uses below the root, and our file in it, which is read the next time.
FOLDER, KEPT = "ogbn_products", "switchgnn.npz"
# The file that OGB itself keeps, which is a pickle.
OGB_KEPT = Path("processed", "data_processed")
_PARTS = {"train": SPLIT_TRAIN, "valid": SPLIT_VALIDATION, "test": SPLIT_TEST}


def load_products(root: Path) -> Dataset:
    """Load ogbn-products: 2,449,029 products, 100 features, 47 classes.

    OGB reads the files of root/ogbn_products, or asks and downloads them. Its result is
    kept in an archive of plain arrays, because PyTorch refuses OGB's own pickle since 2.6.

    Raises:
        DatasetError: no OGB, no network, damaged files, or a download that was declined.
    """
    folder = root / FOLDER
    if (folder / KEPT).is_file():
        return read_dataset(folder / KEPT)
    if (folder / OGB_KEPT).exists():
        raise DatasetError(
            f"{folder / OGB_KEPT} is a pickle that OGB made, which is not read because that "
            "could run code; delete it, and it will be made again from the files in raw"
        )

    def load() -> Dataset:
        from ogb.nodeproppred import NodePropPredDataset  # noqa: PLC0415 - optional, and slow

        loader = NodePropPredDataset(name=NAME, root=str(root))
        return _dataset(loader[0], loader.get_idx_split())

    files = "the content of OGB's products.zip"
    data = load_outside(NAME, folder, load, files=files, package="ogb", extra="ogb")
    write_dataset(data, folder / KEPT)
    return data


def _dataset(content: Any, parts: Any) -> Dataset:  # noqa: ANN401 - OGB has no types
    found, labels = content
    source, destination = found["edge_index"]
    vertices = int(found["num_nodes"])
    codes = np.full(vertices, SPLIT_NONE, dtype=np.int8)
    for part, code in _PARTS.items():
        codes[parts[part]] = code
    features: NDArray[np.float32] = found["node_feat"].astype(np.float32, copy=False)
    return dataset_from_graph(
        graph_from_edges(source, destination, name=NAME, vertices=vertices, directed=True),
        features=features,
        labels=labels.reshape(vertices).astype(np.int64, copy=False),
        split=split_of_codes(codes),
    )


_PACKAGE: Mapping[str, str] = {"package": "torch_geometric", "extra": "training"}


def download_planetoid(name: str, root: Path) -> None:
    """Download the files ind.NAME.* to root/NAME/raw.

    Raises:
        DatasetError: no PyTorch Geometric, or no network.
    """

    def load() -> None:
        from torch_geometric.datasets import Planetoid  # noqa: PLC0415

        Planetoid(str(root), name)

    files = f"the eight files ind.{name}.*"
    load_outside(name, root / name / "raw", load, files=files, **_PACKAGE)


def load_reddit(root: Path) -> Dataset:
    """Load Reddit: 232,965 posts, 602 features, 41 classes.

    Raises:
        DatasetError: no PyTorch Geometric, no network, or damaged files.
    """
    folder = folder_of("reddit", root, "reddit_graph.npz")

    def load() -> Dataset:
        from torch_geometric.datasets import Reddit  # noqa: PLC0415

        return _pyg_dataset("reddit", Reddit(str(folder))[0])

    files = "reddit_data.npz and reddit_graph.npz"
    return load_outside("reddit", folder / "raw", load, files=files, **_PACKAGE)


def load_yelp(root: Path) -> Dataset:
    """Load Yelp: 716,847 reviewers, 300 features, any of 100 classes.

    Raises:
        DatasetError: no PyTorch Geometric, no network, or damaged files.
    """
    folder = folder_of("yelp", root, "adj_full.npz")

    def load() -> Dataset:
        from torch_geometric.datasets import Yelp  # noqa: PLC0415

        return _pyg_dataset("yelp", Yelp(str(folder))[0])

    files = "adj_full.npz, feats.npy, class_map.json and role.json"
    return load_outside("yelp", folder / "raw", load, files=files, **_PACKAGE)


def _pyg_dataset(name: str, data: Any) -> Dataset:  # noqa: ANN401 - a Data, which has no types
    source, destination = data.edge_index.numpy()
    labels = data.y.numpy()
    multilabel = labels.ndim == 2
    graph = graph_from_edges(source, destination, name=name, vertices=len(labels), directed=True)
    return dataset_from_graph(
        graph,
        features=data.x.numpy().astype(np.float32, copy=False),
        labels=labels.astype(np.float32 if multilabel else np.int64, copy=False),
        split=Split(
            train=data.train_mask.numpy(),
            validation=data.val_mask.numpy(),
            test=data.test_mask.numpy(),
        ),
    )


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


# The folder in which data sets are searched and to which they are downloaded.
DEFAULT_ROOT = Path("data")
PLANETOID = ("citeseer", "cora", "pubmed")
_ARCHIVE = ".npz"

_Loader = Callable[[str, Path, int], Dataset]


def load_dataset(
    name: str,
    root: str | Path | None = None,
    seed: int = 0,
    *,
    normalize_features: bool | None = None,
) -> Dataset:
    """Load the data set with a name; docs/training.md lists them.

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
        return load_graph_file(Path(name), seed)
    if key.startswith(PREFIX):
        return load_random_dataset(key, seed)
    if key.startswith(DIGITS_PREFIX):
        return load_digits(key, seed)
    if key not in DATASETS:
        raise DatasetError(
            f"no data set {name}; there are {', '.join(DATASETS)}, digits:NEIGHBOURS, "
            "random:VERTICES:EDGES:SEED, and files .npz"
        )
    data = DATASETS[key](key, DEFAULT_ROOT if root is None else Path(root), seed)
    if normalize_features is None:
        normalize_features = key in PLANETOID
    return replace(data, features=normalize_rows(data.features)) if normalize_features else data


def _digits(name: str, _root: Path, seed: int) -> Dataset:
    return load_digits(name, seed)


def _karate(_name: str, _root: Path, seed: int) -> Dataset:
    return load_karate(seed)


def _planetoid(name: str, root: Path, _seed: int) -> Dataset:
    folder = find_planetoid(name, root)
    if folder is None:
        download_planetoid(name, root)
        folder = root / name / "raw"
    # Downloaded files are read like a user's own, so both give the same data set.
    return read_planetoid(name, folder)


def _reddit(_name: str, root: Path, _seed: int) -> Dataset:
    return load_reddit(root)


def _yelp(_name: str, root: Path, _seed: int) -> Dataset:
    return load_yelp(root)


def _products(_name: str, root: Path, _seed: int) -> Dataset:
    return load_products(root)


DATASETS: Mapping[str, _Loader] = {
    "digits": _digits,
    "karate": _karate,
    **dict.fromkeys(PLANETOID, _planetoid),
    "reddit": _reddit,
    "yelp": _yelp,
    NAME: _products,
}
