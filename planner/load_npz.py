# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs in NumPy archives, SciPy's own format included."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.npz import NotArraysError, read_npz
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graph import Graph, graph_from_edges


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
    indptr, indices = _integers(path, arrays, "indptr"), _integers(path, arrays, "indices")
    _check_csr(path, arrays, indptr, indices)
    vertices = len(indptr) - 1
    source = np.repeat(np.arange(vertices), np.diff(indptr))
    if "data" in arrays and len(arrays["data"]) == len(indices):
        stored = arrays["data"] != 0
        source, indices = source[stored], indices[stored]
    return graph_from_edges(
        source,
        indices,
        name=path.stem,
        vertices=vertices,
        directed=directed,
        features=_features(path, arrays),
        labels=_integers(path, arrays, "labels") if "labels" in arrays else None,
    )


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


def _integers(path: Path, arrays: dict[str, NDArray[np.generic]], key: str) -> NDArray[np.int64]:
    if key not in arrays:
        raise PlannerError(
            f"{path} has no array {key}; expected indptr and indices of a CSR matrix"
        )
    array = arrays[key]
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise PlannerError(f"{path}: {key} must be one row of whole numbers")
    return array.astype(np.int64)


def _check_csr(
    path: Path,
    arrays: dict[str, NDArray[np.generic]],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
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
