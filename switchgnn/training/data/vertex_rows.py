# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Assigns the rows of a file to the vertices of a graph."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.graphs.graph import Graph
from switchgnn.training.errors import DatasetError


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
