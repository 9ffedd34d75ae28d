# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Data sets from a user's own files."""

import csv
import io
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.arrays import ArrayKind, ArraysError, read_npy
from switchgnn.base.files import read_regular_text
from switchgnn.planner.graphs.edge_list import load_edge_list
from switchgnn.planner.graphs.graph import (
    SPLIT_NONE,
    SPLIT_TEST,
    SPLIT_TRAIN,
    SPLIT_VALIDATION,
    Graph,
)
from switchgnn.training.data.dataset import (
    UNLABELLED,
    Dataset,
    Split,
    dataset_from_graph,
    normalize_rows,
    split_of_codes,
    split_vertices,
)
from switchgnn.training.errors import DatasetError

_INTEGER = re.compile(r"[+-]?\d{1,18}")
# A first line that does not start like a number is a header.
_NUMBER_START = re.compile(r"\s*[\d+\-.]")
_CLASS = re.compile(r"\d{1,9}")
# The words for a missing label in a text file.
NO_LABEL = ("", str(UNLABELLED))
_CODES = {
    "": SPLIT_NONE,
    "none": SPLIT_NONE,
    "train": SPLIT_TRAIN,
    "validation": SPLIT_VALIDATION,
    "test": SPLIT_TEST,
}


def load_files(
    edges: str | Path,
    node_features: str | Path,
    labels: str | Path,
    *,
    split: str | Path | None = None,
    label_column: str | None = None,
    directed: bool = False,
    normalize_features: bool = False,
    name: str | None = None,
    seed: int = 0,
) -> Dataset:
    """Load an edge list with features and labels; docs/data.md shows the formats.

    If the ids of the edge list had to be renumbered, `graph.original_ids` holds them; the
    other files use the ids of the edge list.

    Args:
        edges: the edge list; see load_edge_list of the planner.
        node_features: .npy, .csv or .json; see read_features.
        labels: .npy, .csv or text; see read_labels.
        split: .csv or text, see read_split; None splits at random, see split_vertices.
        label_column: the column of the labels; None is the last one.
        directed: whether edges are taken in the given direction only.
        normalize_features: whether each row of the features is made to sum to 1.
        name: the name of the data set; None takes it from the edge list's file.
        seed: the seed of the random split.

    Returns:
        The data set.

    Raises:
        SwitchGNNError: an unreadable file, bad content, or files that do not fit together.
    """
    graph = load_edge_list(Path(edges), directed=directed)
    features = read_features(Path(node_features), graph)
    classes = read_labels(Path(labels), graph, label_column)
    return dataset_from_graph(
        graph if name is None else replace(graph, name=name),
        features=normalize_rows(features) if normalize_features else features,
        labels=classes,
        split=split_vertices(classes, seed) if split is None else read_split(Path(split), graph),
    )


def read_features(path: Path, graph: Graph) -> NDArray[np.float32]:
    """Read the features of the vertices of a graph, float32[V, F].

    A .npy has one row per vertex, in ascending order of their ids. A .csv has the id first,
    then numbers. A .json has the form `{"id": [feature, ...], ...}`; each feature is a whole
    number, which becomes a column of zeros and ones. In the latter two, vertices without
    edges may be missing; their features are zeros.
    """
    readers = {".npy": _from_array, ".csv": _from_table, ".json": _from_json}
    if path.suffix.lower() not in readers:
        raise DatasetError(f"cannot tell the format of {path}: features are .npy, .csv or .json")
    try:
        return readers[path.suffix.lower()](path, graph)
    except MemoryError as error:
        raise DatasetError(f"the features of {path} do not fit into memory") from error


def _from_array(path: Path, graph: Graph) -> NDArray[np.float32]:
    array = _read_array(path, ArrayKind(("f", "i", "u", "b"), (2,)))
    _check_row_order(graph, len(array), path)
    with np.errstate(over="ignore"):  # an overflow becomes an infinity, which Dataset refuses
        return array.astype(np.float32)


