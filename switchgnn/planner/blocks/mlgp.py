"""MLGP: boundary edges in blocks that fit the aggregators (section 3.3)."""

import numpy as np

from switchgnn.base.array_types import Int32s, Int64s
from switchgnn.planner.base.arrays import symmetric_rows
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.partition.metis import partition_vertices

# Block_id has 16 bits and 0 means no block.
MAX_BLOCKS = 65535
# Both ends of an edge are vertices of its block.
MIN_SLOTS = 2

_CUT = -1


def mlgp(boundary: BoundaryEdges, slots: int, seed: int) -> Int32s:
    """Find the block of every boundary edge by multi-level graph partitioning (section 3.3).

    METIS cuts the undirected boundary graph into parts of at most `slots` vertices. The edges
    inside a part are one block; the cut edges with their ends are the graph of the next level. A
    level that fits is one block. Surplus vertices move to parts with room; if METIS cuts every
    edge, greedy stars keep at least one.
    """
    if slots < MIN_SLOTS:
        raise PlannerError(
            f"{slots} slots are too few: a block holds both ends of an edge, so it needs "
            f"at least {MIN_SLOTS}."
        )
    block = np.zeros(len(boundary), dtype=np.int32)
    remaining = np.arange(len(boundary))
    blocks = 0
    while len(remaining):
        part = _cut_level(boundary.source[remaining], boundary.destination[remaining], slots, seed)
        kept = part != _CUT
        numbers, number = np.unique(part[kept], return_inverse=True)
        block[remaining[kept]] = blocks + 1 + number
        blocks += len(numbers)
        if blocks > MAX_BLOCKS:
            raise PlannerError(
                f"With {slots} slots the graph needs more than {MAX_BLOCKS} blocks; "
                "give the switch more slots."
            )
        remaining = remaining[~kept]
    return block


def _cut_level(source: Int32s, destination: Int32s, slots: int, seed: int) -> Int32s:
    """Return the part of each edge of one level, int32[E], or _CUT; at least one has a part."""
    ids, ends = np.unique(np.concatenate([source, destination]), return_inverse=True)
    u, v = ends[: len(source)], ends[len(source) :]
    if len(ids) <= slots:
        return np.zeros(len(source), dtype=np.int32)
    parts = -(-len(ids) // slots)
    part = partition_vertices(u, v, vertices=len(ids), parts=parts, seed=seed)
    indptr, indices = symmetric_rows(u, v, len(ids))
    part = _move_surplus(part, parts, slots, indptr, indices)
    if not np.any(part[u] == part[v]):
        part = _grow_stars(indptr, indices, slots)
    return np.where(part[u] == part[v], part[u], _CUT).astype(np.int32)


def _move_surplus(part: Int32s, parts: int, slots: int, indptr: Int64s, indices: Int32s) -> Int32s:
    part = part.copy()
    room = slots - np.bincount(part, minlength=parts)
    if room.min() >= 0:
        return part
    row = np.repeat(np.arange(len(part)), np.diff(indptr))
    inner = np.bincount(row[part[row] == part[indices]], minlength=len(part))
    for full in np.flatnonzero(room < 0):
        members = np.flatnonzero(part == full)
        leaving = members[np.argsort(inner[members], kind="stable")[: -room[full]]]
        for vertex in leaving:
            near = part[indices[indptr[vertex] : indptr[vertex + 1]]]
            near = near[room[near] > 0]
            target = np.bincount(near).argmax() if len(near) else room.argmax()
            part[vertex] = target
            room[target] -= 1
            room[full] += 1
    return part


def _grow_stars(indptr: Int64s, indices: Int32s, slots: int) -> Int32s:
    """Return the greedy cut, int32[V]: each part is one vertex and neighbours of it."""
    part = np.full(len(indptr) - 1, _CUT, dtype=np.int32)
    number = 0
    for centre in np.argsort(-np.diff(indptr), kind="stable"):
        if part[centre] != _CUT:
            continue
        near = indices[indptr[centre] : indptr[centre + 1]]
        part[near[part[near] == _CUT][: slots - 1]] = number
        part[centre] = number
        number += 1
    return part
