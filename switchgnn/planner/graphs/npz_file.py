# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs in NumPy archives, SciPy's own format included."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.arrays import PACKED, ArrayKind, ArraysError, UnpackLimit, read_npz
from switchgnn.planner.arrays import are_offsets, strange_row
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID, Graph, graph_from_edges

_ROW = ArrayKind(("i", "u"))
_KINDS: Mapping[str, ArrayKind] = {
    "indptr": _ROW,
    "indices": _ROW,
    "features": ArrayKind(("f", "i", "u", "b"), (2,), optional=True),
    "labels": ArrayKind(("i", "u"), optional=True),
    # Of SciPy: which kind of sparse matrix, its shape, and its values.
    "format": ArrayKind(("S", "U"), (0,), optional=True),
    "shape": ArrayKind(("i", "u"), optional=True),
    "data": ArrayKind(("f", "i", "u", "b", "c"), optional=True),
}
_REMEDY = (
    "a graph is the arrays indptr and indices of a CSR matrix, saved by scipy.sparse.save_npz or "
    "numpy.savez (which does not pack)"
)


def load_npz(path: Path, *, directed: bool = True, limit: UnpackLimit = PACKED) -> Graph:
    """Read compressed sparse rows: keys indptr, indices, and optionally features and labels.

    Row u holds the vertices that u contributes to. Archives of `scipy.sparse.save_npz` with a
    square CSR matrix are accepted; stored zeros are not edges. Other arrays are ignored.
    """
    try:
        arrays = read_npz(path, _KINDS, remedy=_REMEDY, limit=limit, others=True)
    except ArraysError as error:
        raise PlannerError(str(error)) from error
    _check_csr(path, arrays)
    indptr, indices = arrays["indptr"].astype(np.int64, copy=False), arrays["indices"]
    vertices = len(indptr) - 1
    features = _features(arrays)
    labels = arrays["labels"].astype(np.int64) if "labels" in arrays else None
    stored = _stored(arrays)
    if directed and stored is None and _are_rows_of_a_graph(indptr, indices):
        return Graph(
            indptr=indptr,
            indices=indices.astype(np.int32, copy=False),
            name=path.stem,
            features=features,
            labels=labels,
        )
    source = np.repeat(np.arange(vertices), np.diff(indptr))
    if stored is not None:
        source, indices = source[stored], indices[stored]
    return graph_from_edges(
        source,
        indices,
        name=path.stem,
        vertices=vertices,
        directed=directed,
        features=features,
        labels=labels,
    )


def _stored(arrays: dict[str, NDArray[Any]]) -> NDArray[np.bool_] | None:
    """Return the entries of a sparse matrix that are edges; None: all."""
    if "data" not in arrays or np.all(arrays["data"]):
        return None
    stored: NDArray[np.bool_] = arrays["data"].astype(np.bool_)
    return stored


def _are_rows_of_a_graph(indptr: NDArray[np.int64], indices: NDArray[np.integer]) -> bool:
    vertices = len(indptr) - 1
    if vertices >= FIRST_RESERVED_ID or indices.min(initial=0) < 0:
        return False
    if indices.max(initial=0) >= vertices:
        return False
    return strange_row(indptr, indices.astype(np.int32, copy=False)) is None


def _check_csr(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    indptr, indices = arrays["indptr"], arrays["indices"]
    if "format" in arrays and arrays["format"].tolist() not in (b"csr", "csr"):
        raise PlannerError(
            f"{path} holds a sparse matrix in another format than CSR; convert it with .tocsr()"
        )
    if len(indptr) < 2:
        raise PlannerError(f"{path} holds a graph without vertices")
    if not are_offsets(indptr, len(indices)):
        raise PlannerError(f"{path}: indptr does not rise from 0 to the length of indices")
    if "data" in arrays and len(arrays["data"]) != len(indices):
        raise PlannerError(
            f"{path}: data has {len(arrays['data']):,} values for {len(indices):,} indices"
        )
    shape = arrays.get("shape")
    if shape is not None and shape.tolist() != [len(indptr) - 1] * 2:
        raise PlannerError(
            f"{path} holds a matrix of shape {shape.tolist()}; an adjacency matrix is square"
        )


def _features(arrays: dict[str, NDArray[Any]]) -> NDArray[np.float32] | None:
    if "features" not in arrays:
        return None
    with np.errstate(over="ignore"):  # an overflow becomes an infinity, which Graph refuses
        return arrays["features"].astype(np.float32)
