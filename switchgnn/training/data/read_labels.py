# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Reads labels from a file."""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.arrays import ArrayKind
from switchgnn.planner.graphs.graph import Graph
from switchgnn.training.data.dataset import UNLABELLED
from switchgnn.training.data.read_file import Table, read_array, read_lines, read_table
from switchgnn.training.data.vertex_rows import check_row_order, rows_of_ids
from switchgnn.training.errors import DatasetError

_CLASS = re.compile(r"\d{1,9}")
# The words that mean in a text file that a vertex has no label.
NO_LABEL = ("", str(UNLABELLED))


def read_labels(
    path: Path, graph: Graph, column: str | None = None
) -> NDArray[np.int64] | NDArray[np.float32]:
    """Read the labels of the vertices of a graph.

    A .npy has one row per vertex, in ascending order of their ids: whole numbers [V], or zeros
    and ones [V, C]. A .csv has the id first; vertices that it does not name have no label. Any
    other file has one label per line, one line per vertex.

    Labels of text files are whole numbers or names; the classes of names are in alphabetical
    order. An empty label, or -1, is UNLABELLED.

    Args:
        path: the file.
        graph: the graph, of V vertices.
        column: the column of a .csv with a header; None is the last one.

    Returns:
        int64[V], or float32[V, C] if multi-label.

    Raises:
        DatasetError: bad content, no labels at all, or vertices that do not fit.
    """
    if column is not None and path.suffix.lower() != ".csv":
        raise DatasetError(f"{path} has no column {column}; only a .csv has columns")
    if path.suffix.lower() == ".npy":
        labels = _from_array(path, graph)
    elif path.suffix.lower() == ".csv":
        table = read_table(path)
        words = [""] * graph.vertices
        place = _column(path, table, column)
        for row, cells in zip(rows_of_ids(graph, table.ids, path), table.cells, strict=True):
            words[row] = cells[place].strip()
        labels = _numbered(path, words)
    else:
        lines = read_lines(path)
        check_row_order(graph, len(lines), path)
        labels = _numbered(path, lines)
    _check(path, labels)
    return labels


def _from_array(path: Path, graph: Graph) -> NDArray[np.int64] | NDArray[np.float32]:
    array = read_array(path, ArrayKind(("f", "i", "u", "b"), (1, 2)))
    check_row_order(graph, len(array), path)
    if array.ndim == 1 and np.issubdtype(array.dtype, np.integer):
        return array.astype(np.int64)
    if array.ndim == 2:
        return array.astype(np.float32)
    raise DatasetError(
        f"{path} must hold labels as whole numbers [V], or as zeros and ones [V, C]; "
        f"it holds {array.dtype}{list(array.shape)}"
    )


def _column(path: Path, table: Table, column: str | None) -> int:
    if column is None:
        return -1
    if table.header is None or column not in table.header:
        there = "no header" if table.header is None else f"the columns {', '.join(table.header)}"
        raise DatasetError(f"{path} has no column {column}; it has {there}")
    return table.header.index(column)


def _numbered(path: Path, words: list[str]) -> NDArray[np.int64]:
    used = sorted({word for word in words if word not in NO_LABEL})
    numbers = [bool(_CLASS.fullmatch(word)) for word in used]
    if any(numbers) and not all(numbers):
        name = used[numbers.index(False)]
        raise DatasetError(
            f"{path} has numbers as labels, but also {name[:40]!r}; "
            "give whole numbers from 0 only, or names only"
        )
    class_of = {word: int(word) if all(numbers) else place for place, word in enumerate(used)}
    labels = [class_of.get(word, UNLABELLED) for word in words]
    return np.array(labels, dtype=np.int64)


def _check(path: Path, labels: NDArray[np.int64] | NDArray[np.float32]) -> None:
    if labels.ndim == 2:
        if not np.isin(labels, (0, 1)).all() or labels.shape[1] == 0:
            raise DatasetError(f"{path} must hold zeros and ones, with a column for each class")
        return
    largest = int(labels.max())
    if largest < 0:
        raise DatasetError(f"{path} holds no labels")
    if labels.min() < UNLABELLED:
        raise DatasetError(f"{path} has the label {labels.min()}; number the classes from 0")
    if largest >= max(len(labels), 2):
        raise DatasetError(
            f"{path} has the label {largest}, but only {len(labels)} vertices; "
            "number the classes from 0"
        )
