"""Edge lists: one pair of vertex ids per line."""

import csv
import io
import logging
import math
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Float64s, Int64s
from switchgnn.base.errors import printable
from switchgnn.base.files import read_regular_text
from switchgnn.base.machine import Amount, require_memory
from switchgnn.planner.base.arrays import distinct_keys
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.graphs.graph import Graph, graph_from_edges

Ids: TypeAlias = NDArray[Any]

# Whole numbers, also as programs write them that keep numbers as floats; Python converts no longer
# ones than 4,300 digits.
INTEGER = re.compile(r"[+-]?[0-9]{1,30}(\.0*)?")
# No name of a vertex: a fraction, or a number with a comment right after it.
_NO_NAME = re.compile(r"[+-]?\d*(\.\d+|[#%].*)")
_NAME = re.compile(r"[^\d+\-.].*")
# In a line of names, such as those of web pages, a comment needs a space before it.
_COMMENT = re.compile(r"(?:^|\s)(?:#|%|//).*")
_TABS = re.compile(r"\s*\t\s*")
_QUOTED = re.compile(r'"[^"]*"')
# The header of pandas over the column of its index.
_INDEX = ("", "Unnamed: 0")
# Names of columns in lower case, without what _BESIDES matches: both ends of an edge, and weights.
_ENDS = re.findall(
    r"(\w+)/(\w+)",
    "source/target source/destination sourceid/targetid src/dst srcid/dstid from/to fromid/toid "
    "fromnode/tonode fromnodeid/tonodeid startid/endid node1/node2 id1/id2 head/tail u/v",
)
_WEIGHTS = ("weight", "weights", "edgeweight", "w", "value")
# Signs, and what Neo4j adds: the kind of the vertices, and types.
_BESIDES = re.compile(r"\(.*|(?<=\w):(?!start|end)\w+$|[\W_]")
EDGE_WEIGHTS, IGNORE_WEIGHTS = "--edge-weights", "--ignore-weights"


def load_edge_list(
    path: Path, *, directed: bool | None = None, edge_weights: bool | None = None
) -> Graph:
    """Read two ids per line, separated by spaces, tabs, commas or semicolons, and maybe a weight.

    The first edge decides whether ids are whole numbers or names; docs/data.md lists what else may
    be in a list, and how ids are renumbered.
    """
    text = read_text(path)
    try:
        layout = _look_ahead(path, text, edge_weights=edge_weights)
        ids, weights = _parse(path, text, layout)
    except csv.Error as error:
        raise PlannerError(f"{path} is not a list of edges: {error}.") from error
    if len(ids) == 0:
        raise PlannerError(f"{path} holds no edges.")
    rest, rows = _without_sizes(path, layout, ids, weights)
    if weights is not None:
        weights = weights[len(ids) - len(rest) :]
    return graph_of_ids(
        rest, name=graph_name(path), directed=directed is True, rows=rows, weights=weights
    )


def graph_name(path: Path) -> str:
    """Return the file's name without its format and that of gzip."""
    return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem


def graph_of_ids(
    ids: Ids,
    *,
    name: str,
    directed: bool,
    rows: int | None = None,
    weights: NDArray[Any] | None = None,
) -> Graph:
    """Build a graph of pairs of ids, [E, 2], and number its vertices as load_edge_list does.

    If `rows` is given, it is the number of the vertices, as far as the ids allow it.
    """
    if ids.dtype.kind != "U" and ids.min(initial=0) < 0:
        raise PlannerError(f"Graph {name} has the negative id {ids.min()}.")
    edges, vertices, original_ids = _compact(ids, rows)
    source, destination = edges.T
    return graph_from_edges(
        source,
        destination,
        name=name,
        vertices=vertices,
        directed=directed,
        original_ids=original_ids,
        weights=weights,
    )


def ids_of_rows(ids: Ids, rows: int) -> Ids | None:
    """Return the ids of `rows` vertices, ascending; None if they cannot be as many.

    They are 0..rows - 1 or 1..rows, if these hold all the `ids` that have edges, or else the `ids`.
    """
    if ids.dtype.kind != "U":
        first = 1 if ids[0] >= 1 and ids[-1] == rows else 0
        if ids[-1] < rows + first:
            return np.arange(first, rows + first, dtype=np.int64)
    return ids if len(ids) == rows else None


def refuse_weights(path: Path, values: NDArray[Any], *, edge_weights: bool | None) -> None:
    """Refuse values of edges other than 0 and 1, unless they are asked for or dropped."""
    if edge_weights is None and not np.isin(values, (0, 1)).all():
        raise PlannerError(
            f"{path} has edge weights: {EDGE_WEIGHTS} trains with them, {IGNORE_WEIGHTS} "
            "drops them."
        )
    if edge_weights and values.dtype.kind == "c":
        raise PlannerError(f"{path} has complex edge weights: {IGNORE_WEIGHTS} drops them.")


def tell_ignored(what: str, path: Path, names: Iterable[str]) -> None:
    """Log the names of columns or arrays of a file that are not read, if there are any."""
    if shown := textwrap.shorten(printable(", ".join(names)), 400):
        logging.getLogger(__name__).warning("Ignored %s of %s: %s", what, path, shown)


