"""Partitions for comparison: at random, in the order of the ids, and from files."""

import io
import warnings
from pathlib import Path

import numpy as np

from switchgnn.base.array_types import Bools, Int32s, Int64s
from switchgnn.base.arrays import ArrayKind, ArraysError, read_npy
from switchgnn.base.files import format_of, read_regular_text
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.metis import partition_vertices
from switchgnn.planner.partition.workers import check_workers, fill_empty


def shuffled(graph: Graph, workers: int, seed: int) -> Int32s:
    """Give every vertex to a random worker; shares differ by at most one vertex."""
    check_workers(graph, workers)
    order = np.random.default_rng(seed).permutation(graph.vertices)
    return (order % workers).astype(np.int32)


def chunk(graph: Graph, workers: int, seed: int) -> Int32s:
    """Cut the ids into runs of equal length; good where neighbours have close ids."""
    check_workers(graph, workers)
    return (np.arange(graph.vertices) * workers // graph.vertices).astype(np.int32)


# The runs of METIS; each learns from the boundary of the best one.
_RUNS = 5
# A run is rejected if it makes the boundary larger than this share of METIS's own.
MOST_BOUNDARY = 1.02


def boundary_loads(graph: Graph, assignment: Int32s, workers: int) -> Int64s:
    """Count the remote sources and destinations of each worker, int64[workers]."""
    sends, receives = _ends(graph, assignment)
    return np.bincount(assignment[sends], minlength=workers) + np.bincount(
        assignment[receives], minlength=workers
    )


def balanced_boundary(graph: Graph, workers: int, seed: int) -> Int32s:
    """Run METIS again with weights until no worker has far more boundary vertices.

    Each run weights the vertices by their cost in the best partition so far: twice the mean share
    of a boundary vertex if it sends and receives, once if it does one of both, and a little for
    all. A run is accepted if its largest load is less and the total has not grown by more than
    MOST_BOUNDARY.
    """
    check_workers(graph, workers)
    source, destination = graph.edges()
    best: Int32s | None = None
    limit = most = np.inf
    weights: Int64s | None = None
    for run in range(_RUNS):
        part = partition_vertices(
            source,
            destination,
            vertices=graph.vertices,
            parts=workers,
            seed=seed + run,
            weights=weights,
        )
        part = fill_empty(part, workers, graph)
        loads = boundary_loads(graph, part, workers)
        if best is None or (loads.max() < most and loads.sum() <= limit):
            best, most = part, float(loads.max())
            limit = MOST_BOUNDARY * float(loads.sum()) if run == 0 else limit
        # Half of the sum is equal for all, half by sends and receives.
        sends, receives = _ends(graph, best)
        load = sends.astype(np.int64) + receives
        weights = 1 + load * -(-graph.vertices // max(1, int(load.sum())))
    assert best is not None  # noqa: S101 - there is at least one run
    return best


def _ends(graph: Graph, assignment: Int32s) -> tuple[Bools, Bools]:
    """Return bool[V] twice: the vertices with an edge to, and with one from, another worker."""
    source, destination = graph.edges()
    crosses = assignment[source] != assignment[destination]
    sends, receives = np.zeros((2, graph.vertices), dtype=np.bool_)
    sends[source[crosses]] = True
    receives[destination[crosses]] = True
    return sends, receives


_CONTENT = "one whole number per vertex"


def load_assignment(path: Path | str) -> Int64s:
    """Return the worker of each vertex, in the order of the ids, for `build_plan(assignment=...)`.

    A `.npy` file holds an array of integers; any other file is text with one number per line, as
    METIS writes its partitions, with comments after `#`. `build_plan` checks the numbers.
    """
    path = Path(path)
    return _array(path) if format_of(path) == ".npy" else _lines(path)


def _array(path: Path) -> Int64s:
    try:
        remedy = f"it must hold {_CONTENT}"
        loaded = read_npy(path, ArrayKind(("i", "u")), remedy=remedy)
    except ArraysError as error:
        raise PlannerError(f"The assignment cannot be read: {error}") from error
    return loaded.astype(np.int64)


def _lines(path: Path) -> Int64s:
    try:
        text = io.StringIO(read_regular_text(path, "utf-8"))
        # Older versions of NumPy would cut off a fraction, and only warn.
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            loaded = np.loadtxt(text, dtype=np.int64, ndmin=1, comments="#")
    except OSError as error:
        raise PlannerError(f"The assignment {path} cannot be read: {error}.") from error
    except ValueError as error:
        raise PlannerError(f"The assignment {path} must hold {_CONTENT}: {error}.") from error
    if loaded.ndim != 1:
        raise PlannerError(f"The assignment {path} must hold {_CONTENT}.")
    return loaded.astype(np.int64, copy=False)
