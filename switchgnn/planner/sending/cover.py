"""Minimum vertex covers of bipartite graphs: the fewest raw features and partial sums."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from switchgnn.base.array_types import Bools, Int32s, Int64s, Integers, UInt8s
from switchgnn.planner.base import arrays
from switchgnn.planner.graphs.boundary import BoundaryEdges, holders

# The integer capacity of a packet in a flow.
_PACKET = 1024
# Above any sum of capacities that a cut could prefer, within the int32 of SciPy's flow.
_UNCUTTABLE = 2**30
_ALL = slice(None)
# The edges that covers are computed for at a time; always all edges of a worker.
_AT_A_TIME = 1 << 20


def cover_edges(boundary: BoundaryEdges, block: Int32s, weight: float = 0.0) -> Bools:
    """Choose for every edge u→v, bool[E], between multicasting u (True) and a partial sum for v.

    The edges of one worker in one block are a bipartite graph, and its packets are a vertex cover
    with the least

        packets + weight * contributions

    where a multicast makes one contribution per edge, and a partial sum one in all, so a partial
    sum serves every edge of its worker to v in the block. There are no partial sums of a single
    feature.

    With `weight` 0, Hopcroft-Karp and König's theorem give the choice in O(E sqrt(V)), with the
    most partial sums among all choices with the fewest packets, as those need fewer contributions.
    With another weight, rounded to 1/1024, a minimum cut does, in several times as long.
    """
    chosen = np.empty(len(boundary), dtype=np.bool_)
    for edges in _by_workers(boundary.source_worker):
        chosen[edges] = _cover_part(boundary.take(edges), block[edges], weight)
    return chosen


def _by_workers(worker: UInt8s) -> Iterator[Int32s]:
    """Yield the edges of some workers at a time: no packet serves two workers."""
    workers = int(worker.max(initial=0)) + 1
    indptr, order = arrays.sort_by_key(worker, workers)
    first = 0
    while first < len(order):
        behind = min(int(np.searchsorted(indptr, first + _AT_A_TIME)), workers)
        yield order[first : indptr[behind]]
        first = int(indptr[behind])


def _cover_part(boundary: BoundaryEdges, block: Int32s, weight: float) -> Bools:
    left = arrays.number_pairs(block, boundary.source)[1]
    first = int(boundary.source_worker.min())
    of_some = replace(boundary, source_worker=boundary.source_worker - np.uint8(first))
    right = _partial_sums(of_some, block)[1]
    served = np.bincount(right)
    if weight:
        in_left, in_right = _weighted_cover(left, right, served, weight)
    else:
        # Of all minimum covers the one with the most partial sums: fewer contributions.
        in_right, in_left = minimum_cover(right, left)
    alone = served[right] == 1
    chosen: Bools = alone | (in_left[left] & ~in_right[right])
    return chosen


def packets_up(boundary: BoundaryEdges, block: Int32s, multicast: Bools) -> tuple[Int64s, Int64s]:
    """Count the features and the partial sums of each worker, int64[workers] each."""
    workers = int(boundary.source_worker.max(initial=0)) + 1
    owner = holders(boundary.source, boundary.source_worker)
    raw = arrays.distinct_pairs(block[multicast], boundary.source[multicast])[1]
    partial = _partial_sums(boundary, block, ~multicast)[0]
    return (
        np.bincount(owner[raw], minlength=workers),
        np.bincount(partial % workers, minlength=workers),
    )


def minimum_cover(left: Integers, right: Integers) -> tuple[Bools, Bools]:
    """Return the vertices of a minimum vertex cover, on the left and on the right.

    König's proof: with Z the vertices that alternating paths reach from the unmatched vertices on
    the left, the cover is left without Z, and right within Z. Vertices on the left are numbered
    without gaps, and no edge occurs twice.
    """
    if not len(left):
        return np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.bool_)
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow to import
    from scipy.sparse.csgraph import (  # noqa: PLC0415
        breadth_first_order,
        maximum_bipartite_matching,
    )

    shape = (int(left.max()) + 1, int(right.max()) + 1)
    indptr, order = arrays.sort_by_key(left, shape[0])
    indices = right[order].astype(np.int32, copy=False)
    edges = csr_matrix((np.ones(len(left), dtype=np.int8), indices, indptr), shape=shape)
    right_of = maximum_bipartite_matching(edges, perm_type="column").astype(np.int32)
    # The left, the right, and a start that leads to the unmatched; matches lead back to the left.
    back = np.flatnonzero(right_of >= 0)
    start = sum(shape)
    heads = np.zeros(start + 1, dtype=np.int64)
    heads[: shape[0]] = np.diff(indptr)
    heads[shape[0] + right_of[back]] = 1
    heads[start] = shape[0] - len(back)
    to_left = back[np.argsort(right_of[back])].astype(np.int32)
    ends = [indices + np.int32(shape[0]), to_left, np.flatnonzero(right_of < 0).astype(np.int32)]
    paths = csr_matrix(
        (np.ones(int(heads.sum()), dtype=np.int8), np.concatenate(ends), arrays.indptr_of(heads)),
        shape=(start + 1, start + 1),
    )
    reached = np.zeros(start + 1, dtype=np.bool_)
    reached[breadth_first_order(paths, start, return_predecessors=False)] = True
    return ~reached[: shape[0]], reached[shape[0] : start]


def _partial_sums(
    boundary: BoundaryEdges, block: Int32s, where: Bools | slice = _ALL
) -> tuple[Int64s, Int32s]:
    """Return the distinct (block, destination, worker) as numbers, and that of each edge."""
    destinations = int(boundary.destination.max(initial=-1)) + 1
    workers = int(boundary.source_worker.max(initial=0)) + 1
    keys = block[where] * np.int64(destinations) + boundary.destination[where]
    bound = (int(block.max(initial=0)) + 1) * destinations * workers
    return arrays.number_keys(keys * workers + boundary.source_worker[where], bound)


def _weighted_cover(
    left: Integers, right: Integers, served: Int64s, weight: float
) -> tuple[Bools, Bools]:
    """Return the cover of least packets + weight * contributions, by a minimum cut.

    A partial sum replaces the contributions of its edges by one, so it costs 1 + weight - weight *
    edges more than multicasts, and nothing where that is negative. A multicast vertex costs 1.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow  # noqa: PLC0415

    price = np.rint(_PACKET * (1 + weight * (1 - served.astype(np.float64)))).astype(np.int64)
    in_right = price <= 0
    in_left = np.zeros(int(left.max(initial=-1)) + 1, dtype=np.bool_)
    open_edges = np.flatnonzero(~in_right[right])
    if not len(open_edges):
        return in_left, in_right
    sources, u = np.unique(left[open_edges], return_inverse=True)
    sinks, v = np.unique(right[open_edges], return_inverse=True)
    start, end = len(sources) + len(sinks), len(sources) + len(sinks) + 1
    tails = np.concatenate([np.full(len(sources), start), u, len(sources) + np.arange(len(sinks))])
    heads = np.concatenate([np.arange(len(sources)), len(sources) + v, np.full(len(sinks), end)])
    capacity = np.concatenate(
        [np.full(len(sources), _PACKET), np.full(len(u), _UNCUTTABLE), price[sinks]]
    ).astype(np.int32)
    network = csr_array((capacity, (tails, heads)), shape=(end + 1, end + 1))
    # The flow against an edge is negative, so this also holds the way back.
    residual = csr_array(network - maximum_flow(network, start, end).flow)
    residual.eliminate_zeros()
    reached = np.zeros(end + 1, dtype=np.bool_)
    reached[breadth_first_order(residual, start, return_predecessors=False)] = True
    in_left[sources] = ~reached[: len(sources)]
    in_right[sinks] = reached[len(sources) : start]
    return in_left, in_right
