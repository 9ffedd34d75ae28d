"""Data sets from a user's own files."""

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Bools, Float32s, Int64s
from switchgnn.base.arrays import ArrayKind, read_npy
from switchgnn.base.files import format_of
from switchgnn.planner.graphs.array_file import as_features, class_labels
from switchgnn.planner.graphs.edge_list import INTEGER, Ids, ids_of_rows, read_text, separator
from switchgnn.planner.graphs.graph import (
    SPLIT_NONE,
    SPLIT_TEST,
    SPLIT_TRAIN,
    SPLIT_VALIDATION,
    UNLABELLED,
    Graph,
)
from switchgnn.planner.graphs.load import load_graph
from switchgnn.training.base.errors import DatasetError
from switchgnn.training.data import dataset

_NUMBERS, _REMEDY = ("f", "i", "u", "b"), "save one array with numpy.save"
# A first line that does not start like a number is a header.
_NUMBER_START = re.compile(r"\s*[\d+\-.]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# What NumPy, pandas, R and C write for a missing value.
_MISSING = re.compile(
    r"|#?N/?A|n/a|#N/A N/A|<NA>|NULL|null|None|NaT|[+-]?(?i:nan)|-?1\.#(IND|QNAN)"
)
_BETWEEN = re.compile(r"[\s,;]+")
_CODES = {
    "": SPLIT_NONE,
    "none": SPLIT_NONE,
    "train": SPLIT_TRAIN,
    "validation": SPLIT_VALIDATION,
    "test": SPLIT_TEST,
    **{"tr": SPLIT_TRAIN, "va": SPLIT_VALIDATION, "te": SPLIT_TEST},  # in role.json
}


def load_files(
    edges: str | Path,
    node_features: str | Path,
    labels: str | Path,
    *,
    split: str | Path | None = None,
    label_column: str | None = None,
    directed: bool | None = None,
    edge_weights: bool | None = None,
    normalize_features: bool = False,
    name: str | None = None,
    seed: int = 0,
) -> dataset.Dataset:
    """Load a graph with features and labels from files; docs/data.md shows the formats.

    If the ids of the graph had to be renumbered, `graph.original_ids` holds them; the other files
    use the ids of the graph's file. Vertices that only the features name are isolated ones.

    Args:
        edges: the graph; see load_graph.
        node_features: .npy, .csv or .json.
        labels: .npy, .csv, .json or text.
        split: .csv, .json or text; None takes that of the graph's file, or splits at random, see
            split_vertices.
        label_column: the column of the labels; None is the last one.
        directed: see load_graph.
        edge_weights: see load_graph.
        normalize_features: whether each row of the features is made to sum to 1.
        name: the name of the data set; None takes it from the graph's file.
        seed: the seed of the random split.

    Returns:
        The data set.

    Raises:
        SwitchGNNError: an unreadable file, bad content, or files that do not fit together.
    """
    graph = load_graph(str(edges), directed=directed, edge_weights=edge_weights)
    given = _read_features(Path(node_features), graph)
    classes = _read_labels(Path(labels), graph, label_column)
    parts = None if split is None else _read_split(Path(split), graph)
    rows = [len(each.values) for each in (given, classes, parts) if each and each.ids is None]
    graph = _with_vertices(graph, given.ids, rows[0] if rows else None)
    features, numbers = _features_by_vertex(given, graph), _labels_by_vertex(classes, graph)
    chosen = None if graph.split is None else dataset.split_of_codes(graph.split)
    if parts is not None:
        chosen = _split_by_vertex(parts, graph)
    return dataset.dataset_from_graph(
        graph if name is None else replace(graph, name=name),
        features=dataset.normalize_rows(features) if normalize_features else features,
        labels=numbers,
        split=chosen or dataset.split_vertices(numbers, seed),
    )


@dataclass(frozen=True, eq=False)
class _Given:
    path: Path  # the file
    # of the vertices, in the order of the values; None: one for each vertex of the graph
    ids: Ids | None
    values: NDArray[Any] | list[str]  # an array, or the words of a text


def _known(graph: Graph) -> Ids:
    return np.arange(graph.vertices) if graph.original_ids is None else graph.original_ids


def _with_vertices(graph: Graph, named: Ids | None, rows: int | None) -> Graph:
    """Return a graph that has as vertices what other files give features or labels for.

    The vertices that `named` adds are isolated. If there is one row for each vertex, their number
    decides whether ids count from 0 or from 1, and how many isolated vertices come last.
    """
    known = _known(graph)
    named = known[:0] if named is None else named
    used = _have_edges(graph)
    used[[] if graph.self_loops is None else graph.self_loops] = True
    ids = np.union1d(known, named)
    # A matrix whose last vertices are isolated has said how many there are.
    if rows is not None and rows != len(ids) and used[-1]:
        counted = ids_of_rows(np.union1d(known[used], named), rows)
        ids = known if counted is None else counted
    if np.array_equal(ids, known):
        return graph
    index, kept = np.searchsorted(ids, known), np.isin(known, ids)
    split = None if graph.split is None else np.full(len(ids), SPLIT_NONE, dtype=np.int8)
    if split is not None and graph.split is not None:
        split[index[kept]] = graph.split[kept]
    same = ids.dtype.kind != "U" and ids[0] == 0 and ids[-1] == len(ids) - 1
    graph = dataset.renumbered(graph, index, len(ids))
    return replace(graph, split=split, original_ids=None if same else ids)


def _read_features(path: Path, graph: Graph) -> _Given:
    """Read float32[N, F]."""
    read = {".npy": _from_array, ".csv": _from_table, ".json": _from_json}.get(format_of(path))
    if read is None:
        raise DatasetError(f"Cannot tell the format of {path}: features are .npy, .csv or .json.")
    try:
        return read(path, graph)
    except MemoryError as error:
        raise DatasetError(f"The features of {path} do not fit into memory.") from error


def _from_array(path: Path, _: Graph) -> _Given:
    array = read_npy(path, ArrayKind(_NUMBERS, (2,)), remedy=_REMEDY)
    return _Given(path, None, as_features(array))


@np.errstate(over="ignore")  # as in as_features
def _from_table(path: Path, graph: Graph) -> _Given:
    table = _read_table(path, graph)
    features = np.zeros((len(table.cells), len(table.cells[0])), dtype=np.float32)
    for row, cells, line in zip(features, table.cells, table.lines, strict=True):
        try:
            row[:] = [float(cell) for cell in cells]
        except ValueError as error:
            raise DatasetError(f"{path}, line {line}: {error}.") from error
    return _Given(path, table.ids, features)


def _from_json(path: Path, graph: Graph) -> _Given:
    form = f'{path} must have the form {{"id": [feature, ...], ...}}'
    lists = _object_of(path, form)
    for key, columns in lists.items():
        numbers = columns if isinstance(columns, list) else [None]
        if not all(type(c) is int and 0 <= c < 2**31 for c in numbers):
            raise DatasetError(f"{form}, but vertex {key} has a feature that is no whole number.")
    if not any(lists.values()):
        raise DatasetError(f"{path} holds no features.")
    lengths = [len(columns) for columns in lists.values()]
    column = np.array([c for columns in lists.values() for c in columns], dtype=np.int64)
    features = np.zeros((len(lists), int(column.max()) + 1), dtype=np.float32)
    features[np.repeat(np.arange(len(lists)), lengths), column] = 1
    return _Given(path, _ids_of(path, lists, graph), features)


def _features_by_vertex(given: _Given, graph: Graph) -> Float32s:
    """Return float32[V, F]; vertices without edges may lack features, which are zeros then.

    They may be only gaps between the ids of the edge list.
    """
    row, values = _rows_of(given, graph), np.asarray(given.values)
    if given.ids is None:
        return values
    lacks = _have_edges(graph)
    lacks[row] = False
    if lacks.any():
        first = _known(graph)[np.argmax(lacks)]
        raise DatasetError(
            f"{given.path} lacks vertex {first} and {int(lacks.sum()) - 1} others of graph "
            f"{graph.name}."
        )
    features = np.zeros((graph.vertices, values.shape[1]), dtype=np.float32)
    features[row] = values
    return features


def _have_edges(graph: Graph) -> Bools:
    return np.bincount(graph.indices, minlength=graph.vertices) + np.diff(graph.indptr) > 0


def _object_of(path: Path, form: str) -> dict[str, Any]:
    try:
        value = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{path} is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise DatasetError(f"{form}.")
    return value


def _ids_of(path: Path, words: Iterable[Any], graph: Graph, lines: Sequence[int] = ()) -> Ids:
    """Return the ids that words are: names if the graph has names, or else whole numbers."""
    known: list[Any] = [str(word).strip() for word in words]
    bad = [not word for word in known]
    if not _has_names(graph):
        numbers = [int(w.partition(".")[0]) if INTEGER.fullmatch(w) else -1 for w in known]
        bad = [not 0 <= number < 2**63 for number in numbers]
        known = known if any(bad) else numbers
    if any(bad):
        at = bad.index(True)
        where = f"{path}, line {lines[at]}" if lines else path
        raise DatasetError(f"{where}: {known[at]!r:.40} is not the id of a vertex.")
    return np.array(known)


def _read_class_map(path: Path, graph: Graph) -> _Given:
    form = f'{path} must have the form {{"id": class, ...}} or {{"id": [0, 1, ...], ...}}'
    found = _object_of(path, form)
    ids, values = _ids_of(path, found, graph), list(found.values())
    if not any(isinstance(each, list | dict) for each in values):
        return _Given(path, ids, ["" if each is None else str(each) for each in values])
    width = len(values[0]) if isinstance(values[0], list) else -1
    if any(type(v) is not list or not len(v) == width == v.count(0) + v.count(1) for v in values):
        raise DatasetError(f"{form}, with a zero or a one for each class.")
    return _Given(path, ids, np.array(values, dtype=np.uint8))


def _read_split(path: Path, graph: Graph) -> _Given:
    if format_of(path) != ".json":
        return _read_words(path, graph, None)
    form = f'{path} must have the form {{"tr": [id, ...], "va": [id, ...], "te": [id, ...]}}'
    found = _object_of(path, form)
    if not all(isinstance(ids, list) for ids in found.values()):
        raise DatasetError(f"{form}.")
    words = [part for part, ids in found.items() for _ in ids]
    return _Given(path, _ids_of(path, chain(*found.values()), graph), words)


def _read_labels(path: Path, graph: Graph, column: str | None) -> _Given:
    """Read numbers [N] or [N, 1], zeros and ones [N, C], or words."""
    if column is not None and format_of(path) != ".csv":
        raise DatasetError(f"{path} has no column {column}; only a .csv has columns.")
    if format_of(path) == ".json":
        return _read_class_map(path, graph)
    if format_of(path) != ".npy":
        return _read_words(path, graph, column)
    return _Given(path, None, read_npy(path, ArrayKind(_NUMBERS, (1, 2)), remedy=_REMEDY))


def _read_words(path: Path, graph: Graph, column: str | None) -> _Given:
    if format_of(path) != ".csv":
        return _Given(path, None, [each.strip() for each in read_text(path).rstrip().splitlines()])
    table = _read_table(path, graph)
    if column is not None and column not in table.header:
        there = f"the columns {', '.join(table.header)}" if table.header else "no header"
        raise DatasetError(f"{path} has no column {column}; it has {there}.")
    index = -1 if column is None else table.header.index(column)
    return _Given(path, table.ids, [cells[index].strip() for cells in table.cells])


def _labels_by_vertex(given: _Given, graph: Graph) -> Int64s | Float32s:
    """Return int64[V], or float32[V, C] if multi-label."""
    if isinstance(given.values, list):
        labels = _numbered(given.path, _words_by_vertex(given, graph))
    else:
        rows = _rows_of(given, graph)
        if len(rows) < graph.vertices:
            raise DatasetError(f"{given.path} needs zeros and ones for each vertex of the graph.")
        labels = class_labels(given.values[np.argsort(rows)], str(given.path))
    if labels.ndim == 1:
        largest = int(labels.max())
        if largest < 0:
            raise DatasetError(f"{given.path} holds no labels.")
        if largest >= max(len(labels), 2):
            raise DatasetError(
                f"{given.path} has the label {largest}, but only {len(labels)} vertices; "
                "number the classes from 0."
            )
    return labels


def _words_by_vertex(given: _Given, graph: Graph) -> list[str]:
    words = [""] * graph.vertices
    for row, word in zip(_rows_of(given, graph), given.values, strict=True):
        words[row] = word
    return words


def _numbered(path: Path, words: list[str]) -> Int64s | Float32s:
    used = sorted({word for word in words if not _is_missing(word)})
    numbers = [all(map(_NUMBER.fullmatch, _BETWEEN.split(word))) for word in used]
    if any(numbers) and not all(numbers):
        name = used[numbers.index(False)]
        raise DatasetError(
            f"{path} has numbers as labels, but also {name[:40]!r}; "
            "give whole numbers from 0 only, or names only."
        )
    if several := [word for word in used if all(numbers) and not _NUMBER.fullmatch(word)]:
        raise DatasetError(f"{path} has {several[0][:40]!r} as the label of one vertex.")
    class_of = {word: float(word) if all(numbers) else index for index, word in enumerate(used)}
    return class_labels(np.array([class_of.get(word, np.nan) for word in words]), str(path))


def _is_missing(word: str) -> bool:
    is_number = _NUMBER.fullmatch(word) is not None
    return _MISSING.fullmatch(word) is not None or (is_number and float(word) == UNLABELLED)


def _split_by_vertex(given: _Given, graph: Graph) -> dataset.Split:
    words = _words_by_vertex(given, graph)
    strange = sorted(set(words) - set(_CODES))
    if strange:
        raise DatasetError(
            f"{given.path} has {strange[0][:40]!r}; a vertex is in train, validation, test or none."
        )
    return dataset.split_of_codes(np.array([_CODES[word] for word in words], dtype=np.int8))


def _rows_of(given: _Given, graph: Graph) -> Int64s:
    path, known, ids = given.path, _known(graph), given.ids
    if ids is None:
        rows = len(given.values)
        if rows != graph.vertices:
            raise DatasetError(
                f"{path} has {rows} rows, but graph {graph.name} has {graph.vertices} vertices, "
                f"{known[0]} to {known[-1]}; give one row per vertex (also for isolated ones, and "
                "for 0 unless the ids are 1 to the number of rows), or a .csv with ids."
            )
        return np.arange(rows)
    row = np.minimum(np.searchsorted(known, ids), graph.vertices - 1)
    unknown = known[row] != ids
    if unknown.any():
        raise DatasetError(
            f"{path} names vertex {ids[np.argmax(unknown)]}, which is not in graph {graph.name}."
        )
    twice = np.bincount(row, minlength=graph.vertices) > 1
    if twice.any():
        raise DatasetError(f"{path} names vertex {known[np.argmax(twice)]} twice.")
    return row


def _has_names(graph: Graph) -> bool:
    return graph.original_ids is not None and graph.original_ids.dtype.kind == "U"


@dataclass(frozen=True, eq=False)
class _TextTable:
    header: list[str]  # the names of the other columns; empty: there is no header
    ids: Ids  # the first column, N ids
    cells: list[list[str]]  # N rows of text, all of the same length; without the ids
    lines: list[int]  # the line of each row in the file


def _read_table(path: Path, graph: Graph) -> _TextTable:
    text = read_text(path)
    between = separator(text.partition("\n")[0]) or ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=between, skipinitialspace=True)
    try:
        found = [(row, reader.line_num) for row in reader if row]
    except csv.Error as error:
        raise DatasetError(f"{path}, line {reader.line_num}: {error}.") from error
    first, header = found[0][0][0].strip() if found else "0", []
    if first not in _known(graph) if _has_names(graph) else not _NUMBER_START.match(first):
        header = [name.strip() for name in found.pop(0)[0]]
    if not found:
        raise DatasetError(f"{path} holds no rows.")
    columns = max(len(header or found[0][0]), 2)
    for row, line in found:
        if len(row) != columns:
            raise DatasetError(
                f"{path}, line {line}: has {len(row)} columns; expected {columns}, the first of "
                "which is the id of a vertex."
            )
    lines = [line for _, line in found]
    ids = _ids_of(path, (row[0] for row, _ in found), graph, lines)
    return _TextTable(header[1:], ids, [row[1:] for row, _ in found], lines)
