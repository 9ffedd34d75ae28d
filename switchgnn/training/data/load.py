"""Data sets by name, also those that PyTorch Geometric and OGB download."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Float32s
from switchgnn.base.files import format_of, whole_file, writing
from switchgnn.base.machine import how_to_install
from switchgnn.base.names import no_such
from switchgnn.planner.graphs import load as graphs
from switchgnn.planner.graphs.array_file import MASKS, as_features, class_labels
from switchgnn.planner.graphs.edge_list import EDGE_WEIGHTS
from switchgnn.planner.graphs.graph import Graph, graph_from_edges
from switchgnn.planner.graphs.shaped import RANDOM, load_random
from switchgnn.training.base.errors import DatasetError, first_line
from switchgnn.training.data.dataset import (
    Dataset,
    Split,
    dataset_from_graph,
    normalize_rows,
    split_of_codes,
    split_vertices,
)
from switchgnn.training.data.read import load_files

PRODUCTS = "ogbn-products"
# The features, labels and split of GraphSAINT's data sets.
_BESIDE_SAINT = ("feats.npy", "class_map.json", "role.json")
# What later loads read of OGB's data, and its own cache, a pickle.
_KEPT, _OGB_KEPT = "switchgnn.npz", Path("processed", "data_processed")
PLANETOID = ("citeseer", "cora", "pubmed")
# By name: PyG's class, the file of the graph, and all files.
_OF_PYG: Mapping[str, tuple[str, str, str]] = {
    **{it: ("Planetoid", f"ind.{it}.graph", f"the eight files ind.{it}.*") for it in PLANETOID},
    "reddit": ("Reddit", graphs.REDDIT, f"{graphs.REDDIT} and reddit_data.npz"),
    "yelp": ("Yelp", graphs.SAINT, f"{graphs.SAINT}, {', '.join(_BESIDE_SAINT)}"),
}
# The folder of data sets, to which they are downloaded as well.
DEFAULT_ROOT = Path("data")
NEED_PYTORCH = (*_OF_PYG, PRODUCTS)
_FLOAT_BYTES = 4
# Of random graphs; the spread of the classes' means, where that within a class is 1.
FEATURES, CLASSES, _DISTANCE = 32, 8, 1.0


def load_dataset(
    name: str,
    root: str | Path | None = None,
    seed: int = 0,
    *,
    normalize_features: bool | None = None,
    edge_weights: bool | None = None,
) -> Dataset:
    """Load the data set with a name; docs/data.md lists them.

    Args:
        name: one of DATASETS, in upper or lower case; or the digits with more or fewer
            neighbours, ``digits:NEIGHBOURS``, or a random graph, ``random:VERTICES:EDGES:SEED``;
            or a file or folder of a graph with features and labels; docs/data.md lists them.
        root: the folder with the files, or to download them to; None is data/ in the current
            folder. Digits and karate need none.
        seed: the seed of the split, if the data set comes without one.
        normalize_features: whether each row of the features is made to sum to 1; None does
            it for the Planetoid data sets only, as is usual.
        edge_weights: see load_graph.

    Returns:
        The data set.

    Raises:
        DatasetError: an unknown name, a missing package, a failed download or bad files.
        PlannerError: a Planetoid file or the name of a random graph is not valid.
    """
    key = check_name(name)
    load = _loader(key)
    if load is None:
        return _graph_file(Path(name), seed, edge_weights=edge_weights)
    if edge_weights:
        raise DatasetError(f"Data set {key} has no edge weights: leave {EDGE_WEIGHTS} out.")
    data = load(key, DEFAULT_ROOT if root is None else Path(root), seed)
    if normalize_features is None:
        normalize_features = key in PLANETOID
    return replace(data, features=normalize_rows(data.features)) if normalize_features else data


def check_name(name: str) -> str:
    """Return the name of a data set in lower case, if there is one or a file."""
    key, file = name.lower(), Path(name).is_dir() or format_of(Path(name)) in graphs.SUFFIXES
    if file and not Path(name).exists():
        raise DatasetError(f"There is no file {name}: give the path of a data set.")
    if not (file or _loader(key)):
        also = ", digits:NEIGHBOURS, random:VERTICES:EDGES:SEED, folders, and files such as .npz"
        raise DatasetError(no_such("data set", name, DATASETS, also=also))
    return key


def _loader(key: str) -> Callable[[str, Path, int], Dataset] | None:
    kind, numbers, _ = key.partition(":")
    return {RANDOM: _random, graphs.DIGITS: _digits}.get(kind) if numbers else DATASETS.get(key)


def _graph_file(name: Path, seed: int, *, edge_weights: bool | None) -> Dataset:
    file = graphs.graph_file(name)
    if file.name == graphs.SAINT and file.with_name(_BESIDE_SAINT[0]).exists():
        features, labels, split = map(file.with_name, _BESIDE_SAINT)
        return load_files(file, features, labels, split=split, edge_weights=edge_weights)
    graph = graphs.load_graph(str(file), edge_weights=edge_weights)
    for array in ("features", "labels"):
        if getattr(graph, array) is None:
            raise DatasetError(
                f"{name} has no array {array}: training needs a graph, features and labels, from "
                "one file or from --edges, --node-features and --labels."
            )
    return _with_split(graph, seed)


def _random(spec: str, _root: Path, seed: int) -> Dataset:
    """Load ``random:VERTICES:EDGES:SEED``, for measuring times and bytes."""
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


def _digits(spec: str, _root: Path, seed: int) -> Dataset:
    return _with_split(graphs.load_digits(spec), seed)


def _karate(_name: str, _root: Path, seed: int) -> Dataset:
    """Load the karate club: 34 vertices, one-hot vertex ids as features, 2 classes of 17."""
    graph = graphs.load_karate()
    return _with_split(graph, seed, np.eye(graph.vertices, dtype=np.float32))


def _with_split(graph: Graph, seed: int, features: Float32s | None = None) -> Dataset:
    features = graph.features if features is None else features
    assert features is not None  # noqa: S101 - the callers' graphs have both
    assert graph.labels is not None  # noqa: S101
    split = (
        split_vertices(graph.labels, seed) if graph.split is None else split_of_codes(graph.split)
    )
    return dataset_from_graph(graph, features=features, labels=graph.labels, split=split)


def _of_pyg(name: str, root: Path, seed: int) -> Dataset:
    """Load a data set from files as PyG downloads them; no pickle is executed."""
    kind, file, files = _OF_PYG[name]
    named = [path / "raw" for path in root.glob("*") if path.name.lower() == name]
    folders = (root, root / "raw", *sorted(named))
    folder = next((each for each in folders if (each / file).is_file()), None)
    if folder is None:
        folder = root / name / "raw"
        with _outside(name, folder, files=files, package="torch_geometric", extra="training"):
            from torch_geometric import datasets  # noqa: PLC0415 - optional, and slow

            where = (root, name) if name in PLANETOID else (root / name,)
            getattr(datasets, kind)(*map(str, where))
    data = _graph_file(folder / file, seed, edge_weights=False)
    return replace(data, graph=replace(data.graph, name=name))


def _of_ogb(name: str, root: Path, seed: int) -> Dataset:
    """Load ogbn-products: 2,449,029 products, 100 features, 47 classes.

    OGB reads the files of root/ogbn_products, or asks and downloads them. Its result is
    kept in an archive of plain arrays, because PyTorch refuses OGB's own pickle since 2.6.
    """
    folder = root / name.replace("-", "_")
    kept = folder / _KEPT
    if not kept.is_file():
        if (folder / _OGB_KEPT).exists():
            raise DatasetError(
                f"{folder / _OGB_KEPT} is a pickle of OGB, which is not read because it could run "
                "code; delete it, and the data set is made again from the files in raw."
            )
        files = "the content of OGB's products.zip"
        with _outside(name, folder, files=files, package="ogb", extra="ogb"):
            from ogb.nodeproppred import NodePropPredDataset  # noqa: PLC0415 - optional, and slow

            loader = NodePropPredDataset(name=name, root=str(root))
            (found, labels), indices = loader[0], loader.get_idx_split()
        _keep(kept, found, labels, split_of_indices(indices, len(labels)))
    data = _graph_file(kept, seed, edge_weights=None)
    return replace(data, graph=replace(data.graph, name=name))


def _keep(path: Path, found: Mapping[str, Any], labels: NDArray[Any], split: Split) -> None:
    edges = found["edge_index"]
    graph = graph_from_edges(*edges, name=path.stem, vertices=len(labels), directed=True)
    loops = np.zeros(0, np.int64) if graph.self_loops is None else graph.self_loops
    arrays: dict[str, Any] = {"indptr": graph.indptr, "indices": graph.indices, "self_loops": loops}
    arrays |= {"features": found["node_feat"], "labels": labels}
    arrays |= dict(zip(MASKS, (split.train, split.validation, split.test), strict=True))
    with writing(path, refuse=DatasetError), whole_file(path) as file:
        np.savez(file, **arrays)


def dataset_from_pyg(data: Any, name: str, split: Split | None = None) -> Dataset:  # noqa: ANN401
    """Convert a ``Data`` of PyG; one with `y` needs a split or the three masks."""
    given = ("edge_index", "edge_attr", "edge_weight", "x", "y", *(MASKS if split is None else ()))
    arrays = {
        each: _array_of(name, each, getattr(data, each))
        for each in given
        if getattr(data, each, None) is not None
    }
    edges, features, labels = arrays["edge_index"], arrays["x"], arrays.get("y")
    if edges.dtype.kind not in "iu" or edges.ndim != 2 or len(edges) != 2:
        hint = "; transpose it" if edges.shape[1:] == (2,) else ""
        raise DatasetError(
            f"Data set {name} needs an edge_index of whole numbers [2, E], not "
            f"{edges.dtype}{list(edges.shape)}{hint}."
        )
    if getattr(data, "num_nodes", None) not in (None, len(features)):
        raise DatasetError(
            f"Data set {name} has {data.num_nodes} vertices (num_nodes), but {len(features)} rows "
            "in x: give each vertex one."
        )
    if labels is None:
        split = split_of_codes(np.zeros(len(features), dtype=np.int8))
    return dataset_from_graph(
        graph_from_edges(
            *edges,
            name=name,
            vertices=len(features),
            directed=True,
            weights=_weights_of(name, arrays, edges.shape[1]),
        ),
        features=as_features(features),
        labels=None if labels is None else class_labels(labels, f"data set {name}"),
        split=split or Split(*(arrays[mask] for mask in MASKS)),
    )


def _array_of(name: str, attribute: str, value: Any) -> NDArray[Any]:  # noqa: ANN401
    if not hasattr(value, "to_dense"):
        kind = type(value).__name__
        raise DatasetError(f"Data set {name} needs a tensor as {attribute}, not a {kind}.")
    tensor = value.detach().to_dense().cpu()
    few_bits = tensor.is_floating_point() and tensor.element_size() < _FLOAT_BYTES
    found: NDArray[Any] = (tensor.float() if few_bits else tensor).numpy()
    return found


def _weights_of(name: str, arrays: Mapping[str, NDArray[Any]], edges: int) -> NDArray[Any] | None:
    """Return the weights [E] of a data set's edges; None: there are none, or all are 1."""
    if not np.all(arrays.get("edge_attr", 1) == 1):
        raise DatasetError(
            f"Data set {name} has edge_attr, which is not used: delete it (del data.edge_attr) to "
            "train without, or name it edge_weight."
        )
    weights = arrays.get("edge_weight", np.ones(edges))
    if weights.shape not in ((edges,), (edges, 1)):
        raise DatasetError(
            f"Data set {name} needs one number in edge_weight for each of its {edges:,} "
            f"edges, not {list(weights.shape)}."
        )
    return None if np.all(weights == 1) else weights.reshape(-1)


