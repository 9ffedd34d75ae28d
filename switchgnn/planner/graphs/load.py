"""Graphs by name, small ones without a download, or from a file."""

import gzip
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from switchgnn.base.array_types import Int64s
from switchgnn.base.arrays import ArraysError
from switchgnn.base.files import format_of
from switchgnn.base.names import did_you_mean
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.graphs import array_file
from switchgnn.planner.graphs.edge_list import EDGE_WEIGHTS, load_edge_list
from switchgnn.planner.graphs.graph import Graph, graph_from_edges
from switchgnn.planner.graphs.planetoid import find_planetoid, load_planetoid
from switchgnn.planner.graphs.shaped import RANDOM, SHAPES, load_random, load_shaped

DIGITS, KARATE = "digits", "karate"
# The nearest images that every digit is joined to by default.
_NEIGHBOURS = 8
_DIGITS = 1797
# More than any distance; multiplied with a vertex it is still a whole number of a float.
_FARTHEST = 1e9
# Pixels of the digits are whole numbers from 0 to 16.
_MAX_PIXEL = 16


def load_digits(spec: str = DIGITS) -> Graph:
    """Return ``digits`` or ``digits:NEIGHBOURS``, the nearest neighbours of scikit-learn's digits.

    Undirected; 1,797 vertices (8 x 8 images), 64 features in [0, 1], 10 classes. Distances are
    whole numbers and ties go to the lower id, so the graph is the same everywhere.
    """
    text = str(_NEIGHBOURS) if spec == DIGITS else spec.removeprefix(f"{DIGITS}:")
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) < _DIGITS):
        raise PlannerError(f"Cannot read {spec}: write digits:NEIGHBOURS, from 1 to {_DIGITS - 1}.")
    neighbours = int(text)
    table = _digits_table()
    pixels, labels = table[:, :64], table[:, 64]
    vertices = len(pixels)
    points = pixels.astype(np.float64)  # whole numbers, so products stay exact
    squares = (points * points).sum(axis=1)
    distance = squares[:, None] + squares[None, :] - 2 * (points @ points.T)
    np.fill_diagonal(distance, _FARTHEST)
    # All distinct, so that sorting meets no ties.
    ranked = distance * vertices + np.arange(vertices)
    nearest = np.argpartition(ranked, neighbours - 1, axis=1)[:, :neighbours]
    return graph_from_edges(
        np.repeat(np.arange(vertices), neighbours),
        nearest.ravel(),
        name=DIGITS if neighbours == _NEIGHBOURS else f"{DIGITS}:{neighbours}",
        vertices=vertices,
        directed=False,
        features=(pixels / _MAX_PIXEL).astype(np.float32),
        labels=labels,
    )


def load_karate(spec: str = KARATE) -> Graph:
    """Load Zachary's karate club: 34 vertices, 78 undirected edges, two classes, no features."""
    if spec != KARATE:
        raise PlannerError(f"Cannot read {spec}: write {KARATE}.")
    import networkx  # noqa: PLC0415 - slow to import

    club = networkx.karate_club_graph()
    edges = np.array(list(club.edges()), dtype=np.int64)
    labels = [int(club.nodes[v]["club"] != "Mr. Hi") for v in range(len(club))]
    return graph_from_edges(
        edges[:, 0],
        edges[:, 1],
        name=KARATE,
        vertices=len(club),
        directed=False,
        labels=np.array(labels, dtype=np.int64),
    )


def _digits_table() -> Int64s:
    # Importing scikit-learn takes a second, which every worker would pay at its start;
    # the table is an ordinary file of the package.
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise PlannerError("The graph digits needs scikit-learn, which is not installed.")
    file = Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
    with gzip.open(file, "rt", encoding="ascii") as text:
        return np.loadtxt(text, delimiter=",", dtype=np.int64)


BUNDLED: Mapping[str, Callable[[str], Graph]] = {DIGITS: load_digits, KARATE: load_karate}


def is_bundled(spec: str) -> bool:
    """Return whether the name has this form, valid or not."""
    return spec.partition(":")[0] in BUNDLED


# By the part of a name before a colon; all are undirected.
_BY_NAME: Mapping[str, Callable[[str], Graph]] = {
    **BUNDLED,
    RANDOM: load_random,
    **dict.fromkeys(SHAPES, load_shaped),
}
_READERS: Mapping[str, Callable[..., Graph]] = {
    **dict.fromkeys((".txt", ".csv", ".tsv", ".edges", ".el"), load_edge_list),
    ".npz": array_file.load_npz,
    ".npy": array_file.load_npy,
    ".mtx": array_file.load_matrix_market,
}
# A .gz may follow each of them.
SUFFIXES = tuple(_READERS)
# The file of the graph in GraphSAINT's data sets, and in that of DGL.
SAINT, REDDIT = "adj_full.npz", array_file.REDDIT


def load_graph(
    spec: str, *, directed: bool | None = None, edge_weights: bool | None = None
) -> Graph:
    """Load the graph with that name, or from that file; docs/data.md lists both.

    Args:
        spec: the name or the file.
        directed: None: edge lists are undirected, matrices are as stored.
        edge_weights: whether edge weights are read or dropped; None: they are refused.

    Returns:
        The graph.

    Raises:
        PlannerError: there is no such graph, or its file cannot be read.
    """
    path = graph_file(Path(spec))
    make, planetoid = _BY_NAME.get(spec.partition(":")[0]), find_planetoid(path)
    if directed and (make or planetoid):
        raise PlannerError(f"Graph {spec} is undirected and has no directed form.")
    if make is not None:
        graph = make(spec)
    elif planetoid is not None:
        graph = load_planetoid(*planetoid)
    elif not path.exists():
        known = sorted(BUNDLED)
        near = did_you_mean(spec, known) or "."
        raise PlannerError(f"No graph {spec}: it is neither a file nor {' or '.join(known)}{near}")
    elif format_of(path) in _READERS:
        read = _READERS[format_of(path)]
        try:
            graph = read(path, directed=directed, edge_weights=edge_weights)
        except ArraysError as error:
            raise PlannerError(str(error)) from error
    else:
        raise PlannerError(
            f"Cannot tell the format of {spec}: expected one of {' '.join(SUFFIXES)}, also with "
            f".gz, or a Planetoid file ind.NAME.graph, or a folder with {SAINT} or {REDDIT}."
        )
    if edge_weights and graph.weights is None:
        raise PlannerError(f"Graph {spec} has no edge weights: leave {EDGE_WEIGHTS} out.")
    return graph


def graph_file(path: Path) -> Path:
    """Return the file of the graph in a folder of GraphSAINT or DGL, or else the path."""
    return next((path / name for name in (SAINT, REDDIT) if (path / name).is_file()), path)
