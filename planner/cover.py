# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Minimum vertex covers of bipartite graphs, by König's theorem: what to send in a block."""

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.boundary import BoundaryEdges
from switchgnn.planner.errors import PlannerError

# At most 128 workers.
_WORKER_BITS = 7


def cover_edges(
    boundary: BoundaryEdges, block: NDArray[np.int32], weight: float = 0.0
) -> NDArray[np.bool_]:
    """Choose for every edge u→v between a multicast of u and a partial sum for v.

    The edges of one worker in one block are a bipartite graph. An edge is served when u is
    sent, or when the worker sends its own partial sum for v. So what is sent is a vertex
    cover, and a minimum one is the fewest packets.

    Args:
        boundary: the boundary edges, length E.
        block: int32[E].
        weight: what a contribution costs, in packets; only 0 is possible.

    Returns:
        bool[E]: True where u is sent, False where the partial sum for v is.

    Raises:
        PlannerError: another weight.
    """
    if weight != 0.0:
        raise PlannerError(f"the weight of a contribution must be 0, not {weight:g}")
    # One vertex for each (block, source), one for each (block, destination, sending worker):
    # blocks and workers do not touch each other, and one cover serves all.
    number = block.astype(np.int64)
    right = (number << 31 | boundary.destination) << _WORKER_BITS | boundary.source_worker
    return cover_by_left(_numbered(number << 31 | boundary.source), _numbered(right))


def cover_by_left(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Cover all edges with as few vertices as there are.

    The cover is that of König's proof: with Z the vertices that alternating paths reach from
    the unmatched vertices on the left, it is left without Z, and right within Z.

    Args:
        left: int64[E], the vertex at the left end of each edge, numbered from 0.
        right: int64[E], at the right end. No edge occurs twice.

    Returns:
        bool[E]: whether the vertex at the left end is in the cover; where it is not, the one
        at the right end is.
    """
    if not len(left):
        return np.zeros(0, dtype=np.bool_)
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow to import
    from scipy.sparse.csgraph import maximum_bipartite_matching  # noqa: PLC0415

    shape = (int(left.max()) + 1, int(right.max()) + 1)
    edges = csr_matrix((np.ones(len(left), dtype=np.int8), (left, right)), shape=shape)
    right_of = maximum_bipartite_matching(edges, perm_type="column")
    left_of = np.full(shape[1], -1, dtype=np.int64)
    matched = np.flatnonzero(right_of >= 0)
    left_of[right_of[matched]] = matched
    reached_left = right_of < 0
    reached_right = np.zeros(shape[1], dtype=np.bool_)
    frontier = np.flatnonzero(reached_left)
    while len(frontier):
        found = np.unique(edges[frontier].indices)
        found = found[~reached_right[found]]
        reached_right[found] = True
        frontier = left_of[found]
        reached_left[frontier] = True
    by_left: NDArray[np.bool_] = ~reached_left[left]
    return by_left


def _numbered(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the different keys from 0."""
    numbers: NDArray[np.int64] = np.unique(keys, return_inverse=True)[1]
    return numbers
