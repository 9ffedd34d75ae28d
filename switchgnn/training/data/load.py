"""Data sets by name, also those that PyTorch Geometric and OGB read or download."""

import contextlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.files import format_of
from switchgnn.base.machine import how_to_install
from switchgnn.base.names import no_such
from switchgnn.planner.graphs import bundled, planetoid
from switchgnn.planner.graphs.bundled import DIGITS_PREFIX
from switchgnn.planner.graphs.edge_list import EDGE_WEIGHTS
from switchgnn.planner.graphs.graph import Graph, class_labels, graph_from_edges
from switchgnn.planner.graphs.load import SAINT, SUFFIXES, graph_file, load_graph
from switchgnn.planner.graphs.shaped import RANDOM_PREFIX, load_random
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
from switchgnn.training.data.read import load_files
from switchgnn.training.errors import DatasetError

PRODUCTS = "ogbn-products"
# OGB's folder below the root, and the archive in it that later loads read.
_PRODUCTS_FOLDER, _KEPT = "ogbn_products", "switchgnn.safetensors"
# OGB's own cache, a pickle.
_OGB_KEPT = Path("processed", "data_processed")
# By name: PyG's class, one of its raw files, and all of them.
_OF_PYG: Mapping[str, tuple[str, str, str]] = {
    "reddit": ("Reddit", "reddit_graph.npz", "reddit_data.npz and reddit_graph.npz"),
    "yelp": ("Yelp", "adj_full.npz", "adj_full.npz, feats.npy, class_map.json and role.json"),
}
# The folder of data sets, to which they are downloaded as well.
DEFAULT_ROOT = Path("data")
PLANETOID = ("citeseer", "cora", "pubmed")
NEED_PYTORCH = (*PLANETOID, *_OF_PYG, PRODUCTS)
_WITH_NUMBERS = (RANDOM_PREFIX, DIGITS_PREFIX)
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
    if not (key in DATASETS or key.startswith(_WITH_NUMBERS)):
        return _graph_file(Path(name), seed, edge_weights=edge_weights)
    if edge_weights:
        raise DatasetError(f"Data set {key} has no weights of edges: leave {EDGE_WEIGHTS} out.")
    if key.startswith(RANDOM_PREFIX):
        return _random(key, seed)
    if key.startswith(DIGITS_PREFIX):
        return _with_split(bundled.load_bundled(key), seed)
    data = DATASETS[key](key, DEFAULT_ROOT if root is None else Path(root), seed)
    if normalize_features is None:
        normalize_features = key in PLANETOID
    return replace(data, features=normalize_rows(data.features)) if normalize_features else data


def check_name(name: str) -> str:
    """Return the name of a data set in lower case, if there is one or a file."""
    key, file = name.lower(), Path(name).is_dir() or format_of(Path(name)) in SUFFIXES
    if file and not Path(name).exists():
        raise DatasetError(f"There is no file {name}: give the path of a data set.")
    if not (file or key in DATASETS or key.startswith(_WITH_NUMBERS)):
        also = ", digits:NEIGHBOURS, random:VERTICES:EDGES:SEED, folders, and files such as .npz"
        raise DatasetError(no_such("data set", name, DATASETS, also=also))
    return key


def _graph_file(name: Path, seed: int, *, edge_weights: bool | None) -> Dataset:
    file = graph_file(name)
    if file == name / SAINT:
        files = (file, name / "feats.npy", name / "class_map.json")
        return load_files(*files, split=name / "role.json", edge_weights=edge_weights)
    graph = load_graph(str(file), edge_weights=edge_weights)
    for array in ("features", "labels"):
        if getattr(graph, array) is None:
            raise DatasetError(
                f"{name} has no array {array}: training needs a graph, features and labels, from "
                "one file or from --edges, --node-features and --labels."
            )
    return _with_split(graph, seed)


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


def _karate(_name: str, _root: Path, seed: int) -> Dataset:
    """Load the karate club: 34 vertices, one-hot vertex ids as features, 2 classes of 17."""
    graph = bundled.load_karate()
    return _with_split(graph, seed, np.eye(graph.vertices, dtype=np.float32))