def split_of_indices(indices: Mapping[str, Any], vertices: int) -> Split:
    """Return the split of an OGB data set, which lists the vertices that do each."""
    masks = np.zeros((3, vertices), dtype=np.bool_)
    for mask, name in zip(masks, ("train", "valid", "test"), strict=True):
        mask[np.asarray(indices[name])] = True
    return Split(*masks)


@contextlib.contextmanager
def _outside(name: str, folder: Path, *, files: str, package: str, extra: str) -> Iterator[None]:
    """Let a package read and download files, and turn its errors into one sentence."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except ImportError as error:
        raise DatasetError(
            f"Data set {name} needs {package}, which cannot be imported ({first_line(error)}): "
            f"{how_to_install(extra)}."
        ) from error
    except (Exception, SystemExit) as error:
        # Damaged files can raise any error, and OGB exits when the user declines the download.
        raise DatasetError(
            f"Data set {name} can neither be read from {folder} nor downloaded "
            f"({first_line(error)}): put {files} there, or try again with a network."
        ) from error


DATASETS: Mapping[str, Callable[[str, Path, int], Dataset]] = {
    graphs.DIGITS: _digits,
    graphs.KARATE: _karate,
    **dict.fromkeys(_OF_PYG, _of_pyg),
    PRODUCTS: _of_ogb,
}
