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

# Destinations are placed in so many steps over all blocks, but in no fewer and no more per
# block; a block with fewer destinations than steps places them one by one.
_STEPS = 1 << 15
_LEAST_STEPS, _MOST_STEPS = 64, 8192
# One number holds (more passes, clashes, fill), in this order of importance.
_PASS_SHIFT, _CLASH_SHIFT, _MOST = 40, 20, 2**20 - 1
_NEVER = 2**62


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
    emptiest. In large blocks several are placed at a time, each blind to the others.

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
    steps = min(max(_STEPS // max(blocks, 1), _LEAST_STEPS), _MOST_STEPS)
    for low, high in pairwise(bounds.tolist()):
        stop = starts[high] if high < len(starts) else len(edges)
        sources = boundary.source[edges[starts[low] : stop]]
        bank[low:high], slot[low:high] = _place_block(sources, fan_in[low:high], slots, steps)
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
    sources: NDArray[np.int32], fan_in: NDArray[np.int64], slots: int, batches: int
) -> tuple[NDArray[np.int8], NDArray[np.int32]]:
    """(bank, slot) of the destinations of one block.

    `sources` lists the sources of the first destination, then of the second, and so on.
    """
    banks, capacity = min(BANKS, slots), slots_per_bank(slots)
    ids, local = np.unique(sources, return_inverse=True)
    starts = np.cumsum(fan_in) - fan_in
    used = np.zeros((len(ids), banks), dtype=np.int32)
    passes = np.zeros(len(ids), dtype=np.int32)
    fill = np.zeros(banks, dtype=np.int64)
    bank = np.empty(len(fan_in), dtype=np.int8)
    slot = np.empty(len(fan_in), dtype=np.int32)
    order = np.argsort(-fan_in, kind="stable")
    size = -(-len(order) // batches)
    for low in range(0, len(order), size):
        rows = order[low : low + size]
        counts = fan_in[rows]
        who = local[_ranges(starts[rows], counts)]
        bank[rows], slot[rows] = _place_batch(used[who], passes[who], counts, fill, capacity)
        at = np.repeat(bank[rows], counts)
        np.add.at(used, (who, at), 1)
        np.maximum.at(passes, who, used[who, at])
    return bank, slot


def _place_batch(
    used: NDArray[np.int32],
    passes: NDArray[np.int32],
    counts: NDArray[np.int64],
    fill: NDArray[np.int64],
    capacity: int,
) -> tuple[NDArray[np.int8], NDArray[np.int32]]:
    """(bank, slot) of destinations that do not see each other's choice; `fill` grows.

    Args:
        used: int32[C, banks], a row for each source of each destination: its destinations
            in each bank.
        passes: int32[C], the fullest bank of each such source.
        counts: int64[n], the sources of each destination.
        fill: int64[banks], the slots given out in each bank.
        capacity: the slots of a bank.
    """
    starts = np.cumsum(counts) - counts
    more_passes = np.add.reduceat(used == passes[:, None], starts, axis=0, dtype=np.int64)
    clashes = np.add.reduceat(used, starts, axis=0, dtype=np.int64)
    cost = (more_passes << _PASS_SHIFT) + (np.minimum(clashes, _MOST) << _CLASH_SHIFT)
    bank = np.empty(len(counts), dtype=np.int8)
    slot = np.empty(len(counts), dtype=np.int32)
    left = np.arange(len(counts))
    # A bank takes its share of a batch at once, so that many do not all go the same way.
    share = -(-2 * len(counts) // len(fill))
    while len(left):
        full = np.where(fill < capacity, np.minimum(fill, _MOST), _NEVER)
        best = (cost[left] + full).argmin(axis=1)
        place = _rank_in_order(best)
        taken = place < np.minimum(capacity - fill, share)[best]
        rows, into = left[taken], best[taken]
        bank[rows], slot[rows] = into, fill[into] + place[taken]
        fill += np.bincount(into, minlength=len(fill))
        left = left[~taken]
    return bank, slot


def _rank_in_order(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each row among the rows of its group, in the order of the rows."""
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], group[order])
    rank = np.empty(len(group), dtype=np.int64)
    rank[order] = np.arange(len(group)) - starts
    return rank


def _ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """start, start + 1, ... count numbers for each start, one after another."""
    before = np.cumsum(counts) - counts
    ranges: NDArray[np.int64] = np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
    return ranges