def _with_split(graph: Graph, seed: int, features: NDArray[np.float32] | None = None) -> Dataset:
    features = graph.features if features is None else features
    assert features is not None  # noqa: S101 - the callers' graphs have both
    assert graph.labels is not None  # noqa: S101
    split = (
        split_vertices(graph.labels, seed) if graph.split is None else split_of_codes(graph.split)
    )
    return dataset_from_graph(graph, features=features, labels=graph.labels, split=split)


def _planetoid(name: str, root: Path, seed: int) -> Dataset:
    """Read ind.NAME.* in root, root/raw or root/NAME/raw (in any case); no pickle is executed."""
    named = [path / "raw" for path in root.glob("*") if path.name.lower() == name]
    folders = (root, root / "raw", *sorted(named))
    folder = next((each for each in folders if (each / f"ind.{name}.graph").is_file()), None)
    if folder is None:
        download_planetoid(name, root)
        folder = root / name / "raw"
    return _with_split(planetoid.load_planetoid(folder, name), seed)


_Loaded = TypeVar("_Loaded")


def load_products(root: Path) -> Dataset:
    """Load ogbn-products: 2,449,029 products, 100 features, 47 classes.

    OGB reads the files of root/ogbn_products, or asks and downloads them. Its result is
    kept in an archive of plain arrays, because PyTorch refuses OGB's own pickle since 2.6.
    """
    folder = root / _PRODUCTS_FOLDER
    if (folder / _KEPT).is_file():
        return read_dataset(folder / _KEPT)
    if (folder / _OGB_KEPT).exists():
        raise DatasetError(
            f"{folder / _OGB_KEPT} is a pickle of OGB, which is not read because it could run "
            "code; delete it, and the data set is made again from the files in raw."
        )

    def load() -> Dataset:
        from ogb.nodeproppred import NodePropPredDataset  # noqa: PLC0415 - optional, and slow

        loader = NodePropPredDataset(name=PRODUCTS, root=str(root))
        found, labels = loader[0]
        split = split_of_indices(loader.get_idx_split(), len(labels))
        return _make_dataset(PRODUCTS, found["edge_index"], found["node_feat"], labels, split)

    files = "the content of OGB's products.zip"
    data = _load_outside(PRODUCTS, folder, load, files=files, package="ogb", extra="ogb")
    write_dataset(data, folder / _KEPT)
    return data


def download_planetoid(name: str, root: Path) -> None:
    """Download the files ind.NAME.* to root/NAME/raw."""

    def load() -> None:
        from torch_geometric.datasets import Planetoid  # noqa: PLC0415

        Planetoid(str(root), name)

    _load_outside(name, root / name / "raw", load, files=f"the eight files ind.{name}.*")


def load_of_pyg(name: str, root: Path) -> Dataset:
    """Load a large data set of PyG.

    ``reddit`` has 232,965 posts, 602 features and 41 classes; ``yelp`` 716,847 reviewers,
    300 features and any of 100 classes.
    """
    kind, raw_file, files = _OF_PYG[name]
    folder = _folder_of(name, root, raw_file)

    def load() -> Dataset:
        from torch_geometric import datasets  # noqa: PLC0415

        return dataset_from_pyg(getattr(datasets, kind)(str(folder))[0], name)

    return _load_outside(name, folder / "raw", load, files=files)


