"""Graphs by name or from a file."""

from collections.abc import Callable, Mapping
from pathlib import Path

from switchgnn.base.arrays import ArraysError
from switchgnn.base.files import format_of
from switchgnn.base.names import did_you_mean
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.graphs import array_file
from switchgnn.planner.graphs.bundled import BUNDLED
from switchgnn.planner.graphs.edge_list import EDGE_WEIGHTS, load_edge_list
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.graphs.planetoid import find_planetoid, load_planetoid
from switchgnn.planner.graphs.shaped import RANDOM, SHAPES, load_random, load_shaped

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
