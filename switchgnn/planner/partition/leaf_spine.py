"""A leaf-spine: workers below leaf switches below spines; partitions with few sums between."""

from dataclasses import dataclass

import numpy as np

from switchgnn.base.array_types import Int32s, Int64s, Integers
from switchgnn.planner.base.arrays import distinct_pairs
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.graphs.boundary import BoundaryEdges, boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.metis import partition_vertices
from switchgnn.planner.partition.workers import check_workers, fill_empty, partition_workers


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


# Partitions that are made for a number of leaves, which comes first in their names.
_FOR_LEAVES = ("metis-leaf-spine", "vertex-cut", "vertex-cut-ebv")
# Of graphs with more directed edges there is one candidate only: the others cost METIS once more.
MOST_COMPARED_EDGES = 2_000_000


def partition_for_leaf_spine(partition: str | None, leaf_spine: LeafSpine | None) -> str | None:
    """Append the number of leaves to one of `_FOR_LEAVES` without one."""
    if leaf_spine is None or partition is None:
        return partition
    kind, *parameters = partition.split(":")
    if kind not in _FOR_LEAVES:
        return partition
    fitting = ":".join([kind, str(leaf_spine.leaves), *parameters[1:]])
    if parameters and partition != fitting:
        raise PlannerError(
            f"The partition {partition} is not for {leaf_spine.leaves} leaves: "
            f"write it as {fitting}."
        )
    return fitting


def metis_leaf_spine(graph: Graph, workers: int, seed: int, *, leaves: int) -> Int32s:
    """Assign vertices by METIS with few sums between leaves: the best of three cuts.

    One cuts for all workers at once. The others cut for the leaves first, with few edges or a small
    communication volume, and then each part for the workers of its leaf.
    """
    check_workers(graph, workers)
    leaf_spine = even_leaf_spine(workers, leaves, spines=1)
    if leaves == 1:
        return partition_workers(graph, workers, seed)
    if len(graph.indices) > MOST_COMPARED_EDGES:
        return _by_leaf(graph, leaf_spine, seed, volume=False)
    candidates = (
        partition_workers(graph, workers, seed),
        _by_leaf(graph, leaf_spine, seed, volume=False),
        _by_leaf(graph, leaf_spine, seed, volume=True),
    )
    return min(
        candidates,
        key=lambda assignment: sum(crossing_sums(boundary_edges(graph, assignment), leaf_spine)),
    )


def _by_leaf(graph: Graph, leaf_spine: LeafSpine, seed: int, *, volume: bool) -> Int32s:
    source, destination = graph.edges()
    below = [len(leaf_spine.workers_of(leaf)) for leaf in range(leaf_spine.leaves)]
    leaf_of = partition_vertices(
        source,
        destination,
        vertices=graph.vertices,
        parts=leaf_spine.leaves,
        seed=seed,
        shares=below,
        volume=volume,
    )
    assignment = np.zeros(graph.vertices, dtype=np.int32)
    for leaf in range(leaf_spine.leaves):
        mine = leaf_of == leaf
        inside = mine[source] & mine[destination]
        index = np.cumsum(mine) - 1
        assignment[mine] = leaf_spine.workers_of(leaf).start + partition_vertices(
            index[source[inside]],
            index[destination[inside]],
            vertices=int(np.count_nonzero(mine)),
            parts=below[leaf],
            seed=seed,
        )
    return fill_empty(assignment, leaf_spine.workers, graph)
