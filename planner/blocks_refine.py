# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sets of destinations that fit the slots, made better move by move.

The cost of the sets is the number of (source, set) pairs: how often sources are sent. All
steps are vectorised over the destinations; loops run over rounds and sets.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.incidence import Incidence

# Refinement ends after so many rounds, or when a round gains less than this share.
_ROUNDS = 60
_LEAST_GAIN = 1e-4
# Above so many (vertex, set) numbers the tables of the refinement would not fit.
MOST_NUMBERS = 2**27
# Above so many (edge, set) additions a round takes longer than it is worth.
MOST_ADDITIONS = 2**31


@dataclass(frozen=True, eq=False)
class _Moves:
    """Destinations that may change their set, best first within a batch.

    Attributes:
        vertex: int64[M].
        target: int32[M].
        gain: int64[M], pairs saved if nothing else moves; of a swap, half of what both save.
        swap: int64[M], moves with the same number belong together; -1: alone.
    """

    vertex: NDArray[np.int64]
    target: NDArray[np.int32]
    gain: NDArray[np.float64]
    swap: NDArray[np.int64]


def count_pairs(edges: Incidence, part: NDArray[np.int32], parts: int) -> int:
    """How many (source, set) pairs have an edge."""
    return int(np.count_nonzero(edges.pair_counts(part, parts)))


def refinable(edges: Incidence, parts: int) -> bool:
    """Whether `refine` is quick and small enough for these edges."""
    most = max(edges.sources, edges.destinations)
    return most * parts <= MOST_NUMBERS and len(edges.source) * parts <= MOST_ADDITIONS


def fit(edges: Incidence, part: NDArray[np.int32], parts: int, slots: int) -> NDArray[np.int32]:
    """Bring every set down to `slots` destinations, at little cost in pairs.

    Surplus destinations leave for the sets with room where they cost least. In each round
    every overfull set offers its cheapest destinations, and every set with room takes the
    cheapest of those that chose it.

    Args:
        edges: with D destinations.
        part: int32[D], 0 <= part < parts.
        parts: at least D / slots.
        slots: the most destinations of a set.
    """
    part = part.copy()
    table = refinable(edges, parts)
    while True:
        room = slots - np.bincount(part, minlength=parts)
        if room.min() >= 0:
            return part
        movers = np.flatnonzero(room[part] < 0)
        if table:
            gain = _gains(edges, part, parts)[movers]
            gain[:, room <= 0] = -np.inf
            target, best = gain.argmax(axis=1), gain.max(axis=1)
        else:
            target, best = _spread(len(movers), room), -edges.degree[movers].astype(np.float64)
        surplus = _rank(part[movers], -best) < -room[part[movers]]
        movers, target, best = movers[surplus], target[surplus], best[surplus]
        taken = _rank(target, -best) < room[target]
        part[movers[taken]] = target[taken]


def refine(edges: Incidence, part: NDArray[np.int32], parts: int, slots: int) -> NDArray[np.int32]:
    """Move and swap destinations between sets as long as that saves (source, set) pairs.

    In each round every destination chooses its best other set. Those that want to go opposite
    ways are swapped, best with best; others move where there is room. As moves of one round
    disturb each other, the pairs are counted again, and if there are not fewer, only the best
    half of the moves is made, and so on.

    Args:
        edges: with D destinations.
        part: int32[D], at most `slots` destinations in each set.
        parts: the number of sets.
        slots: the most destinations of a set.

    Returns:
        int32[D], never with more pairs than `part`.
    """
    if parts == 1 or not refinable(edges, parts):
        return part
    pairs = count_pairs(edges, part, parts)
    for _ in range(_ROUNDS):
        moves = _choose(_gains(edges, part, parts), part, parts, slots)
        better, count = _try(edges, part, parts, moves, pairs)
        if better is None:
            break
        gained, part, pairs = pairs - count, better, count
        if gained < _LEAST_GAIN * pairs:
            break
    return part


def _gains(edges: Incidence, part: NDArray[np.int32], parts: int) -> NDArray[np.float64]:
    """float64[D, parts], the pairs that each move would save alone; -inf: no move."""
    counts = edges.pair_counts(part, parts)
    gain = edges.count_present(counts).astype(np.float64)
    gain += (edges.count_lone(counts, part) - edges.degree)[:, None]
    gain[np.arange(len(part)), part] = -np.inf
    return gain


def _choose(gain: NDArray[np.float64], part: NDArray[np.int32], parts: int, slots: int) -> _Moves:
    """Swaps that save pairs, then moves into what room is left; best first."""
    target = gain.argmax(axis=1).astype(np.int32)
    best = gain[np.arange(len(part)), target]
    there = part.astype(np.int64) * parts + target
    back = target.astype(np.int64) * parts + part
    order = np.lexsort((-best, there))
    rank = _rank(there, -best)
    starts = np.searchsorted(there[order], back)
    behind = np.searchsorted(there[order], back, side="right")
    has_partner = starts + rank < behind
    partner = order[np.minimum(starts + rank, len(part) - 1)]
    mean = np.where(has_partner, (best + best[partner]) / 2, -np.inf)
    vertex = np.arange(len(part))
    swaps = np.flatnonzero((mean > 0) & (vertex < partner))
    others = best > 0
    others[swaps] = others[partner[swaps]] = False
    alone = np.flatnonzero(others)
    room = slots - np.bincount(part, minlength=parts)
    alone = alone[_rank(target[alone].astype(np.int64), -best[alone]) < room[target[alone]]]
    number = np.concatenate([swaps, swaps, np.full(len(alone), -1)])
    who = np.concatenate([swaps, partner[swaps], alone])
    gains = np.concatenate([mean[swaps], mean[swaps], best[alone]])
    first = np.lexsort((number, -gains))
    return _Moves(who[first], target[who[first]], gains[first], number[first])


def _try(
    edges: Incidence, part: NDArray[np.int32], parts: int, moves: _Moves, pairs: int
) -> tuple[NDArray[np.int32] | None, int]:
    """(the sets after the largest batch of moves that helps, their pairs); (None, _)."""
    size = len(moves.vertex)
    while size:
        if size < len(moves.vertex) and 0 <= moves.swap[size] == moves.swap[size - 1]:
            size += 1
        after = part.copy()
        after[moves.vertex[:size]] = moves.target[:size]
        count = count_pairs(edges, after, parts)
        if count < pairs:
            return after, count
        size = size // 2 if size > 2 or moves.swap[0] < 0 else 0
    return None, pairs


def _rank(group: NDArray[np.integer], key: NDArray[np.float64]) -> NDArray[np.int64]:
    """The place of each row among the rows of its group, by ascending key."""
    order = np.lexsort((key, group))
    sorted_group = group[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = sorted_group[1:] != sorted_group[:-1]
    starts = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - starts
    return rank


def _spread(movers: int, room: NDArray[np.int64]) -> NDArray[np.int64]:
    """A set with room for each mover, in turn."""
    free = np.repeat(np.arange(len(room)), np.maximum(room, 0))
    spread: NDArray[np.int64] = free[np.arange(movers) % len(free)]
    return spread
