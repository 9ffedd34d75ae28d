"""Packets that serve boundary edges: a source itself, or a partial sum of its worker.

A packet is one vertex, for all its destinations in a block, or several added up for one
destination. The planner numbers partial sums after the vertices, so that packets and destinations
are an ordinary graph; on the wire their ids begin at 2^31.
"""

from dataclasses import dataclass, replace

import numpy as np

from switchgnn.base.array_types import Bools, Int32s, Int64s, UInt32s
from switchgnn.planner.base import arrays
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.graphs.graph import FIRST_BUNDLE_ID, FIRST_RESERVED_ID


def multicast(boundary: BoundaryEdges, block: Int32s, weight: float = 0.0) -> Bools:
    """Serve every boundary edge by its source, as the paper does: bool[E], all true."""
    return np.ones(len(boundary), dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class PartialSums:
    """The partial sums: one row per block and sum, P rows."""

    block: Int32s  # [P], ascending
    # [P], ascending within a block: V + rank · workers + worker, ranked by worker
    source: Int32s
    destination: Int32s  # [P], the vertex that each is for
    indptr: Int64s  # [P + 1]
    vertex: Int32s  # [...], the vertices in each, ascending; two at least


NO_SUMS = PartialSums(
    block=np.empty(0, dtype=np.int32),
    source=np.empty(0, dtype=np.int32),
    destination=np.empty(0, dtype=np.int32),
    indptr=np.zeros(1, dtype=np.int64),
    vertex=np.empty(0, dtype=np.int32),
)


@dataclass(frozen=True, eq=False)
class Packets:
    """The additions: one edge per (block, packet, destination), C edges."""

    vertices: int  # V, their number; sources from V on are partial sums
    edges: BoundaryEdges  # from packets to destinations
    block: Int32s  # [C]
    count: Int64s  # [C], the rows that the packet adds up
    sums: PartialSums  # the partial sums among the packets


def make_packets(
    boundary: BoundaryEdges, block: Int32s, by_vertex: Bools, *, vertices: int, workers: int
) -> Packets:
    """Form the packets that serve each boundary edge once.

    Instead of a partial sum of a single row its vertex is sent. `by_vertex` is bool[E].
    """
    order = np.flatnonzero(~by_vertex)
    keys = (boundary.destination, boundary.source_worker, block)
    order = order[arrays.sort_by_keys(*(key[order] for key in keys))]
    groups = (each[order] for each in (block, boundary.source_worker, boundary.destination))
    sizes = np.diff(np.append(np.flatnonzero(arrays.starts_group(*groups)), len(order)))
    order, sizes = order[np.repeat(sizes > 1, sizes)], sizes[sizes > 1]
    if not len(order):
        return Packets(vertices, boundary, block, ones(len(boundary)), NO_SUMS)
    first = order[np.cumsum(sizes) - sizes]
    worker = boundary.source_worker[first]
    rank = arrays.rank_in_group(block[first], worker)
    number = vertices + rank * workers + worker
    most = min(FIRST_RESERVED_ID, FIRST_BUNDLE_ID - FIRST_RESERVED_ID + vertices)
    if number.max() >= most:
        raise PlannerError(
            f"{rank.max() + 1} partial sums of one worker in one block are more than there are "
            "ids; send without them."
        )
    source = number.astype(np.int32)
    by_source = np.lexsort((source, block[first]))
    members = arrays.ranges((np.cumsum(sizes) - sizes)[by_source], sizes[by_source])
    sums = PartialSums(
        block=block[first][by_source],
        source=source[by_source],
        destination=boundary.destination[first][by_source],
        indptr=arrays.indptr_of(sizes[by_source]),
        vertex=boundary.source[order[members]],
    )
    raw = np.ones(len(boundary), dtype=np.bool_)
    raw[order] = False
    behind = np.lexsort((boundary.destination[first], source))
    # The edges of vertices, and one of those of each partial sum.
    one = np.concatenate([np.flatnonzero(raw), first[behind]])
    sources = np.concatenate([boundary.source[raw], source[behind]])
    return Packets(
        vertices=vertices,
        edges=replace(boundary.take(one), source=sources),
        block=block[one],
        count=np.concatenate([np.ones(int(raw.sum()), dtype=np.int64), sizes[behind]]),
        sums=sums,
    )


@dataclass(frozen=True, eq=False)
class Sends:
    """All packets in sending order, S rows."""

    block: Int32s  # [S], ascending
    source: Int32s  # [S], numbered as in Packets
    destination: Int32s  # [S], the vertex that a partial sum is for; 0 for vertices
    worker: Int32s  # [S], the sender
    indptr: Int64s  # [S + 1]
    vertex: Int32s  # [...], the vertices that the packet adds up


def make_sends(packets: Packets, block: Int32s, source: Int32s, owner: Int32s) -> Sends:
    """List the rows of each packet; `block` and `source` are int32[S], in sending order."""
    sums = packets.sums
    summed = np.flatnonzero(source >= packets.vertices)
    index = np.searchsorted(
        keys_of(sums.block, sums.source), keys_of(block[summed], source[summed])
    )
    sizes = np.ones(len(source), dtype=np.int64)
    sizes[summed] = np.diff(sums.indptr)[index]
    destination = np.zeros(len(source), dtype=np.int32)
    destination[summed] = sums.destination[index]
    indptr = arrays.indptr_of(sizes)
    vertex = np.repeat(source, sizes)
    into, out = indptr[summed], sums.indptr[index]
    vertex[arrays.ranges(into, sizes[summed])] = sums.vertex[arrays.ranges(out, sizes[summed])]
    return Sends(block, source, destination, owner[vertex[indptr[:-1]]], indptr, vertex)


def ones(length: int) -> Int64s:
    """Return read-only ones in the memory of one."""
    return np.broadcast_to(np.int64(1), length)


def wire_ids(source: Int32s, vertices: int) -> UInt32s:
    """Return the Src_ids of packets: partial sums are numbered from 2^31."""
    summed = source >= vertices
    ids: UInt32s = source.astype(np.uint32)
    ids[summed] += np.uint32(FIRST_RESERVED_ID - vertices)
    return ids


def keys_of(block: Int32s, source: Int32s) -> Int64s:
    """Return a number for each pair of block and source, int64[N]."""
    return (block.astype(np.int64) << 32) | source


def are_partial(ids: UInt32s) -> Bools:
    """Return which Src_ids are those of partial sums that name their destination."""
    partial: Bools = (ids >= FIRST_RESERVED_ID) & (ids < FIRST_BUNDLE_ID)
    return partial