def _from_table(path: Path, graph: Graph) -> NDArray[np.float32]:
    table = _read_table(path)
    row = _rows_of_ids(graph, table.ids, path)
    _check_none_missing(graph, row, path)
    features = np.zeros((graph.vertices, len(table.cells[0])), dtype=np.float32)
    for index, cells, line in zip(row, table.cells, table.lines, strict=True):
        try:
            with np.errstate(over="ignore"):
                features[index] = [float(cell) for cell in cells]
        except ValueError as error:
            raise DatasetError(f"{path}, line {line}: {error}") from error
    return features


def _from_json(path: Path, graph: Graph) -> NDArray[np.float32]:
    lists = _lists(path)
    row = _rows_of_ids(graph, np.array(list(lists), dtype=np.int64), path)
    _check_none_missing(graph, row, path)
    lengths = [len(columns) for columns in lists.values()]
    column = np.array([c for columns in lists.values() for c in columns], dtype=np.int64)
    features = np.zeros((graph.vertices, int(column.max()) + 1), dtype=np.float32)
    features[np.repeat(row, lengths), column] = 1
    return features


def _lists(path: Path) -> dict[int, list[int]]:
    try:
        value = json.loads(_read_text(path))
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


def read_labels(
    path: Path, graph: Graph, column: str | None = None
) -> NDArray[np.int64] | NDArray[np.float32]:
    """Read the labels of the vertices of a graph.

    A .npy has one row per vertex, in ascending order of their ids: whole numbers [V], or zeros
    and ones [V, C]. A .csv has the id first; vertices that it does not name have no label. Any
    other file has one label per line, one line per vertex.

    Labels of text files are whole numbers or names; the classes of names are in alphabetical
    order. An empty label, or -1, is UNLABELLED.

    Returns:
        int64[V], or float32[V, C] if multi-label.
    """
    if column is not None and path.suffix.lower() != ".csv":
        raise DatasetError(f"{path} has no column {column}; only a .csv has columns")
    if path.suffix.lower() == ".npy":
        labels = _label_array(path, graph)
    elif path.suffix.lower() == ".csv":
        table = _read_table(path)
        words = [""] * graph.vertices
        index = _column(path, table, column)
        for row, cells in zip(_rows_of_ids(graph, table.ids, path), table.cells, strict=True):
            words[row] = cells[index].strip()
        labels = _numbered(path, words)
    else:
        lines = _read_lines(path)
        _check_row_order(graph, len(lines), path)
        labels = _numbered(path, lines)
    _check(path, labels)
    return labels


def _label_array(path: Path, graph: Graph) -> NDArray[np.int64] | NDArray[np.float32]:
    array = _read_array(path, ArrayKind(("f", "i", "u", "b"), (1, 2)))
    _check_row_order(graph, len(array), path)
    if array.ndim == 1 and np.issubdtype(array.dtype, np.integer):
        return array.astype(np.int64)
    if array.ndim == 2:
        return array.astype(np.float32)
    raise DatasetError(
        f"{path} must hold labels as whole numbers [V], or as zeros and ones [V, C]; "
        f"it holds {array.dtype}{list(array.shape)}"
    )


def _column(path: Path, table: "_TextTable", column: str | None) -> int:
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
    class_of = {word: int(word) if all(numbers) else index for index, word in enumerate(used)}
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


def read_split(path: Path, graph: Graph) -> Split:
    """Read which vertices train, validate and test.

    A .csv has the id, then `train`, `validation`, `test` or `none`; vertices that it does not
    name are in no part. Any other file has one of these words per line, one line per vertex.
    """
    if path.suffix.lower() == ".csv":
        table = _read_table(path)
        words = [""] * graph.vertices
        for row, cells in zip(_rows_of_ids(graph, table.ids, path), table.cells, strict=True):
            words[row] = cells[-1].strip()
    else:
        words = _read_lines(path)
        _check_row_order(graph, len(words), path)
    strange = sorted(set(words) - set(_CODES))
    if strange:
        raise DatasetError(
            f"{path} has {strange[0][:40]!r}; a vertex is in train, validation, test or none"
        )
    return split_of_codes(np.array([_CODES[word] for word in words], dtype=np.int8))


