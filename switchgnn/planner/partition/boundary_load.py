# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A partition that balances what the switch makes count: boundary vertices per worker.

With the switch a worker sends each of its boundary vertices once and receives one sum for
each, in whatever number of copies others need it. The link of the worker with the most of
them is the slowest.
"""

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.metis import partition_vertices
from switchgnn.planner.partition.workers import check_workers, fill_empty

# METIS runs so often in all; each run learns from the boundary of the best one.
_RUNS = 5
# A run is not taken if it makes the boundary larger than this share of METIS's own.
MOST_BOUNDARY = 1.02


def boundary_loads(graph: Graph, assignment: NDArray[np.int32], workers: int) -> NDArray[np.int64]:
    """Count what each worker sends and receives at least: its remote sources and destinations.

    Args:
        graph: the graph, with V vertices.
        assignment: int32[V], the worker of each vertex.
        workers: their number.

    Returns:
        int64[workers]: its vertices with an edge to another worker, plus its vertices with an
        edge from another worker.
    """
    sends, receives = _ends(graph, assignment)
    return np.bincount(assignment[sends], minlength=workers) + np.bincount(
        assignment[receives], minlength=workers
    )


def balanced_boundary(graph: Graph, workers: int, seed: int) -> NDArray[np.int32]:
    """Run METIS again with weights until no worker has far more boundary vertices.

    Each run weights the vertices by what they cost in the best partition so far: twice the
    mean share of a boundary vertex if it sends and receives, once if it does one of both, and
    a little to all, so that vertices stay balanced too. A run is taken if its largest load is
    less and all loads together have not grown by more than MOST_BOUNDARY.

    Args:
        graph: directions count: a vertex may only send, or only receive.
        workers: their number.
        seed: of METIS; the run counts on from it.

    Returns:
        int32[V], 0 <= worker < workers; every worker has a vertex.
    """
    check_workers(graph, workers)
    source, destination = graph.edges()
    best: NDArray[np.int32] | None = None
    limit = most = np.inf
    weights: NDArray[np.int64] | None = None
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
        weights = _weights(graph, best)
    assert best is not None  # noqa: S101 - there is at least one run
    return best


def _weights(graph: Graph, assignment: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return int64[V]: half of the sum for all alike, half for what they send and receive."""
    sends, receives = _ends(graph, assignment)
    load = sends.astype(np.int64) + receives
    share = -(-graph.vertices // max(1, int(load.sum())))
    return 1 + load * share


def _ends(
    graph: Graph, assignment: NDArray[np.int32]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return bool[V] twice: the vertices with an edge to, and with one from, another worker."""
    source, destination = graph.edges()
    crosses = assignment[source] != assignment[destination]
    sends, receives = np.zeros((2, graph.vertices), dtype=np.bool_)
    sends[source[crosses]] = True
    receives[destination[crosses]] = True
    return sends, receives
