"""Blocks of consecutive destinations: the simplest that can be."""

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.graphs.boundary import BoundaryEdges


def consecutive(boundary: BoundaryEdges, slots: int, seed: int) -> NDArray[np.int32]:
    """Return blocks that have the destinations in the order of their ids, `slots` in each.

    Args:
        boundary: the boundary edges, length E.
        slots: the most destinations that a block may have.
        seed: without effect.

    Returns:
        int32[E], numbered from 1.
    """
    _, index = np.unique(boundary.destination, return_inverse=True)
    return (index // slots + 1).astype(np.int32)
