"""GAMR: the order in which the sources of a block are sent (section 3.2.2)."""

import heapq
from dataclasses import dataclass

import numpy as np

from switchgnn.base.array_types import Int32s, Int64s
from switchgnn.planner.base.arrays import Compiled, number_keys, sort_by_key, symmetric_rows
from switchgnn.planner.graphs.boundary import BoundaryEdges


@dataclass(frozen=True, eq=False)
class SendOrder:
    """The packets of each block in sending order: one row per (block, source).

    The position among the rows of a block is the rank of a source, over all workers; each worker
    sends its own sources by rank.
    """

    block: Int32s  # [S], ascending
    source: Int32s  # [S], vertex ids; every source with an edge in the block, once


def gamr(boundary: BoundaryEdges, block: Int32s, seed: int, *, by_degree: bool = True) -> SendOrder:
    """Order multicasts by a breadth-first search by degree (section 3.2.2), or without priorities.

    The search runs over the undirected graph of each block, from a random vertex of each component.
    Vertices without an out-edge in the block are searched but not sent.
    """
    blocks = int(block.max(initial=0))
    bounds, by_block = sort_by_key(block, blocks + 1)
    sources = []
    for number in range(1, blocks + 1):
        edges = by_block[bounds[number] : bounds[number + 1]]
        rng = np.random.default_rng([seed, number])
        ends = boundary.source[edges], boundary.destination[edges]
        sources.append(_order_block(*ends, rng, by_degree=by_degree))
    return SendOrder(
        block=np.repeat(np.arange(1, blocks + 1, dtype=np.int32), [len(s) for s in sources]),
        source=np.concatenate([np.empty(0, dtype=np.int32), *sources]),
    )


def _order_block(
    source: Int32s, destination: Int32s, rng: np.random.Generator, *, by_degree: bool
) -> Int32s:
    bound = int(max(source.max(), destination.max())) + 1
    ids, ends = number_keys(np.concatenate([source, destination]), bound)
    u, v = ends[: len(source)], ends[len(source) :]
    indptr, indices = symmetric_rows(u, v, len(ids))
    priority = np.diff(indptr) if by_degree else np.zeros(len(ids), dtype=np.int64)
    sequence = priority_bfs(indptr, indices, rng.permutation(len(ids)), priority)
    sends = np.zeros(len(ids), dtype=bool)
    sends[u] = True
    order: Int32s = ids[sequence[sends[sequence]]].astype(np.int32)
    return order


@Compiled
def priority_bfs(indptr: Int64s, indices: Int32s, starts: Int64s, priority: Int64s) -> Int64s:
    """Search breadth first, taking the waiting vertex with the highest priority first.

    Among equal ones the longest waiting is taken. `indptr` int64[V + 1] and `indices` int32[2E] are
    an undirected graph; returns int64[V], the vertices as they are taken.
    """
    enqueued = np.zeros(len(starts), dtype=np.bool_)
    sequence = np.empty(len(starts), dtype=np.int64)
    taken, arrivals = 0, 0
    for start in starts:
        if enqueued[start]:
            continue
        enqueued[start] = True
        waiting = [(-priority[start], arrivals, start)]
        arrivals += 1
        while waiting:
            vertex = heapq.heappop(waiting)[2]
            sequence[taken] = vertex
            taken += 1
            for at in range(indptr[vertex], indptr[vertex + 1]):
                neighbour = np.int64(indices[at])
                if not enqueued[neighbour]:
                    enqueued[neighbour] = True
                    heapq.heappush(waiting, (-priority[neighbour], arrivals, neighbour))
                    arrivals += 1
    return sequence
