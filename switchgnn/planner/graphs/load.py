"""Graphs by name or from a file."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from switchgnn.base.files import format_of
from switchgnn.base.names import did_you_mean
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs import array_file
from switchgnn.planner.graphs import bundled as load_bundled
from switchgnn.planner.graphs import planetoid as load_planetoid
from switchgnn.planner.graphs import shaped as load_shaped
from switchgnn.planner.graphs.edge_list import EDGE_WEIGHTS, load_edge_list
from switchgnn.planner.graphs.graph import Graph

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
        directed: None: lists of edges are undirected, matrices are as stored.
        edge_weights: whether weights of edges are read, or dropped; None: they are refused.

    Returns:
        The graph.

    Raises:
        PlannerError: there is no such graph, or its file cannot be read.
    """
    path = graph_file(Path(spec))
    undirected = _undirected_loader(spec, path)
    if undirected is not None:
        if directed:
            raise PlannerError(f"Graph {spec} is undirected and has no directed form.")
        graph = undirected()
    elif not path.exists():
        known = sorted(load_bundled.BUNDLED)
        near = did_you_mean(spec, known) or "."
        raise PlannerError(f"No graph {spec}: it is neither a file nor {' or '.join(known)}{near}")
    elif format_of(path) in _READERS:
        graph = _READERS[format_of(path)](path, directed=directed, edge_weights=edge_weights)
    else:
        raise PlannerError(
            f"Cannot tell the format of {spec}: expected one of {' '.join(SUFFIXES)}, also with "
            f".gz, or a Planetoid file ind.NAME.graph, or a folder with {SAINT} or {REDDIT}."
        )
    if edge_weights and graph.weights is None:
        raise PlannerError(f"Graph {spec} has no weights of edges: leave {EDGE_WEIGHTS} out.")
    return graph


def graph_file(path: Path) -> Path:
    """Return the file of the graph in a folder of GraphSAINT or DGL, or else the path."""
    return next((path / name for name in (SAINT, REDDIT) if (path / name).is_file()), path)


def _undirected_loader(spec: str, path: Path) -> Callable[[], Graph] | None:
    if load_bundled.is_bundled(spec):
        return partial(load_bundled.load_bundled, spec)
    if spec.startswith(load_shaped.RANDOM_PREFIX):
        return partial(load_shaped.load_random, spec)
    if load_shaped.is_shaped(spec):
        return partial(load_shaped.load_shaped, spec)
    planetoid = load_planetoid.find_planetoid(path)
    return None if planetoid is None else partial(load_planetoid.load_planetoid, *planetoid)
