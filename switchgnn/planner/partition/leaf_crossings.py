# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What crosses from leaf to leaf, counted from the boundary edges alone."""

import numpy as np

from switchgnn.planner.arrays.rows import distinct_pairs
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.partition.leaf_spine import LeafSpine


def crossing_sums(boundary: BoundaryEdges, leaf_spine: LeafSpine) -> tuple[int, int]:
    """Count the partial sums up and the sums down that cross, with every sum in one block.

    A destination with a source behind another leaf costs one partial sum of each leaf that has
    a boundary edge to it, its own included, and one sum. In more blocks it costs that in each.
    """
    leaf = np.array(leaf_spine.leaf_of_worker, dtype=np.int32)
    source, destination = leaf[boundary.source_worker], leaf[boundary.destination_worker]
    crosses = np.zeros(int(boundary.destination.max(initial=-1)) + 1, dtype=np.bool_)
    crosses[boundary.destination[source != destination]] = True
    sent = crosses[boundary.destination]
    partial_sums, _ = distinct_pairs(boundary.destination[sent], source[sent])
    return len(partial_sums), int(np.count_nonzero(crosses))


def crossing_copies(boundary: BoundaryEdges, leaf_spine: LeafSpine) -> int:
    """Count the packets that cross in host-based exchange, per fragment."""
    leaf = np.array(leaf_spine.leaf_of_worker)
    sender, receiver = boundary.host_copies()
    return int(np.count_nonzero(leaf[sender] != leaf[receiver]))
