# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What no plan for an assignment can beat, and what the others would send."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.arrays.rows import distinct_pairs, number_ids, number_pairs
from switchgnn.planner.graphs.boundary import BoundaryEdges, holders

# A matching of more edges takes minutes, so it is left out, and said to be.
MATCHING_EDGES = 20_000_000


@dataclass(frozen=True, eq=False)
class Packets:
    """Data packets of one exchange per fragment.

    Attributes:
        up: int64[W], sent by each worker.
        down: int64[W], received by each worker.
    """

    up: NDArray[np.int64]
    down: NDArray[np.int64]

    @property
    def total(self) -> int:
        """All of them, up and down."""
        return int(self.up.sum() + self.down.sum())


def host_based(boundary: BoundaryEdges, workers: int) -> Packets:
    """Return one copy of each source for each other worker that needs it, up and down."""
    sender, receiver = boundary.host_copies()
    return Packets(_count(sender, workers), _count(receiver, workers))


def once_each(boundary: BoundaryEdges, workers: int) -> Packets:
    """Return the least if sources are multicast: each once up, each destination once down."""
    return multicast_packets(boundary, np.ones(len(boundary), dtype=np.int32), workers)


def least_with_partial_sums(boundary: BoundaryEdges, workers: int) -> Packets | None:
    """Return the fewest packets if workers may also send partial sums of their own.

    Up, every boundary edge is served by its source or by its worker's partial sum for the
    destination. So a worker sends at least the minimum vertex cover of its edges, which is as
    large as their maximum matching (König). Blocks can only add to that: the covers of all
    blocks together are a cover. Down, each destination comes at least once.

    Returns:
        None where the matching would have too many edges.
    """
    if len(boundary) > MATCHING_EDGES:
        return None
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow to import
    from scipy.sparse.csgraph import maximum_bipartite_matching  # noqa: PLC0415

    sources, row = number_ids(boundary.source)
    # A destination is another one for each worker that sends to it.
    (sums, _), column = number_pairs(boundary.destination, boundary.source_worker)
    ones = np.ones(len(boundary), dtype=np.int8)
    edges = csr_matrix((ones, (row, column)), shape=(len(sources), len(sums)))
    matched = maximum_bipartite_matching(edges, perm_type="column") >= 0
    owner = holders(boundary.source, boundary.source_worker)[sources]
    return Packets(_count(owner[matched], workers), once_each(boundary, workers).down)


def multicast_packets(boundary: BoundaryEdges, block: NDArray[np.integer], workers: int) -> Packets:
    """Count packets when every edge is served by the feature of its source.

    Each source goes up once in each of its blocks, each destination comes down once in each of its
    own.

    Args:
        boundary: the boundary edges, length E.
        block: int32[E], the block of each.
        workers: their number.

    Returns:
        The packets up and down of each worker, per fragment.
    """
    up = distinct_pairs(block, boundary.source)[1]
    down = distinct_pairs(block, boundary.destination)[1]
    return Packets(
        _count(holders(boundary.source, boundary.source_worker)[up], workers),
        _count(holders(boundary.destination, boundary.destination_worker)[down], workers),
    )


def _count(owner: NDArray[np.integer], workers: int) -> NDArray[np.int64]:
    return np.bincount(owner, minlength=workers).astype(np.int64)
