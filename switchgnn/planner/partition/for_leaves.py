"""Partitions for a leaf-spine: few sums between leaves, then few between workers."""

import math
from dataclasses import dataclass

import numpy as np

from switchgnn.base.array_types import Bools, Float64s, Int32s, Int64s
from switchgnn.planner.base.arrays import Compiled, sort_by_key, symmetric_rows
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.leaf_spine import LeafSpine, crossing_sums, even_leaf_spine
from switchgnn.planner.partition.metis import partition_vertices
from switchgnn.planner.partition.workers import (
    MOST_SHARE,
    check_workers,
    fill_empty,
    partition_workers,
)

# Partitions that are made for a number of leaves, which comes first in their names.
_FOR_LEAVES = ("metis-leaf-spine", "cdfgnn", "vertex-cut", "vertex-cut-ebv")
# Of graphs with more directed edges there is one candidate only: the others cost METIS once more.
MOST_COMPARED_EDGES = 2_000_000


def partition_for_leaf_spine(partition: str | None, leaf_spine: LeafSpine | None) -> str | None:
    """Append the number of leaves to `metis-leaf-spine` or `cdfgnn` without one."""
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


# The weight of copies between leaves, as in the paper's experiments (section 6).
GAMMA = 0.1
# The weights of the shares, as https://github.com/lcj2021/split-merge-partitioner has them.
ALPHA, BETA = 1.0, 1.0


def cdfgnn(graph: Graph, workers: int, seed: int, *, leaves: int, gamma: float = GAMMA) -> Int32s:
    """Give one vertex after another to the worker with the least score.

    This is CDFGNN's host-aware objective, for vertices and leaves instead of edges and hosts.
    CDFGNN (section 6) extends EBV, which gives *edges* to devices one by one. A vertex has a copy
    on each device that has an edge of it. The edge (u, v) goes to the device i with the least

        (1 - gamma) * ([i has no copy of u] + [i has no copy of v])
        + gamma * ([the host of i has no copy of u] + [the host of i has no copy of v])
        + alpha * edges of i / mean + beta * vertices of i / mean                    (equation 24).

    Here a worker holds a *vertex* with all edges that are summed for it, so the scores of all edges
    of a vertex v are added up. A copy is made once for all edges that need it:

        (1 - gamma) * (how many of v and its neighbours i has no copy of)
        + gamma * (how many of v and its neighbours the leaf of i has no copy of)
        + neighbours of v * (alpha * edges of i / mean + beta * vertices of i / mean).

    A worker has a copy of x if it holds x or a neighbour of x; a leaf, if one of its workers has.
    With gamma = 0 leaves do not count: that is the objective of EBV.

    The four terms and gamma are CDFGNN's, the order is EBV's (`by_degree_sum`); alpha and beta are
    1 as in other implementations of EBV. Ours are the sum over the edges of a vertex, that
    *vertices of i* excludes copies, and the bound of MOST_SHARE of the mean on these.

    Returns int32[V]; every worker has a vertex, and at most MOST_SHARE * V / workers, rounded up.
    """
    check_workers(graph, workers)
    leaf_spine = even_leaf_spine(workers, leaves, spines=1)
    return fill_empty(stream_vertices(graph, leaf_spine, seed, gamma).assignment, workers, graph)


@dataclass(frozen=True, eq=False)
class StreamedPartition:
    """Vertices in the order in which they were given away."""

    order: Int32s  # [V]
    assignment: Int32s  # [V], the worker of each vertex
    score: Float64s  # [V], of the worker of each vertex when the vertex came


def stream_vertices(
    graph: Graph, leaf_spine: LeafSpine, seed: int, gamma: float
) -> StreamedPartition:
    """Give all vertices away, one by one; a worker may be left without one."""
    vertices, workers = graph.vertices, leaf_spine.workers
    indptr, indices = symmetric_rows(*graph.edges(), vertices)
    order = by_degree_sum(indptr, indices, seed)
    assignment = np.zeros(vertices, dtype=np.int32)
    score = _stream(
        order,
        indptr,
        indices,
        np.bincount(graph.indices, minlength=vertices),
        np.array(leaf_spine.leaf_of_worker, dtype=np.int32),
        gamma,
        math.ceil(MOST_SHARE * vertices / workers),
        np.zeros((vertices, workers), dtype=np.bool_),
        np.zeros((vertices, leaf_spine.leaves), dtype=np.bool_),
        assignment,
    )
    return StreamedPartition(order, assignment, score)


def by_degree_sum(indptr: Int64s, indices: Int32s, seed: int) -> Int32s:
    """Order the vertices, int32[V], as EBV orders edges: each comes with the first of its edges.

    EBV (Zhang et al., "An Efficient and Balanced Graph Partition Algorithm", abstract) sorts edges
    by the sum of the degrees of their ends, the smallest first. Vertices without edges come last.
    """
    degree = np.diff(indptr)
    source = np.repeat(np.arange(len(degree), dtype=np.int32), degree)
    once = source < indices
    edges = np.stack([source[once], indices[once]], axis=1)
    edges = np.random.default_rng(seed).permutation(edges)
    total = degree[edges].sum(axis=1)
    ends = edges[sort_by_key(total, int(total.max(initial=0)) + 1)[1]].ravel()
    first = np.full(len(degree), len(ends))
    # Of what is assigned to one index the last stays: backwards, the first.
    first[ends[::-1]] = np.arange(len(ends))[::-1]
    return np.argsort(first, kind="stable").astype(np.int32)


@Compiled
def _stream(  # noqa: PLR0917 - numba takes them by position
    order: Int32s,
    indptr: Int64s,
    indices: Int32s,
    edges: Int64s,
    leaf_of: Int32s,
    gamma: float,
    most: int,
    has: Bools,
    leaf_has: Bools,
    assignment: Int32s,
) -> Float64s:
    """Fill `assignment`, and return the score of each vertex.

    `leaf_of` is int32[W]; `has`, bool[V, W], and `leaf_has`, bool[V, L], are the copies, at first
    False.
    """
    vertices, workers = has.shape
    leaves = leaf_has.shape[1]
    score = np.zeros(vertices, dtype=np.float64)
    work = np.zeros(workers, dtype=np.int64)
    held = np.zeros(workers, dtype=np.int64)
    mean_work = max(1, edges.sum()) / workers
    mean_held = vertices / workers
    for v in order:
        copies = np.zeros(workers, dtype=np.int64)
        leaf_copies = np.zeros(leaves, dtype=np.int64)
        row = np.append(indices[indptr[v] : indptr[v + 1]], v)
        for x in row:
            for i in range(workers):
                copies[i] += not has[x, i]
            for leaf in range(leaves):
                leaf_copies[leaf] += not leaf_has[x, leaf]
        weight = max(1, len(row) - 1)
        best = -1
        for i in range(workers):
            if held[i] == most:
                continue
            shares = ALPHA * (work[i] / mean_work) + BETA * (held[i] / mean_held)
            here = (1 - gamma) * copies[i] + gamma * leaf_copies[leaf_of[i]] + weight * shares
            if best < 0 or here < score[v]:
                best = i
                score[v] = here
        assignment[v] = best
        work[best] += edges[v]
        held[best] += 1
        for x in row:
            has[x, best] = True
            leaf_has[x, leaf_of[best]] = True
    return score
