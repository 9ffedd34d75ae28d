# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Which slot of which bank adds up which destination."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.boundary import BoundaryEdges

# The number of register arrays in the P4 program; a pass touches each at most once.
BANKS = 8


@dataclass(frozen=True, eq=False)
class Placement:
    """The destinations of all blocks: one row per (block, destination), D rows.

    Attributes:
        block: int32[D], ascending.
        vertex: int32[D], ascending within a block.
        worker: int32[D], who holds the vertex.
        expected: int64[D], how many rows are added up for it in this block.
        bank: int8[D].
        slot: int32[D]; no two rows of a block share (bank, slot).
        row: int64[E], the row of each boundary edge's destination.
        edges: int64[E], the boundary edges sorted by row, then source.
    """

    block: NDArray[np.int32]
    vertex: NDArray[np.int32]
    worker: NDArray[np.int32]
    expected: NDArray[np.int64]
    bank: NDArray[np.int8]
    slot: NDArray[np.int32]
    row: NDArray[np.int64]
    edges: NDArray[np.int64]


def slots_per_bank(slots: int) -> int:
    """The size of a bank: `slots` split over the banks, rounded up."""
    return -(-slots // BANKS)


def place_destinations(
    boundary: BoundaryEdges,
    block: NDArray[np.int32],
    slots: int,
    count: NDArray[np.int64] | None = None,
) -> Placement:
    """Give each destination of each block a slot, with few passes per source.

    A source needs as many passes as it has destinations in its fullest bank. Destinations
    are taken by falling number of sources; each goes to the bank where the fewest of its
    sources need one more pass, then to the one with the fewest clashes, then to the
    emptiest.

    Args:
        boundary: the boundary edges, length E.
        block: int32[E]; at most `slots` destinations per block.
        slots: all aggregators of the switch; fewer than 8 use as many banks.
        count: int64[E], how many rows the source of each edge stands for; None: one each.
    """
    edges = np.lexsort((boundary.source, boundary.destination, block))
    ends = np.stack([block[edges], boundary.destination[edges]])
    first = np.ones(len(edges), dtype=bool)
    first[1:] = np.any(ends[:, 1:] != ends[:, :-1], axis=0)
    starts = np.flatnonzero(first)
    row = np.empty(len(edges), dtype=np.int64)
    row[edges] = np.cumsum(first) - 1
    rows_block = block[edges[starts]]
    fan_in = np.diff(np.append(starts, len(edges)))
    bank = np.zeros(len(starts), dtype=np.int8)
    slot = np.zeros(len(starts), dtype=np.int32)
    blocks = int(block.max(initial=0))
    bounds = np.searchsorted(rows_block, np.arange(1, blocks + 2))
    for low, high in pairwise(bounds.tolist()):
        stop = starts[high] if high < len(starts) else len(edges)
        sources = boundary.source[edges[starts[low] : stop]]
        bank[low:high], slot[low:high] = _place_block(sources, fan_in[low:high], slots)
    return Placement(
        block=rows_block,
        vertex=boundary.destination[edges[starts]],
        worker=boundary.destination_worker[edges[starts]],
        expected=fan_in if count is None else np.add.reduceat(count[edges], starts),
        bank=bank,
        slot=slot,
        row=row,
        edges=edges,
    )


def _place_block(
    sources: NDArray[np.int32], fan_in: NDArray[np.int64], slots: int
) -> tuple[NDArray[np.int8], NDArray[np.int32]]:
    """(bank, slot) of the destinations of one block.

    `sources` lists the sources of the first destination, then of the second, and so on.
    """
    banks, capacity = min(BANKS, slots), slots_per_bank(slots)
    ids, local = np.unique(sources, return_inverse=True)
    ends = np.cumsum(fan_in)
    used = np.zeros((len(ids), banks), dtype=np.int32)
    passes = np.zeros((len(ids), 1), dtype=np.int32)
    fill = np.zeros(banks, dtype=np.int64)
    bank = np.empty(len(fan_in), dtype=np.int8)
    slot = np.empty(len(fan_in), dtype=np.int32)
    for row in np.argsort(-fan_in, kind="stable").tolist():
        who = local[ends[row] - fan_in[row] : ends[row]]
        theirs = used[who]
        more_passes = (theirs == passes[who]).sum(axis=0)
        clashes = theirs.sum(axis=0)
        best = _least(more_passes, clashes, fill, capacity)
        bank[row], slot[row] = best, fill[best]
        fill[best] += 1
        theirs = theirs[:, best] + 1
        used[who, best] = theirs
        passes[who, 0] = np.maximum(passes[who, 0], theirs)
    return bank, slot


def _least(
    more_passes: NDArray[np.int64],
    clashes: NDArray[np.int64],
    fill: NDArray[np.int64],
    capacity: int,
) -> int:
    """The bank with the least (more passes, clashes, fill) of those with room."""
    costs = zip(more_passes.tolist(), clashes.tolist(), fill.tolist(), strict=True)
    return min((cost, bank) for bank, cost in enumerate(costs) if cost[2] < capacity)[1]
