# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Minimum vertex covers of bipartite graphs, by König's theorem."""

import numpy as np
from numpy.typing import NDArray


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
