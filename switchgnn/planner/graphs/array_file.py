"""Graphs as arrays: NumPy files and archives, SciPy's sparse matrices, and Matrix Market files."""

import io
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Bools, Float32s, Int64s, Integers
from switchgnn.base.arrays import ArrayKind, are_offsets, read_npy, read_npz
from switchgnn.base.files import PACKED, open_unpacked
from switchgnn.base.machine import require_memory
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.graphs import edge_list
from switchgnn.planner.graphs.graph import SPLIT_TRAIN, UNLABELLED, Graph, graph_from_edges

_Arrays = dict[str, NDArray[Any]]

# In the order of the codes in `Graph.split`.
MASKS = ("train_mask", "val_mask", "test_mask")
_KINDS: Mapping[str, ArrayKind] = {
    **dict.fromkeys(
        (
            *("indptr", "indices", "row", "col", "shape"),
            *("attr_indptr", "attr_indices", "attr_shape"),
        ),
        ArrayKind(("i", "u"), optional=True),
    ),
    **dict.fromkeys(MASKS, ArrayKind(("b",), optional=True)),
    "labels": ArrayKind(("f", "i", "u", "b"), (1, 2), optional=True),
    "edge_index": ArrayKind(("i", "u"), (2,), optional=True),
    "edge_attr": ArrayKind(("f", "i", "u", "b"), (1, 2), optional=True),
    "num_nodes": ArrayKind(("i", "u"), (0,), optional=True),
    "self_loops": ArrayKind(("i",), optional=True),  # of rows that are without them
    "features": ArrayKind(("f", "i", "u", "b"), (2,), optional=True),
    # Features as a sparse matrix, with the other attr_*.
    "attr_data": ArrayKind(("f", "i", "u", "b"), optional=True),
    # Of SciPy: which kind of sparse matrix, and its values.
    "format": ArrayKind(("S", "U"), (0,), optional=True),
    "data": ArrayKind(("f", "i", "u", "b", "c"), (1, 2, 3), optional=True),
}
# The same arrays in gnn-benchmark's data sets and in those of PyTorch Geometric's users.
_ALSO: Mapping[str, str] = {
    **{f"adj_{name}": name for name in ("indptr", "indices", "shape", "data")},
    "attr_matrix": "features",
    "x": "features",
    "y": "labels",
    "edge_weight": "data",
}
_ALL_KINDS = {**_KINDS, **{other: _KINDS[name] for other, name in _ALSO.items()}}
_REMEDY = (
    "a graph is the arrays indptr and indices of a CSR matrix, saved by scipy.sparse.save_npz or "
    "numpy.savez (which does not pack), or edge_index"
)
# Any array but one of a split that is not in MASKS.
_IGNORED = r"(?!.*train).*"
# DGL's Reddit has the other arrays beside the graph, with 1, 2 and 3 for vertices of the MASKS.
REDDIT, _BESIDE, _WHOLE = "reddit_graph.npz", "reddit_data.npz", ArrayKind(("i", "u"))
_BESIDE_KINDS = {"feature": ArrayKind(("f",), (2,)), "label": _WHOLE, "node_types": _WHOLE}
# The shortest entry of a Matrix Market file, "1 1" and the end of the line.
_ENTRY_BYTES = 4


def load_npz(
    path: Path, *, directed: bool | None = None, edge_weights: bool | None = None
) -> Graph:
    """Read a sparse matrix, or a list of edges, and optionally features and labels.

    Row u of a matrix holds the vertices that u contributes to; stored zeros are not edges.
    docs/data.md lists the names of the arrays; others are ignored.
    """
    found, beside = _arrays_of(path, _ALL_KINDS, _REMEDY), path.with_name(_BESIDE)
    arrays = {_ALSO.get(name, name): array for name, array in reversed(found.items())}
    if path.name == REDDIT and beside.exists():
        found = _arrays_of(beside, _BESIDE_KINDS, f"take it from where {REDDIT} is from")
        arrays |= {"features": found["feature"], "labels": found["label"]}
        arrays |= {mask: found["node_types"] == code for code, mask in enumerate(MASKS, start=1)}
    return _graph_of(path, arrays, directed=directed, edge_weights=edge_weights)


def _arrays_of(path: Path, kinds: Mapping[str, ArrayKind], remedy: str) -> _Arrays:
    names: list[str] = []
    found = read_npz(path, kinds, remedy=remedy, limit=PACKED, others=_IGNORED, ignored=names)
    edge_list.tell_ignored("arrays", path, names)
    return found


def load_npy(
    path: Path, *, directed: bool | None = None, edge_weights: bool | None = None
) -> Graph:
    """Read a list of edges, [2, E] or [E, 2]."""
    kind = ArrayKind(("i", "u", "f"), (2,))
    table = read_npy(path, kind, remedy="save edges as an array [E, 2]")
    arrays: _Arrays = {}
    if 2 not in table.shape and 3 in table.shape:
        table = table if table.shape[1] == 3 else table.T
        edge_list.refuse_weights(path, table[:, 2], edge_weights=edge_weights)
        arrays = {"data": table[:, 2]} if edge_weights else {}
        table = table[:, :2]
    with np.errstate(invalid="ignore"):
        ids = table.astype(np.int64)
    if not np.array_equal(ids, table):
        raise PlannerError(f"{path} holds edges between ids that are not whole numbers.")
    arrays["edge_index"] = ids
    return _graph_of(path, arrays, directed=directed, edge_weights=edge_weights)


