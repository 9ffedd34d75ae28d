"""Traffic between hosts alone: copies of rows, or partial sums where they are fewer."""

import numpy as np

from switchgnn.base.array_types import Bools, Int32s, Int64s, UInt8s
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.sending.cover import minimum_cover

# Numbers of workers have eight bits.
_MOST_WORKERS = 256


def fewest_rows(boundary: BoundaryEdges) -> Bools:
    """Choose for every edge u→v between a copy of u (True) and a partial sum for v, bool[E].

    The boundary edges of a pair of workers are a bipartite graph, and the rows that serve them are
    a vertex cover. A minimum one is at most one copy of each source, and at most one partial sum
    for each destination.
    """
    # One vertex for each source and receiver, one for each destination and sender: the
    # pairs of workers do not touch each other, and one cover serves all.
    left, right = (
        np.unique(_number(vertex, worker), return_inverse=True)[1].reshape(-1)
        for vertex, worker in (
            (boundary.source, boundary.destination_worker),
            (boundary.destination, boundary.source_worker),
        )
    )
    by_copy: Bools = minimum_cover(left, right)[0][left]
    return by_copy


def rows_between(boundary: BoundaryEdges, workers: int, by_copy: Bools | None = None) -> Int64s:
    """Count the rows between each pair of workers, int64[W, W]; without a choice, all copies."""
    if by_copy is None:
        by_copy = np.ones(len(boundary), dtype=np.bool_)
    pair = boundary.source_worker.astype(np.int64) * workers + boundary.destination_worker
    rows = np.zeros(workers * workers, dtype=np.int64)
    copies = _number(boundary.source, boundary.destination_worker)
    partial_sums = _number(boundary.destination, boundary.source_worker)
    for served, key in ((by_copy, copies), (~by_copy, partial_sums)):
        first = np.unique(key[served], return_index=True)[1]
        rows += np.bincount(pair[served][first], minlength=len(rows))
    return rows.reshape(workers, workers)


def _number(vertex: Int32s, worker: UInt8s) -> Int64s:
    """Return int64[E], a number for each vertex and worker."""
    key: Int64s = vertex.astype(np.int64) * _MOST_WORKERS + worker
    return key
