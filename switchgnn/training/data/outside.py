# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Calls the loaders of other packages and turns their errors into sentences."""

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.machine import how_to_install
from switchgnn.planner.graphs.graph import Graph
from switchgnn.training.errors import DatasetError

_Loaded = TypeVar("_Loaded")


def folder_of(name: str, root: Path, raw_file: str) -> Path:
    """Return the folder of a data set: root if it has raw/RAW_FILE, or else root/NAME.

    If a folder with this name exists in upper or mixed case, it is taken.

    Args:
        name: the name of the data set, in lower case.
        root: the folder that the user gave.
        raw_file: the name of a file that the data set has in its folder raw/.

    Returns:
        The folder, which may not exist yet.
    """
    if (root / "raw" / raw_file).is_file():
        return root
    named = [path for path in root.glob("*") if path.name.lower() == name]
    return min(named, default=root / name)


def load_outside(
    name: str,
    folder: Path,
    load: Callable[[], _Loaded],
    *,
    files: str,
    package: str,
    extra: str,
) -> _Loaded:
    """Call a loader that imports another package and may download files.

    Args:
        name: the name of the data set.
        folder: the folder of its files.
        load: the loader; what it prints goes to standard error.
        files: the files that belong into the folder, for the error's message.
        package: the package that `load` imports.
        extra: the extra of this project that installs the package.

    Returns:
        What `load` returns.

    Raises:
        DatasetError: `load` raised any error.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return load()
    except ImportError as error:
        raise DatasetError(
            f"data set {name} needs {package}, which cannot be imported ({_line(error)}): "
            f"{how_to_install(extra)}"
        ) from error
    except (Exception, SystemExit) as error:
        # Downloads and damaged files can raise any error, and OGB exits when the user
        # declines the download.
        raise DatasetError(
            f"data set {name} can neither be read from {folder} nor downloaded ({_line(error)}): "
            f"put {files} there, or try again with a network"
        ) from error


def _line(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    text = str(error).strip().partition("\n")[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def rows_of_ids(graph: Graph, ids: NDArray[np.int64], path: Path) -> NDArray[np.int64]:
    """Return the vertex of each id of the edge list.

    Args:
        graph: the graph.
        ids: int64[N], ids as the edge list has them.
        path: the file that names them, for messages.

    Returns:
        int64[N], vertices of the graph.

    Raises:
        DatasetError: an id that is not in the graph, or that is there twice.
    """
    known = graph.original_ids
    if known is None:
        known = np.arange(graph.vertices, dtype=np.int64)
    row = np.minimum(np.searchsorted(known, ids), graph.vertices - 1)
    unknown = known[row] != ids
    if unknown.any():
        raise DatasetError(
            f"{path} names vertex {ids[np.argmax(unknown)]}, which is not in graph {graph.name}"
        )
    twice = np.bincount(row, minlength=graph.vertices) > 1
    if twice.any():
        raise DatasetError(f"{path} names vertex {known[np.argmax(twice)]} twice")
    return row


def check_row_order(graph: Graph, rows: int, path: Path) -> None:
    """Check that there is one row for each vertex.

    Args:
        graph: the graph.
        rows: the number of rows.
        path: the file with the rows, for messages.

    Raises:
        DatasetError: the numbers differ.
    """
    if rows != graph.vertices:
        largest = graph.vertices - 1 if graph.original_ids is None else graph.original_ids[-1]
        raise DatasetError(
            f"{path} has {rows} rows, but graph {graph.name} has {graph.vertices} vertices, "
            f"the last of which is {largest}; give one row per vertex, or a .csv with ids"
        )


def check_none_missing(graph: Graph, row: NDArray[np.int64], path: Path) -> None:
    """Check that each vertex with edges is among the rows.

    A vertex without edges may be only a gap between the ids of the edge list.

    Args:
        graph: the graph.
        row: int64[N], the vertex of each row.
        path: the file with the rows, for messages.

    Raises:
        DatasetError: one is missing.
    """
    lacks = np.bincount(graph.indices, minlength=graph.vertices) + np.diff(graph.indptr) > 0
    lacks[row] = False
    if lacks.any():
        first = int(np.argmax(lacks))
        known = first if graph.original_ids is None else graph.original_ids[first]
        raise DatasetError(
            f"{path} lacks vertex {known} and {int(lacks.sum()) - 1} others of graph {graph.name}"
        )