def _rows_of_ids(graph: Graph, ids: NDArray[np.int64], path: Path) -> NDArray[np.int64]:
    """Return the vertex of each id of the edge list, int64[N], given int64[N] of them."""
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


def _check_row_order(graph: Graph, rows: int, path: Path) -> None:
    """Check that there is one row for each vertex."""
    if rows != graph.vertices:
        largest = graph.vertices - 1 if graph.original_ids is None else graph.original_ids[-1]
        raise DatasetError(
            f"{path} has {rows} rows, but graph {graph.name} has {graph.vertices} vertices, "
            f"the last of which is {largest}; give one row per vertex, or a .csv with ids"
        )


def _check_none_missing(graph: Graph, row: NDArray[np.int64], path: Path) -> None:
    """Check that each vertex with edges is among the rows, int64[N].

    A vertex without edges may be only a gap between the ids of the edge list.
    """
    lacks = np.bincount(graph.indices, minlength=graph.vertices) + np.diff(graph.indptr) > 0
    lacks[row] = False
    if lacks.any():
        first = int(np.argmax(lacks))
        known = first if graph.original_ids is None else graph.original_ids[first]
        raise DatasetError(
            f"{path} lacks vertex {known} and {int(lacks.sum()) - 1} others of graph {graph.name}"
        )


@dataclass(frozen=True, eq=False)
class _TextTable:
    """A .csv file whose first column is the id of a vertex.

    Attributes:
        header: the names of the other columns, or None.
        ids: int64[N], the first column.
        cells: N rows of text, all of the same length; without the ids.
        lines: the line of each row in the file.
    """

    header: list[str] | None
    ids: NDArray[np.int64]
    cells: list[list[str]]
    lines: list[int]


def _read_array(path: Path, kind: ArrayKind) -> NDArray[Any]:
    try:
        return read_npy(path, kind, remedy="save one array with numpy.save")
    except ArraysError as error:
        raise DatasetError(str(error)) from error


def _read_lines(path: Path) -> list[str]:
    """Return the stripped lines of a text file, without empty ones at its end."""
    return [line.strip() for line in _read_text(path).rstrip().splitlines()]


def _read_table(path: Path) -> _TextTable:
    """Read a .csv file: the id first, then other columns; a header line is allowed."""
    reader = csv.reader(io.StringIO(_read_text(path), newline=""), skipinitialspace=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise DatasetError(f"{path}, line {reader.line_num}: {error}") from error
    header = None
    if rows and not _NUMBER_START.match(rows[0][0]):
        header = [name.strip() for name in rows.pop(0)]
        lines.pop(0)
    if not rows:
        raise DatasetError(f"{path} holds no rows")
    columns = len(rows[0] if header is None else header)
    for row, line in zip(rows, lines, strict=True):
        if len(row) != columns or columns < 2:
            raise DatasetError(
                f"{path}, line {line}: has {len(row)} columns; expected "
                f"{max(columns, 2)}, the first of which is the id of a vertex"
            )
        if not _INTEGER.fullmatch(row[0].strip()):
            raise DatasetError(f"{path}, line {line}: {row[0][:40]!r} is not the id of a vertex")
    return _TextTable(
        header=None if header is None else header[1:],
        ids=np.array([int(row[0]) for row in rows], dtype=np.int64),
        cells=[row[1:] for row in rows],
        lines=lines,
    )


def _read_text(path: Path) -> str:
    try:
        return read_regular_text(path, "utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path} is not a text file (byte {error.start})") from error
    except OSError as error:
        raise DatasetError(f"cannot read {path}: {error.strerror}") from error
