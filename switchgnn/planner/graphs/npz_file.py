# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs in NumPy archives, SciPy's own format included."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.npz import NotArraysError, read_npz
from switchgnn.planner.arrays.rows import strange_row
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID, Graph, graph_from_edges


def load_npz(path: Path, *, directed: bool = True) -> Graph:
    """Read compressed sparse rows: keys indptr, indices, and if present features and labels.

    Row u holds the vertices that u contributes to. What `scipy.sparse.save_npz` writes for a
    square CSR matrix is read too; its stored zeros are not edges. Nothing in the file is
    ever unpickled.

    Args:
        path: the archive.
        directed: False adds the reverse of every edge.

    Raises:
        PlannerError: unreadable file, missing or unusable arrays.
    """
    arrays = _read_arrays(path)
    indptr = _integers(path, arrays, "indptr").astype(np.int64, copy=False)
    indices = _integers(path, arrays, "indices")
    _check_csr(path, arrays, indptr, indices)
    vertices = len(indptr) - 1
    features = _features(path, arrays)
    labels = _integers(path, arrays, "labels").astype(np.int64) if "labels" in arrays else None
    stored = _stored(arrays, len(indices))
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


def _stored(arrays: dict[str, NDArray[np.generic]], edges: int) -> NDArray[np.bool_] | None:
    """Return which entries of a sparse matrix are edges; None: all."""
    if "data" not in arrays or len(arrays["data"]) != edges or np.all(arrays["data"]):
        return None
    stored: NDArray[np.bool_] = arrays["data"].astype(np.bool_)
    return stored


def _are_rows_of_a_graph(indptr: NDArray[np.int64], indices: NDArray[np.integer]) -> bool:
    """Return whether nothing is left to do: no duplicates or self-loops, in order, in range."""
    vertices = len(indptr) - 1
    if vertices >= FIRST_RESERVED_ID or indices.min(initial=0) < 0:
        return False
    if indices.max(initial=0) >= vertices:
        return False
    return strange_row(indptr, indices.astype(np.int32, copy=False)) is None


def _read_arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    try:
        return read_npz(path)
    except OSError as error:
        raise PlannerError(f"cannot read {path}: {error.strerror or error}") from error
    except NotArraysError as error:
        raise PlannerError(
            f"{path} is not an archive of plain NumPy arrays "
            "(arrays of Python objects are refused: reading them could run code)"
        ) from error


def _integers(path: Path, arrays: dict[str, NDArray[np.generic]], key: str) -> NDArray[np.integer]:
    if key not in arrays:
        raise PlannerError(
            f"{path} has no array {key}; expected indptr and indices of a CSR matrix"
        )
    array: NDArray[Any] = arrays[key]
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise PlannerError(f"{path}: {key} must be one row of whole numbers")
    return array


def _check_csr(
    path: Path,
    arrays: dict[str, NDArray[np.generic]],
    indptr: NDArray[np.int64],
    indices: NDArray[np.integer],
) -> None:
    if "format" in arrays and arrays["format"].tolist() not in (b"csr", "csr"):
        raise PlannerError(
            f"{path} holds a sparse matrix in another format than CSR; convert it with .tocsr()"
        )
    if len(indptr) < 2:
        raise PlannerError(f"{path} holds a graph without vertices")
    if indptr[0] != 0 or indptr[-1] != len(indices) or np.any(np.diff(indptr) < 0):
        raise PlannerError(f"{path}: indptr does not rise from 0 to the length of indices")
    shape = arrays.get("shape")
    if shape is not None and shape.tolist() != [len(indptr) - 1] * 2:
        raise PlannerError(
            f"{path} holds a matrix of shape {shape.tolist()}; an adjacency matrix is square"
        )


def _features(path: Path, arrays: dict[str, NDArray[np.generic]]) -> NDArray[np.float32] | None:
    if "features" not in arrays:
        return None
    array = arrays["features"]
    kinds = (np.floating, np.integer, np.bool_)
    if array.ndim != 2 or not any(np.issubdtype(array.dtype, kind) for kind in kinds):
        raise PlannerError(f"{path}: features must be a table of numbers, one row per vertex")
    with np.errstate(over="ignore"):  # an overflow becomes an infinity, which Graph refuses
        return array.astype(np.float32)
