# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Traffic between hosts alone: copies of rows, or partial sums where they are fewer."""

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.sending.cover import cover_by_left

# Numbers of workers have eight bits.
_MOST_WORKERS = 256


def fewest_rows(boundary: BoundaryEdges) -> NDArray[np.bool_]:
    """Choose for every edge u→v between a copy of u (True) and a partial sum for v, bool[E].

    The boundary edges of a pair of workers are a bipartite graph, and the rows that serve them are
    a vertex cover. A minimum one is at most one copy of each source, and at most one partial sum
    for each destination.
    """
    # One vertex for each source and receiver, one for each destination and sender: the
    # pairs of workers do not touch each other, and one cover serves all.
    left, right = _copies(boundary), _partial_sums(boundary)
    return cover_by_left(
        np.unique(left, return_inverse=True)[1].reshape(-1),
        np.unique(right, return_inverse=True)[1].reshape(-1),
    )


def rows_between(
    boundary: BoundaryEdges, workers: int, by_copy: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Count the rows between each pair of workers, int64[W, W]; without a choice, all copies."""
    if by_copy is None:
        by_copy = np.ones(len(boundary), dtype=np.bool_)
    pair = boundary.source_worker.astype(np.int64) * workers + boundary.destination_worker
    rows = np.zeros(workers * workers, dtype=np.int64)
    for served, key in ((by_copy, _copies(boundary)), (~by_copy, _partial_sums(boundary))):
        first = np.unique(key[served], return_index=True)[1]
        rows += np.bincount(pair[served][first], minlength=len(rows))
    return rows.reshape(workers, workers)


def _copies(boundary: BoundaryEdges) -> NDArray[np.int64]:
    """Return int64[E], a number for each source and receiver."""
    key: NDArray[np.int64] = (
        boundary.source.astype(np.int64) * _MOST_WORKERS + boundary.destination_worker
    )
    return key


def _partial_sums(boundary: BoundaryEdges) -> NDArray[np.int64]:
    """Return int64[E], a number for each destination and sender."""
    key: NDArray[np.int64] = (
        boundary.destination.astype(np.int64) * _MOST_WORKERS + boundary.source_worker
    )
    return key
