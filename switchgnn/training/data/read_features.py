# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Reads features from a file."""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.arrays import ArrayKind
from switchgnn.planner.graphs.graph import Graph
from switchgnn.training.data.read_file import read_array, read_table, read_text
from switchgnn.training.data.vertex_rows import check_none_missing, check_row_order, rows_of_ids
from switchgnn.training.errors import DatasetError


def read_features(path: Path, graph: Graph) -> NDArray[np.float32]:
    """Read the features of the vertices of a graph, float32[V, F].

    A .npy has one row per vertex, in ascending order of their ids. A .csv has the id first,
    then numbers. A .json has the form `{"id": [feature, ...], ...}`; each feature is a whole
    number, which becomes a column of zeros and ones. In the latter two, vertices without
    edges may be missing; their features are zeros.

    Raises:
        DatasetError: another kind of file, bad content, or vertices that do not fit.
    """
    readers = {".npy": _from_array, ".csv": _from_table, ".json": _from_json}
    if path.suffix.lower() not in readers:
        raise DatasetError(f"cannot tell the format of {path}: features are .npy, .csv or .json")
    try:
        return readers[path.suffix.lower()](path, graph)
    except MemoryError as error:
        raise DatasetError(f"the features of {path} do not fit into memory") from error


def _from_array(path: Path, graph: Graph) -> NDArray[np.float32]:
    array = read_array(path, ArrayKind(("f", "i", "u", "b"), (2,)))
    check_row_order(graph, len(array), path)
    with np.errstate(over="ignore"):  # an overflow becomes an infinity, which Dataset refuses
        return array.astype(np.float32)


def _from_table(path: Path, graph: Graph) -> NDArray[np.float32]:
    table = read_table(path)
    row = rows_of_ids(graph, table.ids, path)
    check_none_missing(graph, row, path)
    features = np.zeros((graph.vertices, len(table.cells[0])), dtype=np.float32)
    for place, cells, line in zip(row, table.cells, table.lines, strict=True):
        try:
            with np.errstate(over="ignore"):
                features[place] = [float(cell) for cell in cells]
        except ValueError as error:
            raise DatasetError(f"{path}, line {line}: {error}") from error
    return features


def _from_json(path: Path, graph: Graph) -> NDArray[np.float32]:
    lists = _lists(path)
    row = rows_of_ids(graph, np.array(list(lists), dtype=np.int64), path)
    check_none_missing(graph, row, path)
    lengths = [len(columns) for columns in lists.values()]
    column = np.array([c for columns in lists.values() for c in columns], dtype=np.int64)
    features = np.zeros((graph.vertices, int(column.max()) + 1), dtype=np.float32)
    features[np.repeat(row, lengths), column] = 1
    return features


def _lists(path: Path) -> dict[int, list[int]]:
    try:
        value = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{path} is not JSON: {error}") from error
    form = f'{path} must have the form {{"id": [feature, ...], ...}}'
    if not isinstance(value, dict):
        raise DatasetError(form)
    lists: dict[int, list[int]] = {}
    for key, columns in value.items():
        if not (key.isascii() and key.isdecimal() and len(key) < 19 and isinstance(columns, list)):
            raise DatasetError(f"{form}, but has {key[:40]!r}")
        if not all(type(c) is int and 0 <= c < 2**31 for c in columns):
            raise DatasetError(f"{form}, but vertex {key} has a feature that is no whole number")
        if int(key) in lists:
            raise DatasetError(f"{path} names vertex {int(key)} twice")
        lists[int(key)] = columns
    if not any(lists.values()):
        raise DatasetError(f"{path} holds no features")
    return lists
