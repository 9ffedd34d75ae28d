# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sets of destinations that fit the slots, made better move by move.

The cost of the sets is the number of (source, set) pairs: how often sources are sent.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.arrays import Compiled, Incidence, rank_in_group

# The most rounds of a refinement. It also ends when a round gains less than this share. Where there
# are many edges, fewer rounds are made, but these at least.
_ROUNDS, _FEWEST_ROUNDS = 60, 4
_LEAST_GAIN = 1e-4
# With more (vertex, set) numbers the tables of the refinement would not fit.
MOST_NUMBERS = 2**27
# The most (edge, set) additions of all rounds; where one round needs more there is none.
MOST_ADDITIONS = 2**31


@dataclass(frozen=True, eq=False)
class _Moves:
    """Destinations that may change their set, best first within a batch.

    Attributes:
        vertex: int64[M].
        target: int32[M].
        swap: int64[M], moves with the same number belong together; -1: alone.
    """

    vertex: NDArray[np.int64]
    target: NDArray[np.int32]
    swap: NDArray[np.int64]


def count_pairs(edges: Incidence, part: NDArray[np.int32], parts: int) -> int:
    """Count the (source, set) pairs that have an edge.

    `part`: int32[D], the set of each destination, 0 <= part < parts.
    """
    return int(np.count_nonzero(count_sources(edges, part, parts)))


def refinable(edges: Incidence, parts: int) -> bool:
    """Return whether `refine` is quick and small enough for these edges."""
    most = max(edges.sources, edges.destinations)
    return most * parts <= MOST_NUMBERS and len(edges.source) * parts <= MOST_ADDITIONS


def fit(edges: Incidence, part: NDArray[np.int32], parts: int, slots: int) -> NDArray[np.int32]:
    """Bring every set down to `slots` destinations, at little cost in pairs.

    Surplus destinations leave for the sets with room where they cost least. In each round
    every overfull set offers its cheapest destinations, and every set with room takes the
    cheapest of those that chose it.

    `part`: int32[D], 0 <= part < parts; returns int32[D], at most `slots` destinations in each set.
    """
    part = part.copy()
    table = refinable(edges, parts)
    while True:
        room = slots - np.bincount(part, minlength=parts)
        if room.min() >= 0:
            return part
        movers = np.flatnonzero(room[part] < 0)
        if table:
            gain = gains_of(edges, part, count_sources(edges, part, parts))[movers]
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
    disturb each other, each is counted anew when its turn comes, and made if it still saves.

    `part`: int32[D], at most `slots` destinations in each set; returns int32[D], never with more
    pairs than `part`.
    """
    if parts == 1 or not refinable(edges, parts):
        return part
    part, counts = part.copy(), count_sources(edges, part, parts)
    pairs = int(np.count_nonzero(counts))
    rounds = min(_ROUNDS, max(_FEWEST_ROUNDS, MOST_ADDITIONS // max(len(edges.source) * parts, 1)))
    for _ in range(rounds):
        moves = _choose(gains_of(edges, part, counts), part, parts, slots)
        saved = int(_move(*edges.rows, moves.vertex, moves.target, moves.swap, part, counts))
        pairs -= saved
        if saved <= _LEAST_GAIN * pairs:
            break
    return part


def count_sources(edges: Incidence, part: NDArray[np.int32], parts: int) -> NDArray[np.int32]:
    """Count the destinations that each source has in each set.

    `part`: int32[D], 0 <= part < parts; returns int32[N, parts].
    """
    counts = np.zeros((edges.sources, parts), dtype=np.int32)
    _add_up(*edges.rows, part, counts)
    return counts


def gains_of(
    edges: Incidence, part: NDArray[np.int32], counts: NDArray[np.int32]
) -> NDArray[np.float32]:
    """Count the pairs that each move would save alone.

    `part`: int32[D], 0 <= part < parts; `counts`: int32[N, parts], as `count_sources` returns them;
    returns float32[D, parts]; -inf where the destination is.
    """
    gain = np.zeros((edges.destinations, counts.shape[1]), dtype=np.float32)
    _add_gains(*edges.rows, part, counts, gain)
    gain[np.arange(len(part)), part] = -np.inf
    return gain


@Compiled
def _add_up(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    part: NDArray[np.int32],
    counts: NDArray[np.int32],
) -> None:
    for vertex in range(len(part)):
        here = part[vertex]
        for at in range(indptr[vertex], indptr[vertex + 1]):
            counts[indices[at], here] += 1


@Compiled
def _add_gains(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    part: NDArray[np.int32],
    counts: NDArray[np.int32],
    gain: NDArray[np.float32],
) -> None:
    """Count anew: sources alone in a set no longer go there, those new to one begin to."""
    parts = counts.shape[1]
    for vertex in range(len(part)):
        here, lone = part[vertex], 0
        for at in range(indptr[vertex], indptr[vertex + 1]):
            source = indices[at]
            lone += counts[source, here] == 1
            for there in range(parts):
                gain[vertex, there] += counts[source, there] > 0
        gain[vertex, :] += lone - (indptr[vertex + 1] - indptr[vertex])


@Compiled
def _move(  # noqa: PLR0917 - numba takes them by place
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    vertices: NDArray[np.int64],
    targets: NDArray[np.int32],
    swaps: NDArray[np.int64],
    part: NDArray[np.int32],
    counts: NDArray[np.int32],
) -> int:
    """Make those moves that still save pairs when their turn comes; how many they save.

    Moves of the same swap follow each other and are made both or not at all. `part` and
    `counts` change.
    """

    def shift(vertex: int, target: int) -> int:
        here, saved = part[vertex], 0
        for at in range(indptr[vertex], indptr[vertex + 1]):
            source = indices[at]
            counts[source, here] -= 1
            saved += counts[source, here] == 0
            saved -= counts[source, target] == 0
            counts[source, target] += 1
        part[vertex] = target
        return saved

    origins = np.empty(2, dtype=np.int32)
    total, first = 0, 0
    while first < len(vertices):
        moves = 2 if swaps[first] >= 0 else 1
        saved = 0
        for k in range(moves):
            vertex, target = vertices[first + k], targets[first + k]
            origins[k] = part[vertex]
            saved += shift(vertex, target)
        if saved > 0:
            total += saved
        else:
            for k in range(moves):
                shift(vertices[first + k], origins[k])
        first += moves
    return total


def _choose(gain: NDArray[np.float32], part: NDArray[np.int32], parts: int, slots: int) -> _Moves:
    """Return swaps that save pairs, then moves into what room is left; best first."""
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
    return _Moves(who[first], target[who[first]], number[first])


def _rank(group: NDArray[np.integer], key: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the place of each row among the rows of its group, by ascending key."""
    order = np.lexsort((key, group))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = rank_in_group(group[order])
    return rank


def _spread(movers: int, room: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a set with room for each mover, in turn."""
    free = np.repeat(np.arange(len(room)), np.maximum(room, 0))
    spread: NDArray[np.int64] = free[np.arange(movers) % len(free)]
    return spread
