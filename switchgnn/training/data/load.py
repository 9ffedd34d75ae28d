# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Data sets by name."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from switchgnn.planner.graphs.bundled import DIGITS_PREFIX
from switchgnn.planner.graphs.random_graph import PREFIX
from switchgnn.training.data import ogb as load_ogb
from switchgnn.training.data import planner_graphs
from switchgnn.training.data import pyg as load_pyg
from switchgnn.training.data.dataset import Dataset, normalize_rows
from switchgnn.training.errors import DatasetError

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
        return planner_graphs.load_graph_file(Path(name), seed)
    if key.startswith(PREFIX):
        return planner_graphs.load_random_dataset(key, seed)
    if key.startswith(DIGITS_PREFIX):
        return planner_graphs.load_digits(key, seed)
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
    return planner_graphs.load_digits(name, seed)


def _karate(_name: str, _root: Path, seed: int) -> Dataset:
    return planner_graphs.load_karate(seed)


def _planetoid(name: str, root: Path, _seed: int) -> Dataset:
    folder = planner_graphs.find_planetoid(name, root)
    if folder is None:
        load_pyg.download_planetoid(name, root)
        folder = root / name / "raw"
    # Downloaded files are read like a user's own, so both give the same data set.
    return planner_graphs.read_planetoid(name, folder)


def _reddit(_name: str, root: Path, _seed: int) -> Dataset:
    return load_pyg.load_reddit(root)


def _yelp(_name: str, root: Path, _seed: int) -> Dataset:
    return load_pyg.load_yelp(root)


def _products(_name: str, root: Path, _seed: int) -> Dataset:
    return load_ogb.load_products(root)


DATASETS: Mapping[str, _Loader] = {
    "digits": _digits,
    "karate": _karate,
    **dict.fromkeys(PLANETOID, _planetoid),
    "reddit": _reddit,
    "yelp": _yelp,
    load_ogb.NAME: _products,
}
