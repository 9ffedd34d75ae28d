# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The strawman of the paper's section 2.3.2: no blocks, and no slot for anybody in advance."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.plan.edge_sets import EdgeSet


def one_block(boundary: BoundaryEdges, slots: int, seed: int) -> NDArray[np.int32]:
    """Put all boundary edges into one block, however few the slots are.

    Args:
        boundary: the boundary edges, length E.
        slots: what the switch hands out.
        seed: without effect.

    Returns:
        int32[E], ones.

    Raises:
        PlannerError: a bank would have no slot at all.
    """
    if slots < BANKS:
        raise PlannerError(
            f"{slots} slots are too few for the strawman, whose {BANKS} banks hand out their own: "
            f"it needs at least {BANKS}"
        )
    return np.ones(len(boundary), dtype=np.int32)


def most_destinations(sets: Sequence[EdgeSet]) -> int:
    """Return the destinations of the largest block, at least 1: each has a number in its bank."""
    return max([1, *(len(np.unique(each.boundary.destination)) for each in sets)])
