# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""An order made from its end: sums complete at an even pace, and little is left to the last."""

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.arrays.rows import number_pairs, ranges, rank_in_group, sort_by_key
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.sending.gamr import SendOrder

# In how many batches the sources of a block leave; one by one where there are fewer. Each
# step sorts the sources that are left, in all blocks together at most about _SORTED.
_LEAST_BATCHES, _MOST_BATCHES = 32, 256
_SORTED = 1 << 23


def peel(boundary: BoundaryEdges, block: NDArray[np.int32], seed: int) -> SendOrder:
    """Send the sources so that sums complete evenly over time.

    A sum is complete when the last of its sources arrives, so the source that is sent last
    completes all its destinations. The order is made backwards: the last place goes to a
    source with few destinations; those are then taken, and the place before goes to a source
    with few destinations that are not taken yet, and so on. What may be completed grows with
    each place by the mean, sums over sources: a source whose sums fit is preferred, then one
    that completes none, then the one with the fewest. So the queue is short all the time, and
    empty when the last source arrives where that is possible; section 3.2.1 adds what is left
    in it to the time of sending.

    All blocks are peeled at once, a batch of sources per block and step: O(E) for all steps
    together, plus sorting the sources that are left in each.

    Args:
        boundary: the boundary edges, length E.
        block: int32[E], numbered from 1.
        seed: without effect.

    Returns:
        The sources of each block, in sending order.
    """
    (numbers, source), packet = number_pairs(block, boundary.source)
    (sums, _), result = number_pairs(block, boundary.destination)
    place = peel_places(numbers, packet, result, len(sums))
    order = np.lexsort((place, numbers))
    return SendOrder(block=numbers[order], source=source[order])


def peel_places(
    block: NDArray[np.int32],
    packet: NDArray[np.int32],
    result: NDArray[np.int32],
    results: int,
) -> NDArray[np.int64]:
    """Find the place where `peel` puts each packet.

    Args:
        block: int32[S], ascending.
        packet: int32[E], for each served edge the packet that serves it.
        result: int32[E], and the sum that it contributes to.
        results: the number of sums.

    Returns:
        int64[S], larger is later; distinct within a block.
    """
    size = np.bincount(block)
    batches = min(max(_SORTED // max(len(block), 1), _LEAST_BATCHES), _MOST_BATCHES)
    batch = -(-size // batches)
    place = np.zeros(len(block), dtype=np.int64)
    free = np.bincount(packet, minlength=len(block))
    by_packet, packet_edges = sort_by_key(packet, len(block))
    by_result, result_edges = sort_by_key(result, results)
    home = block[packet[result_edges[by_result[:-1]]]] if results else block[:0]
    pace = np.minimum(np.bincount(home, minlength=len(size)) / np.maximum(size, 1), 1)
    credit = np.zeros(len(size))
    taken = np.zeros(results, dtype=np.bool_)
    left = np.arange(len(block))
    next_place = len(block)
    while len(left):
        credit += pace * batch
        left = left[_by_choice(block[left], free[left], credit)]
        leaves = rank_in_group(block[left]) < batch[block[left]]
        going = left[leaves]
        going = going[_evenly(block[going], free[going] > 0)]
        place[going] = next_place - 1 - np.arange(len(going))
        next_place -= len(going)
        before = taken.copy()
        taken[result[packet_edges[_slices(by_packet, going)]]] = True
        claimed = np.flatnonzero(taken & ~before)
        credit -= np.bincount(home[claimed], minlength=len(size))
        np.subtract.at(free, packet[result_edges[_slices(by_result, claimed)]], 1)
        left = left[~leaves]
    return place


def _by_choice(
    block: NDArray[np.int32], free: NDArray[np.int64], credit: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the packets by block; in each, first those that should be sent last.

    First come those that complete sums within the block's credit, then those that complete
    none, then the others; each by the number of sums, then as given.
    """
    order = np.lexsort((free, block))
    total = np.cumsum(free[order])
    starts = np.searchsorted(block[order], block[order])
    total -= total[starts] - free[order][starts]
    kind = np.where(total <= credit[block[order]], 0, 2)
    kind[free[order] == 0] = 1
    chosen: NDArray[np.int64] = order[np.lexsort((kind, block[order]))]
    return chosen


def _evenly(block: NDArray[np.int32], completes: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return an order by block that spreads what completes sums evenly among what does not."""
    kind = block.astype(np.int64) * 2 + completes
    order = np.argsort(kind, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = rank_in_group(kind[order])
    share = (rank + 0.5) / np.bincount(kind)[kind] if len(kind) else rank
    spread: NDArray[np.int64] = np.lexsort((completes, share, block))
    return spread


def _slices(indptr: NDArray[np.int64], rows: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the positions of all entries of the given rows, one row after another."""
    return ranges(indptr[rows], indptr[rows + 1] - indptr[rows])
