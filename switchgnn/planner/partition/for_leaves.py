"""Partitions for a leaf-spine: few sums between leaves, then few between workers."""

import numpy as np

from switchgnn.base.array_types import Int32s
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.leaf_spine import LeafSpine, crossing_sums, even_leaf_spine
from switchgnn.planner.partition.metis import partition_vertices
from switchgnn.planner.partition.workers import (
    check_workers,
    fill_empty,
    partition_workers,
)

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