def dataset_from_pyg(data: Any, name: str, split: Split | None = None) -> Dataset:  # noqa: ANN401
    """Convert a ``Data`` of PyG; one with `y` needs a split or the three masks."""

    def array(attribute: str) -> NDArray[Any]:
        value = getattr(data, attribute)
        if not hasattr(value, "to_dense"):
            kind = type(value).__name__
            raise DatasetError(f"Data set {name} needs a tensor as {attribute}, not a {kind}.")
        tensor = value.detach().to_dense().cpu()
        few_bits = tensor.is_floating_point() and tensor.element_size() < _FLOAT_BYTES
        found: NDArray[Any] = (tensor.float() if few_bits else tensor).numpy()
        return found

    if getattr(data, "edge_attr", None) is not None and not np.all(array("edge_attr") == 1):
        raise DatasetError(
            f"Data set {name} has edge_attr, which is not used: delete it (del data.edge_attr) to "
            "train without, or name it edge_weight."
        )
    weights = array("edge_weight") if getattr(data, "edge_weight", None) is not None else None
    edges = array("edge_index")
    if weights is not None and weights.shape not in ((edges.shape[-1],), (edges.shape[-1], 1)):
        raise DatasetError(
            f"Data set {name} needs one number in edge_weight for each of its {edges.shape[-1]:,} "
            f"edges, not {list(weights.shape)}."
        )
    features = array("x")
    labels = None if getattr(data, "y", None) is None else array("y")
    if labels is None:
        split = split_of_codes(np.zeros(len(features), dtype=np.int8))
    elif split is None:
        split = Split(*(array(mask) for mask in ("train_mask", "val_mask", "test_mask")))
    if getattr(data, "num_nodes", None) not in (None, len(features)):
        raise DatasetError(
            f"Data set {name} has {data.num_nodes} vertices (num_nodes), but {len(features)} rows "
            "in x: give each vertex one."
        )
    weights = None if weights is None or np.all(weights == 1) else weights.reshape(-1)
    return _make_dataset(name, edges, features, labels, split, weights)


def _make_dataset(  # noqa: PLR0917
    name: str,
    edges: NDArray[np.int64],
    features: NDArray[Any],
    labels: NDArray[Any] | None,
    split: Split,
    weights: NDArray[Any] | None = None,
) -> Dataset:
    """Make a data set of edges [2, E], features [V, F], and labels [V], [V, 1] or [V, C].

    `labels`: None: there are none. `weights`: of the edges, [E].
    """
    if edges.dtype.kind not in "iu" or edges.ndim != 2 or len(edges) != 2:
        hint = "; transpose it" if edges.shape[1:] == (2,) else ""
        raise DatasetError(
            f"Data set {name} needs an edge_index of whole numbers [2, E], not "
            f"{edges.dtype}{list(edges.shape)}{hint}."
        )
    with np.errstate(over="ignore"):  # an overflow becomes an infinity, which Dataset refuses
        features = features.astype(np.float32, copy=False)
    return dataset_from_graph(
        graph_from_edges(*edges, name=name, vertices=len(features), directed=True, weights=weights),
        features=features,
        labels=None if labels is None else class_labels(labels, f"data set {name}"),
        split=split,
    )


def split_of_indices(indices: Mapping[str, Any], vertices: int) -> Split:
    """Return the split of an OGB data set, which lists the vertices that do each."""
    masks = np.zeros((3, vertices), dtype=np.bool_)
    for mask, name in zip(masks, ("train", "valid", "test"), strict=True):
        mask[np.asarray(indices[name])] = True
    return Split(*masks)


def _folder_of(name: str, root: Path, raw_file: str) -> Path:
    if (root / "raw" / raw_file).is_file():
        return root
    named = [path for path in root.glob("*") if path.name.lower() == name]
    return min(named, default=root / name)


def _load_outside(
    name: str,
    folder: Path,
    load: Callable[[], _Loaded],
    *,
    files: str,
    package: str = "torch_geometric",
    extra: str = "training",
) -> _Loaded:
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return load()
    except ImportError as error:
        raise DatasetError(
            f"Data set {name} needs {package}, which cannot be imported ({_line(error)}): "
            f"{how_to_install(extra)}."
        ) from error
    except (Exception, SystemExit) as error:
        # Damaged files can raise any error, and OGB exits when the user declines the download.
        raise DatasetError(
            f"Data set {name} can neither be read from {folder} nor downloaded ({_line(error)}): "
            f"put {files} there, or try again with a network."
        ) from error


def _line(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    text = str(error).strip().partition("\n")[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


DATASETS: Mapping[str, Callable[[str, Path, int], Dataset]] = {
    "digits": lambda name, _, seed: _with_split(bundled.load_bundled(name), seed),
    "karate": _karate,
    **dict.fromkeys(PLANETOID, _planetoid),
    **dict.fromkeys(("reddit", "yelp"), lambda name, root, _: load_of_pyg(name, root)),
    PRODUCTS: lambda _, root, __: load_products(root),
}
