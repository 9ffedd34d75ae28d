# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sets of destinations within several limits at once, made better move by move.

Each destination takes one of some of R resources, and a set holds a limited number of
destinations that take the same resource. `refine.py` has the case of one
resource that all destinations take.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.arrays.compiled import Compiled
from switchgnn.planner.arrays.incidence import Incidence
from switchgnn.planner.arrays.rows import indptr_of, rank_in_group
from switchgnn.planner.blocks.refine import count_sources, gains_of, refinable

# The most rounds of fitting and of refining, which also end when a round gains less than this
# share.
_FIT_ROUNDS, _ROUNDS = 60, 30
_LEAST_GAIN = 1e-4


@dataclass(frozen=True, eq=False)
class Limits:
    """What the destinations of a set may take together.

    Attributes:
        indptr: int64[D + 1], where the resources of each destination are.
        resource: int32[N], 0 <= resource < R.
        most: int64[R], how many destinations of a set may take each.
        group: int32[D]; destinations of the same group take about the same, so they are swapped.
    """

    indptr: NDArray[np.int64]
    resource: NDArray[np.int32]
    most: NDArray[np.int64]
    group: NDArray[np.int32]

    def loads(self, part: NDArray[np.int32], parts: int) -> NDArray[np.int64]:
        """Return int64[parts, R], how many destinations of each set take each resource."""
        resources = len(self.most)
        row = np.repeat(part.astype(np.int64), np.diff(self.indptr))
        counted = np.bincount(row * resources + self.resource, minlength=parts * resources)
        return counted.reshape(parts, resources)

    def hold(self, part: NDArray[np.int32], parts: int) -> bool:
        """Return whether no set takes too much."""
        return bool(np.all(self.loads(part, parts) <= self.most))


def limits_of(
    takes: NDArray[np.bool_], most: NDArray[np.int64], group: NDArray[np.int32]
) -> Limits:
    """Return limits from a table.

    Args:
        takes: bool[D, R], what each destination takes.
        most: int64[R].
        group: int32[D].

    Returns:
        The limits of D destinations.
    """
    _, resource = np.nonzero(takes)
    return Limits(indptr_of(takes.sum(axis=1)), resource.astype(np.int32), most, group)


def fit_within(
    edges: Incidence, part: NDArray[np.int32], parts: int, limits: Limits
) -> NDArray[np.int32]:
    """Move destinations out of sets that take too much, at little cost in pairs.

    Args:
        edges: with D destinations.
        part: int32[D], 0 <= part < parts.
        parts: the number of sets.
        limits: of each set.

    Returns:
        int32[D], which may still be beyond the limits: ask `limits.hold`.
    """
    part, known = part.copy(), refinable(edges, parts)
    loads = limits.loads(part, parts)
    gain = np.zeros((0, parts), dtype=np.float32)
    for _ in range(_FIT_ROUNDS):
        overfull: NDArray[np.bool_] = np.any(loads > limits.most, axis=1)
        movers = np.flatnonzero(overfull[part])
        if known:
            gain = gains_of(edges, part, count_sources(edges, part, parts))
            movers = movers[np.argsort(-gain[movers].max(axis=1), kind="stable")]
        if not _relieve(limits.indptr, limits.resource, limits.most, movers, gain, part, loads):
            break
    return part


def refine_within(
    edges: Incidence, part: NDArray[np.int32], parts: int, limits: Limits
) -> NDArray[np.int32]:
    """Move and swap destinations as long as that saves (source, set) pairs.

    As `refine`, but for the limits: a move or a swap that would break one is not made.

    Args:
        edges: with D destinations.
        part: int32[D], within the limits.
        parts: the number of sets.
        limits: of each set.

    Returns:
        int32[D], within the limits, never with more pairs than `part`.
    """
    if parts == 1 or not refinable(edges, parts):
        return part
    part, counts = part.copy(), count_sources(edges, part, parts)
    loads = limits.loads(part, parts)
    pairs = int(np.count_nonzero(counts))
    for _ in range(_ROUNDS):
        vertex, target, swap = _choose(gains_of(edges, part, counts), part, parts, limits.group)
        saved = int(
            _move(
                *edges.rows,
                limits.indptr,
                limits.resource,
                limits.most,
                vertex,
                target,
                swap,
                part,
                counts,
                loads,
            )
        )
        pairs -= saved
        if saved <= _LEAST_GAIN * pairs:
            break
    return part