def separator(line: str) -> str | None:
    """Return what separates the fields of a line; None: spaces."""
    return next((each for each in ",;\t" if each in _QUOTED.sub("", line)), None)


def read_text(path: Path) -> str:
    """Return the text of a file, unpacked; errors as PlannerError."""
    try:
        return read_regular_text(path, "utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlannerError(f"{path} is not a text file (byte {error.start}).") from error
    except OSError as error:
        raise PlannerError(f"Cannot read {path}: {error.strerror}.") from error


@dataclass(frozen=True)
class _Layout:
    skip: int  # the line that the data come after; 0: no line
    separator: str | None
    columns: tuple[int, ...]  # those of both ids, and of the weight if it is asked for
    width: int | None  # the number of columns of each line; None: there may be others
    names: bool
    header: bool  # whether the first line of names may be a header
    # the whole numbers of line `skip`, if that has other columns than the data
    sizes: list[int] | None


def _look_ahead(path: Path, text: str, *, edge_weights: bool | None) -> _Layout:
    lines = list(islice(_lines(text), 2))
    if not lines:
        raise PlannerError(f"{path} holds no edges.")
    between = separator(lines[-1][1])
    rows = [(at, _fields(data, between)) for at, data in lines]
    (number, fields), (after, below) = rows[0], rows[-1]
    first = int(len(fields) > 2 and fields[0] in _INDEX)
    header = all(map(_NAME.fullmatch, fields[first:]))
    ends = _ends(fields) if header else None
    pair, sizes = ends or (first, first + 1), []
    if not header and len(below) != len(fields) and all(map(INTEGER.fullmatch, fields)):
        sizes = [int(field.partition(".")[0]) for field in fields]
    checked, line = (below, after) if header or sizes else (fields, number)
    words = [checked[at] for at in pair if at < len(checked)]
    names = not sizes and not all(map(INTEGER.fullmatch, words))
    if any(map(_NO_NAME.fullmatch, words)) and names:
        raise _bad(path, line, checked, "is not two whole numbers")
    # A line of names is an edge, unless one of them stands for a number.
    has_numbers = any(map(_is_finite, below[2 : len(fields)]))
    is_title = header and (edge_weights or has_numbers or not names)
    titles = fields if is_title or ends else []
    columns, width = _choose_columns(path, number, titles, pair, edge_weights)
    skip, header = number if is_title or sizes else 0, header and not is_title
    return _Layout(skip, between, columns, width, names, header, sizes or None)


def _ends(titles: list[str]) -> tuple[int, int] | None:
    plain = [_BESIDES.sub("", title.lower()) for title in titles]
    found = ((u, v) for u, v in _ENDS if u in plain and v in plain)
    return next(((plain.index(u), plain.index(v)) for u, v in found), None)


def _choose_columns(
    path: Path, line: int, titles: list[str], pair: tuple[int, int], weighted: bool | None
) -> tuple[tuple[int, ...], int | None]:
    """Return `columns` and `width` of a layout; without a header there are no `titles`."""
    others = [at for at, title in enumerate(titles) if at not in pair and title not in _INDEX]
    width = len(titles) or max(pair) + 1
    if weighted is False:
        return pair, None
    if not others:
        return ((*pair, width), width + 1) if weighted else (pair, width)
    found = [at for at in others if _BESIDES.sub("", titles[at].lower()) in _WEIGHTS]
    named = _ends(titles) is not None
    if not (weighted if found else named and not weighted):
        title = titles[(found or others)[0]]
        what = f"which {EDGE_WEIGHTS} uses" if found else "neither a vertex id nor named weight"
        raise _bad(path, line, titles, f"has column {title!r}, {what}: {IGNORE_WEIGHTS} drops it")
    weight = found[:1]
    tell_ignored("columns", path, [titles[at] for at in others if at not in weight])
    return (*pair, *weight), None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(io.StringIO(text), start=1):
        data = _COMMENT.sub("", line).rstrip().lstrip(" ")
        if data:
            yield number, data


def _fields(data: str, between: str | None) -> list[str]:
    if '"' in data:
        flat = data if between else data.replace("\t", " ")
        found = next(csv.reader([flat], delimiter=between or " ", skipinitialspace=True))
    else:
        found = _TABS.split(data) if between == "\t" else data.split(between)
    return [field.strip() for field in found]


def _parse(path: Path, text: str, layout: _Layout) -> tuple[Ids, Float64s | None]:
    """Return the ids of the edges, [E, 2], and their weights, [E], if they are asked for."""
    found = None if layout.names else _numbers(text, layout)
    if found is not None:
        return found
    rows = [
        _row(path, line, _fields(data, layout.separator), layout)
        for line, data in _lines(text)
        if line > layout.skip
    ]
    weights = np.array([float(row[2]) for row in rows]) if len(layout.columns) > 2 else None
    return _ids_of(path, [row[:2] for row in rows], layout), weights


def _ids_of(path: Path, pairs: list[list[str]], layout: _Layout) -> Ids:
    if not layout.names:
        numbers = [[int(word.partition(".")[0]) for word in pair] for pair in pairs]
        if all(-(2**63) <= number < 2**63 for pair in numbers for number in pair):
            return np.array(numbers, dtype=np.int64).reshape(-1, 2)
        pairs = [[str(number) for number in pair] for pair in numbers]
    elif layout.header and not set(pairs[0]) & {word for pair in pairs[1:] for word in pair}:
        del pairs[0]
    longest = max((len(word) for pair in pairs for word in pair), default=0)
    # NumPy pads every name to the longest, in UTF-32.
    require_memory(f"{2 * len(pairs):,} names of {path}", 8 * longest * len(pairs), "shorten them")
    return np.array(pairs, dtype=np.str_).reshape(-1, 2)


def _numbers(text: str, layout: _Layout) -> tuple[Int64s, Float64s | None] | None:
    """Do what _parse does for whole numbers, fast; None: a line needs to be looked at."""
    (u, v, *weight), width = layout.columns, layout.width
    taken = layout.columns if width is None else range(width)
    with warnings.catch_warnings():
        # NumPy warns of empty input, and older versions of fractions that they cut off.
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*input contained no data")
        try:
            table = np.loadtxt(
                io.StringIO(text.replace("%", "#").replace("//", "#")),
                dtype=[(f"f{at}", "f8" if at in weight else "i8") for at in taken],
                comments="#",
                delimiter=None if layout.separator == "\t" else layout.separator,
                skiprows=layout.skip,
                usecols=layout.columns if width is None else None,
                quotechar='"',
                ndmin=1,
            )
        except (ValueError, OverflowError, DeprecationWarning):
            return None
    ids = np.stack([table[f"f{u}"], table[f"f{v}"]], axis=1)
    weights = table[f"f{weight[0]}"] if weight else None
    usable = ids.min(initial=0) >= 0 and (weights is None or np.isfinite(weights).all())
    return (ids, weights) if usable else None


def _row(path: Path, line: int, fields: list[str], layout: _Layout) -> list[str]:
    count, weighted = len(fields), len(layout.columns) > 2
    width = layout.width or count
    row = [fields[at] for at in layout.columns if at < count]
    pair = row[:2]
    if count > width and not weighted:
        problem = f"has {count} columns: {EDGE_WEIGHTS} uses the third, {IGNORE_WEIGHTS} does not"
    elif weighted and (count != width or len(row) < 3):
        problem = f"has {Amount(count):column}, and not a weight after both"
    elif len(pair) < 2:
        problem = f"has {Amount(count):column}"
    elif not all(pair):
        problem = "has an empty id"
    elif not layout.names and not all(map(INTEGER.fullmatch, pair)):
        problem = "is not two whole numbers, as the first edge is"
    elif not layout.names and any(word.startswith("-") for word in pair):
        problem = "has a negative id"
    elif weighted and not _is_finite(row[2]):
        problem = f"has the weight {row[2]!r}"
    else:
        return row
    raise _bad(path, line, fields, problem, " and a finite weight" * weighted)


def _is_finite(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False


def _bad(path: Path, line: int, fields: list[str], problem: str, more: str = "") -> PlannerError:
    data = " ".join(fields)
    shown = data if len(data) <= 80 else data[:77] + "..."
    return PlannerError(f"{path}, line {line}: {shown!r} {problem}; expected two vertex ids{more}.")


def _without_sizes(
    path: Path, layout: _Layout, ids: Ids, weights: Float64s | None
) -> tuple[Ids, int | None]:
    """Return the ids without those of a line of sizes, and the vertices that it names."""
    sizes, rest = layout.sizes, ids
    if ids.dtype.kind == "U" or layout.columns[0] or (layout.skip and sizes is None):
        return ids, None
    if sizes is None:
        sizes, rest = ids[0].tolist(), ids[1:]
        sizes += [] if weights is None else [weights[0]]
    if 0 < len(rest) == sizes[-1] and rest.max() < sizes[0] + (rest.min() > 0):
        return rest, sizes[0]
    if layout.sizes is None:
        return ids, None
    shown = [str(size) for size in layout.sizes]
    raise _bad(path, layout.skip, shown, "has other columns than the edges, and not their number")


def _compact(ids: Ids, rows: int | None) -> tuple[Int64s, int, Ids | None]:
    """Return edges with usable ids, the number of vertices, and the original ids if changed."""
    if ids.dtype.kind == "U":
        names, edges = np.unique(ids, return_inverse=True)
        return edges.reshape(-1, 2), len(names), names
    if ids.size == 0:
        return ids, rows or 0, None
    largest = int(ids.max())
    found = distinct_keys(ids.reshape(-1), largest + 1)
    if rows is not None and (all_ids := ids_of_rows(found, rows)) is not None:
        found = all_ids
    elif 2 * len(found) >= largest + 1:
        return ids, largest + 1, None
    if found[0] == 0 and found[-1] == len(found) - 1:
        return ids, len(found), None
    return np.searchsorted(found, ids), len(found), found
