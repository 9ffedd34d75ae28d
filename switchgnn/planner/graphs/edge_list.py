# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Edge lists: one pair of vertex ids per line."""

import io
import re
import warnings
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.files import read_regular_text
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID, Graph, graph_from_edges

# A header is a first line of names: no field of it looks like a number.
_NAME = re.compile(r"[^\d\s+\-.][^\s]*")
_INTEGER = re.compile(r"[+-]?\d+")


def load_edge_list(path: Path, *, directed: bool) -> Graph:
    """Read two whole numbers per line, separated by spaces, tabs or a comma.

    `#` and `%` start a comment; empty lines and a header of names are skipped. The first line with
    data decides the separator.

    Ids stay as they are if at least half of 0..max occur; the others are isolated vertices.
    Otherwise they are renumbered in ascending order and kept in `Graph.original_ids`.
    """
    text = _read_text(path)
    header, delimiter = _look_ahead(text)
    edges = _parse(path, text, header, delimiter)
    if len(edges) == 0:
        raise PlannerError(f"{path} holds no edges")
    if edges.min() < 0 or edges.max() >= FIRST_RESERVED_ID:
        _explain(path, text, header, delimiter)
    edges, vertices, original_ids = _compact(edges)
    return graph_from_edges(
        edges[:, 0],
        edges[:, 1],
        name=path.stem,
        vertices=vertices,
        directed=directed,
        original_ids=original_ids,
    )


def _read_text(path: Path) -> str:
    try:
        return read_regular_text(path, "utf-8-sig").replace("%", "#")
    except UnicodeDecodeError as error:
        raise PlannerError(f"{path} is not a text file (byte {error.start})") from error
    except OSError as error:
        raise PlannerError(f"cannot read {path}: {error.strerror}") from error


def _look_ahead(text: str) -> tuple[int, str | None]:
    """Return the number of lines up to the header (0: none), and the separator."""
    header = 0
    for number, line in enumerate(io.StringIO(text), start=1):
        data = line.split("#", 1)[0].strip()
        if not data:
            continue
        delimiter = "," if "," in data else None
        if not header and all(_NAME.fullmatch(field.strip()) for field in data.split(delimiter)):
            header = number
            continue
        return header, delimiter
    return header, None


def _parse(path: Path, text: str, header: int, delimiter: str | None) -> NDArray[np.int64]:
    with warnings.catch_warnings():
        # NumPy warns of empty input, and older versions of fractions that they cut off.
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*input contained no data")
        try:
            edges = np.loadtxt(
                io.StringIO(text),
                dtype=np.int64,
                comments="#",
                delimiter=delimiter,
                skiprows=header,
                ndmin=2,
            )
        except (ValueError, OverflowError, DeprecationWarning):
            _explain(path, text, header, delimiter)
    if edges.size and edges.shape[1] != 2:
        _explain(path, text, header, delimiter)
    return edges.reshape(-1, 2)


def _explain(path: Path, text: str, header: int, delimiter: str | None) -> NoReturn:
    for number, line in enumerate(io.StringIO(text), start=1):
        data = line.split("#", 1)[0].strip()
        if number <= header or not data:
            continue
        problem = _problem([field.strip() for field in data.split(delimiter)])
        if problem:
            shown = data if len(data) <= 80 else data[:77] + "..."
            raise PlannerError(
                f"{path}, line {number}: {shown!r} {problem}; expected two vertex ids, "
                "whole numbers from 0 to 2^31 - 1"
            )
    raise PlannerError(f"{path} is not a list of edges: expected two vertex ids per line")


def _problem(fields: list[str]) -> str | None:
    if len(fields) != 2:
        return f"has {len(fields)} column{'' if len(fields) == 1 else 's'}"
    for field in fields:
        if not _INTEGER.fullmatch(field):
            return "is not two whole numbers"
        if int(field) < 0:
            return "has a negative id"
        if int(field) >= FIRST_RESERVED_ID:
            return "has an id that is too large"
    return None


def _compact(edges: NDArray[np.int64]) -> tuple[NDArray[np.int64], int, NDArray[np.int64] | None]:
    """Return edges with usable ids, the number of vertices, and the original ids if changed."""
    largest = int(edges.max())
    if largest < 2 * edges.size:
        # Small enough to mark every id; far faster than sorting them.
        present = np.zeros(largest + 1, dtype=bool)
        present[edges] = True
        ids = np.flatnonzero(present)
    else:
        ids = np.unique(edges)
    if 2 * len(ids) >= largest + 1:
        return edges, largest + 1, None
    return np.searchsorted(ids, edges), len(ids), ids
