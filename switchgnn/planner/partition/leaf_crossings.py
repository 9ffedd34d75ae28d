# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What has to cross between leaves, counted from the boundary edges alone."""

import numpy as np

from switchgnn.planner.arrays.rows import distinct_pairs
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.partition.leaf_spine import Racks


def once_between(boundary: BoundaryEdges, racks: Racks) -> tuple[int, int]:
    """Partial sums up and sums down between leaves and spines, with every sum in one block.

    A destination with a source behind another leaf costs one partial sum of each leaf that has
    a boundary edge to it, its own included, and one sum. In more blocks it costs that in each.
    """
    leaf = np.array(racks.leaf_of_worker, dtype=np.int32)
    source, destination = leaf[boundary.source_worker], leaf[boundary.destination_worker]
    crosses = np.zeros(int(boundary.destination.max(initial=-1)) + 1, dtype=np.bool_)
    crosses[boundary.destination[source != destination]] = True
    sent = crosses[boundary.destination]
    partial_sums, _ = distinct_pairs(boundary.destination[sent], source[sent])
    return len(partial_sums), int(np.count_nonzero(crosses))


def copies_between(boundary: BoundaryEdges, racks: Racks) -> int:
    """Packets that host-based exchange sends from leaf to leaf, per fragment."""
    leaf = np.array(racks.leaf_of_worker)
    sender, receiver = boundary.host_copies()
    return int(np.count_nonzero(leaf[sender] != leaf[receiver]))
