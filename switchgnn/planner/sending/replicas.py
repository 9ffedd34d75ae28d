"""The sends of a vertex cut: the partial sum of each replica, into the slot of its vertex.

Gathering the replicas' sums and scattering the total (CDFGNN, algorithm 1) are one step in a
switch: all that contribute to a slot get its sum. Each packet goes into one slot.
"""

import numpy as np

from switchgnn.base.array_types import Int32s
from switchgnn.planner.base.arrays import number_ids, rank_in_group
from switchgnn.planner.graphs.boundary import BoundaryEdges, holders
from switchgnn.planner.partition.vertex_cut import ReplicaGraph
from switchgnn.planner.sending.packets import Packets, PartialSums, ones


def contributions(graph: ReplicaGraph) -> BoundaryEdges:
    """Return an edge to its master from each replica of a shared vertex, the master included."""
    shared = np.bincount(graph.vertex) > 1
    source = np.flatnonzero(shared[graph.vertex]).astype(np.int32)
    master, worker = graph.vertex[source], graph.worker.astype(np.uint8)
    return BoundaryEdges(source, master, worker[source], worker[master])


def even_blocks(boundary: BoundaryEdges, slots: int, _seed: int) -> Int32s:
    """Deal destinations out to the fewest blocks, int32[E], numbered from 1.

    Those with equally many sources and the same holder come one after another: so each block has as
    much for each worker as the others.
    """
    vertices, of_edge = number_ids(boundary.destination)
    if not len(vertices):
        return np.zeros(0, dtype=np.int32)
    holder = holders(of_edge, boundary.destination_worker)
    order = np.lexsort((vertices, holder, -np.bincount(of_edge)))
    block = np.empty(len(vertices), dtype=np.int32)
    block[order] = np.arange(len(vertices)) % -(-len(vertices) // slots) + 1
    found: Int32s = block[of_edge]
    return found


def replica_packets(
    boundary: BoundaryEdges, block: Int32s, *, vertices: int, workers: int
) -> Packets:
    """Return a partial sum for each edge, numbered after the vertices like others.

    `boundary` has an edge from each replica to its master; `block` is int32[E].
    """
    worker = boundary.source_worker.astype(np.int64)
    order = np.lexsort((boundary.source, worker, block))
    rank = rank_in_group(block[order], worker[order])
    number = (vertices + rank * workers + worker[order]).astype(np.int32)
    by_number = np.lexsort((number, block[order]))
    order, number = order[by_number], number[by_number]
    sums = PartialSums(
        block=block[order],
        source=number,
        destination=boundary.destination[order],
        indptr=np.arange(len(order) + 1),
        vertex=boundary.source[order],
    )
    edges = boundary.take(order)
    sent = BoundaryEdges(number, edges.destination, edges.source_worker, edges.destination_worker)
    by_ends = np.lexsort((sent.destination, sent.source))
    return Packets(vertices, sent.take(by_ends), block[order][by_ends], ones(len(order)), sums)