def load_matrix_market(
    path: Path, *, directed: bool | None = None, edge_weights: bool | None = None
) -> Graph:
    """Read a sparse matrix as load_npz does; SciPy reads it, and numbers vertices from 0."""
    from scipy.io import mminfo, mmread  # noqa: PLC0415 - slow to import

    try:
        with open_unpacked(path) as file:
            content = file.read()
        # SciPy's reader ends the process if a file that it refuses is closed before it is.
        *_, entries, layout, _, _ = mminfo(io.BytesIO(content))
        if layout != "coordinate" or entries * _ENTRY_BYTES > len(content):
            size = f"{len(content):,} bytes"
            raise ValueError(f"it has {size} and {entries:,} entries in form {layout}")
        matrix = mmread(io.BytesIO(content))
    except OSError as error:
        raise PlannerError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (ValueError, OverflowError) as error:
        raise PlannerError(f"{path} is not a sparse matrix of Matrix Market: {error}.") from error
    arrays = {name: getattr(matrix, name) for name in ("row", "col", "data")}
    arrays["shape"] = np.array(matrix.shape)
    return _graph_of(path, arrays, directed=directed, edge_weights=edge_weights)


def _graph_of(
    path: Path, arrays: _Arrays, *, directed: bool | None, edge_weights: bool | None
) -> Graph:
    form = arrays["format"].item() if "format" in arrays else "csr"
    form = form.decode("latin1") if isinstance(form, bytes) else form
    if form not in ("csr", "csc", "coo"):
        raise PlannerError(
            f"{path} holds a sparse matrix in another format than CSR, CSC and COO; convert it "
            "with .tocsr()."
        )
    features, data = _features(path, arrays), _values(path, arrays, edge_weights=edge_weights)
    labels = class_labels(arrays["labels"], str(path)) if "labels" in arrays else None
    split = _split(path, arrays)
    stored = None if data is None or np.all(data) else data.astype(np.bool_)
    weights = data if edge_weights else None
    if weights is not None and stored is not None:
        weights = weights[stored]
    if "edge_index" in arrays:
        given = (arrays.get("num_nodes"), features, labels, split)
        rows = [len(each) if each.ndim else int(each) for each in given if each is not None]
        ids = _pairs(path, arrays["edge_index"])
        graph = edge_list.graph_of_ids(
            ids if stored is None else ids[stored],
            name=edge_list.graph_name(path),
            directed=directed is True,
            rows=rows[0] if rows else None,
            weights=weights,
        )
    else:
        graph = _graph_of_matrix(
            path, arrays, stored, weights, form, directed=directed is not False
        )
    loops = arrays.get("self_loops", graph.self_loops)
    return replace(graph, features=features, labels=labels, split=split, self_loops=loops)


def _split(path: Path, arrays: _Arrays) -> NDArray[np.int8] | None:
    masks = [arrays[name] for name in MASKS if name in arrays]
    if not masks:
        return None
    if len(masks) < len(MASKS) or len({len(mask) for mask in masks}) > 1:
        raise PlannerError(f"{path} needs all of {', '.join(MASKS)}, of one length, or none.")
    twice = np.sum(masks, axis=0) > 1
    if twice.any():
        raise PlannerError(f"{path} has vertex {np.argmax(twice)} in two of {', '.join(MASKS)}.")
    codes: NDArray[np.int8] = np.int8(SPLIT_TRAIN) + np.argmax(masks, axis=0).astype(np.int8)
    return np.where(np.any(masks, axis=0), codes, np.int8(0))


def _graph_of_matrix(
    path: Path,
    arrays: _Arrays,
    stored: Bools | None,
    weights: NDArray[Any] | None,
    form: str,
    *,
    directed: bool,
) -> Graph:
    compressed = "indptr" in arrays and "indices" in arrays
    vertices = _count_vertices(path, arrays, compressed=compressed)
    if compressed:
        indptr, columns = arrays["indptr"].astype(np.int64, copy=False), arrays["indices"]
        narrow = columns.astype(np.int32, copy=False)
        as_is = directed and stored is None and weights is None and form != "csc"
        if as_is and np.array_equal(narrow, columns):
            with suppress(PlannerError):  # such as rows that have to be sorted
                return Graph(indptr, narrow, edge_list.graph_name(path))
        rows = np.repeat(np.arange(vertices), np.diff(indptr))
        rows, columns = (columns, rows) if form == "csc" else (rows, columns)
    else:
        rows, columns = arrays["row"], arrays["col"]
    if stored is not None:
        rows, columns = rows[stored], columns[stored]
    return graph_from_edges(
        *(rows, columns),
        name=edge_list.graph_name(path),
        vertices=vertices,
        directed=directed,
        weights=weights,
    )


