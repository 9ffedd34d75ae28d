"""A leaf-spine: workers attached to leaf switches, with spine switches above them."""

from dataclasses import dataclass

import numpy as np

from switchgnn.base.array_types import Int64s, Integers
from switchgnn.planner.base.arrays import distinct_pairs
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.graphs.boundary import BoundaryEdges


@dataclass(frozen=True)
class LeafSpine:
    """The leaf of each worker; every leaf has a link to every spine."""

    leaf_of_worker: tuple[int, ...]  # the workers of a leaf have consecutive numbers
    spines: int  # their number

    @property
    def workers(self) -> int:
        """Number of workers."""
        return len(self.leaf_of_worker)

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return self.leaf_of_worker[-1] + 1

    def workers_of(self, leaf: int) -> range:
        """Return the workers of a leaf."""
        first = self.leaf_of_worker.index(leaf)
        return range(first, first + self.leaf_of_worker.count(leaf))

    def spine_of(self, vertex: Integers) -> Int64s:
        """Return the spine that completes the sum of each vertex, in turn."""
        spine: Int64s = vertex.astype(np.int64) % self.spines
        return spine


def even_leaf_spine(workers: int, leaves: int, spines: int) -> LeafSpine:
    """Divide workers over leaves as evenly as can be."""
    if leaves < 1 or spines < 1:
        raise PlannerError(f"{leaves} leaves and {spines} spines are too few: take one at least.")
    if leaves > workers:
        raise PlannerError(
            f"{leaves} leaves are too many for {workers} worker{'s' * (workers > 1)}: each leaf "
            "needs a worker."
        )
    return LeafSpine(tuple(worker * leaves // workers for worker in range(workers)), spines)


def crossing_sums(boundary: BoundaryEdges, leaf_spine: LeafSpine) -> tuple[int, int]:
    """Count the sums that cross leaves, with every sum in one block.

    A destination with a source on another leaf costs one partial sum of each leaf with a boundary
    edge to it, its own included, and one sum down.
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