def _choose(
    gain: NDArray[np.float32], part: NDArray[np.int32], parts: int, group: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Return (vertex, target, swap) of each move, best first.

    Moves with the same `swap` follow each other and belong together; -1: alone.
    """
    target = gain.argmax(axis=1).astype(np.int32)
    best = gain[np.arange(len(part)), target]
    groups = int(group.max(initial=0)) + 1
    there = (part.astype(np.int64) * parts + target) * groups + group
    back = (target.astype(np.int64) * parts + part) * groups + group
    order = np.lexsort((-best, there))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = rank_in_group(there[order])
    sorted_there = there[order]
    first = np.searchsorted(sorted_there, back) + rank
    paired = first < np.searchsorted(sorted_there, back, side="right")
    partner = order[np.minimum(first, len(part) - 1)]
    mean = np.where(paired, (best + best[partner]) / 2, -np.inf)
    swaps = np.flatnonzero((mean > 0) & (np.arange(len(part)) < partner))
    others = best > 0
    others[swaps] = others[partner[swaps]] = False
    alone = np.flatnonzero(others)
    number = np.concatenate([swaps, swaps, np.full(len(alone), -1)])
    vertex = np.concatenate([swaps, partner[swaps], alone])
    by_gain = np.lexsort((number, -np.concatenate([mean[swaps], mean[swaps], best[alone]])))
    return vertex[by_gain], target[vertex[by_gain]], number[by_gain]


@Compiled
def _relieve(  # noqa: PLR0917 - numba takes them by place
    indptr: NDArray[np.int64],
    resource: NDArray[np.int32],
    most: NDArray[np.int64],
    movers: NDArray[np.int64],
    gain: NDArray[np.float32],
    part: NDArray[np.int32],
    loads: NDArray[np.int64],
) -> int:
    """Move each destination to where it breaks the fewest limits, then costs the fewest pairs.

    Without gains (no rows) the set that takes least is the best. `part` and `loads` change.

    Returns:
        How many were moved.
    """
    moved = 0
    for vertex in movers:
        here, broken = part[vertex], 0
        for at in range(indptr[vertex], indptr[vertex + 1]):
            broken += loads[here, resource[at]] > most[resource[at]]
        if broken == 0:
            continue
        best, best_value = -1, 0.0
        for there in range(len(loads)):
            if there == here:
                continue
            full, taken = 0, 0
            for at in range(indptr[vertex], indptr[vertex + 1]):
                full += loads[there, resource[at]] >= most[resource[at]]
                taken += loads[there, resource[at]]
            value = -float(taken)
            if len(gain) > 0:
                value = float(gain[vertex, there])
            if full < broken or (best >= 0 and full == broken and value > best_value):
                best, broken, best_value = there, full, value
        if best < 0:
            continue
        for at in range(indptr[vertex], indptr[vertex + 1]):
            loads[here, resource[at]] -= 1
            loads[best, resource[at]] += 1
        part[vertex] = best
        moved += 1
    return moved


@Compiled
def _move(  # noqa: PLR0917 - numba takes them by place
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    starts: NDArray[np.int64],
    resource: NDArray[np.int32],
    most: NDArray[np.int64],
    vertices: NDArray[np.int64],
    targets: NDArray[np.int32],
    swaps: NDArray[np.int64],
    part: NDArray[np.int32],
    counts: NDArray[np.int32],
    loads: NDArray[np.int64],
) -> int:
    """Make those moves that save pairs within the limits when their turn comes.

    Moves of the same swap are made both or not at all. `part`, `counts` and `loads` change.

    Returns:
        How many pairs they save.
    """

    def shift(vertex: int, target: int) -> int:
        here, saved = part[vertex], 0
        for at in range(indptr[vertex], indptr[vertex + 1]):
            source = indices[at]
            counts[source, here] -= 1
            saved += counts[source, here] == 0
            saved -= counts[source, target] == 0
            counts[source, target] += 1
        for at in range(starts[vertex], starts[vertex + 1]):
            loads[here, resource[at]] -= 1
            loads[target, resource[at]] += 1
        part[vertex] = target
        return saved

    def breaks(vertex: int) -> int:
        here, broken = part[vertex], 0
        for at in range(starts[vertex], starts[vertex + 1]):
            broken += loads[here, resource[at]] > most[resource[at]]
        return broken

    origins = np.empty(2, dtype=np.int32)
    total, first = 0, 0
    while first < len(vertices):
        moves = 2 if swaps[first] >= 0 else 1
        saved, broken = 0, 0
        for k in range(moves):
            vertex, target = vertices[first + k], targets[first + k]
            origins[k] = part[vertex]
            saved += shift(vertex, target)
        for k in range(moves):
            broken += breaks(vertices[first + k])
        if saved > 0 and broken == 0:
            total += saved
        else:
            for k in range(moves):
                shift(vertices[first + k], origins[k])
        first += moves
    return total