def _count_vertices(path: Path, arrays: _Arrays, *, compressed: bool) -> int:
    missing = [name for name in ("row", "col", "shape") if name not in arrays]
    if compressed:
        indptr, vertices = arrays["indptr"], len(arrays["indptr"]) - 1
        if vertices < 1:
            raise PlannerError(f"{path} holds a graph without vertices.")
        if not are_offsets(indptr, len(arrays["indices"])):
            raise PlannerError(f"{path}: indptr does not rise from 0 to the length of indices.")
    elif missing:
        raise PlannerError(
            f"{path} is refused: it has no array indices or {missing[0]}, and no edge_index; "
            f"{_REMEDY}."
        )
    else:
        row, col, vertices = arrays["row"], arrays["col"], arrays["shape"].max(initial=0).item()
        if len(row) != len(col):
            raise PlannerError(f"{path} has {len(row):,} rows for {len(col):,} columns.")
    shape = arrays["shape"].tolist() if "shape" in arrays else [vertices] * 2
    if shape != [vertices] * 2:
        raise PlannerError(f"{path} holds a matrix of shape {shape}, but adjacency is square.")
    return vertices


def _values(path: Path, arrays: _Arrays, *, edge_weights: bool | None) -> NDArray[Any] | None:
    """Return the values of the edges, zeros for those that are none; None: all are edges."""
    data = arrays.get("data")
    if edge_weights is not False and not np.all(arrays.get("edge_attr", 1) == 1):
        raise PlannerError(
            f"{path} has edge_attr, which is not used; {edge_list.IGNORE_WEIGHTS} drops it."
        )
    if data is None:
        return None
    edge_list.refuse_weights(path, data, edge_weights=edge_weights)
    name = next((name for name in ("edge_index", "indices", "row") if name in arrays), "")
    count = arrays[name].size // arrays[name].ndim if name else data.size
    if data.shape != (count,):
        raise PlannerError(f"{path}: data has {data.size:,} values for {count:,} {name}.")
    return data


def _pairs(path: Path, edges: Integers) -> Int64s:
    """Return pairs of ids, [E, 2], of an array that has a row or a column for each."""
    if 2 not in edges.shape:
        raise PlannerError(f"{path} holds an array {list(edges.shape)}, not [2, E] or [E, 2].")
    return (edges.T if edges.shape[0] == 2 else edges).astype(np.int64, copy=False)


def _features(path: Path, arrays: _Arrays) -> Float32s | None:
    features = arrays.get("features")
    if features is None and "attr_indptr" in arrays:
        names = ("data", "indices", "indptr", "shape")
        if missing := [name for name in names if f"attr_{name}" not in arrays]:
            raise PlannerError(f"{path} has a sparse matrix attr_* without attr_{missing[0]}.")
        *parts, shape = (arrays[f"attr_{name}"] for name in names)
        size = 12 * math.prod(shape.tolist())
        require_memory(f"the features of {path}", size, "leave attr_* out")
        return dense_rows(parts, shape.tolist(), f"{path}, attr_*,")
    return None if features is None else as_features(features)


def dense_rows(parts: Sequence[NDArray[Any]], shape: Sequence[int], where: str) -> Float32s:
    """Return a CSR matrix of features as an array; `parts`: its data, indices and indptr."""
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow to import

    try:
        data = as_features(parts[0])
        indices, indptr = (part.astype(np.int64, copy=False) for part in parts[1:])
        if not are_offsets(indptr, len(indices)):
            raise ValueError("indptr does not rise from 0 to the length of indices")
        rows, width = shape
        matrix = csr_matrix((data, indices, indptr), shape=(rows, width))
        matrix.check_format(full_check=True)
        dense: Float32s = matrix.toarray()
    except (ValueError, TypeError) as error:
        raise PlannerError(f"{where} holds no CSR matrix of features: {error}.") from error
    return dense


@np.errstate(over="ignore")  # an overflow becomes an infinity, which Graph and Dataset refuse
def as_features(array: NDArray[Any]) -> Float32s:
    """Return numbers as float32."""
    return array.astype(np.float32, copy=False)


def class_labels(values: NDArray[Any], whose: str) -> Int64s | Float32s:
    """Return the labels of V vertices as classes, UNLABELLED where they are -1 or NaN.

    Numbers [V] or [V, 1] become int64[V]; zeros and ones [V, C], for any number of classes per
    vertex, float32[V, C]. `whose` names the file or data set in messages.
    """
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.ndim == 2 and values.shape[1] and np.isin(values, (0, 1)).all():
        return values.astype(np.float32)
    if values.ndim != 1:
        raise PlannerError(
            f"{whose} has labels {list(values.shape)} that are not zeros and ones, with a column "
            "for each class."
        )
    known = np.where(np.isnan(values), UNLABELLED, values) if values.dtype.kind == "f" else values
    with np.errstate(invalid="ignore"):
        labels = known.astype(np.int64)
    strange = (labels != known) | (labels < UNLABELLED)
    if strange.any():
        raise PlannerError(
            f"{whose} has the label {values[np.argmax(strange)]}, which is not a class: classes "
            "are whole numbers from 0, and -1 or NaN is a missing label."
        )
    return labels
