"""Destination sets that fit the slots, improved move by move for few (source, set) pairs."""

from dataclasses import dataclass

import numpy as np

from switchgnn.base.array_types import Bools, Float32s, Int32s, Int64s
from switchgnn.planner.base.arrays import Compiled, Incidence, indptr_of, rank_within
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.sending.rates import link_loads

# The most rounds of a refinement. It also ends when a round gains less than this share. Where there
# are many edges, fewer rounds are made, but these at least.
_ROUNDS, _FEWEST_ROUNDS = 60, 4
_FIT_ROUNDS, _ROUNDS_WITHIN = 60, 30
_LEAST_GAIN = 1e-4
# With more (vertex, set) numbers the tables of the refinement would not fit.
MOST_NUMBERS = 2**27
# The most (edge, set) additions of all rounds; where one round needs more there is none.
MOST_ADDITIONS = 2**31


def count_pairs(edges: Incidence, part: Int32s, parts: int) -> int:
    """Count the (source, set) pairs that have an edge."""
    return int(np.count_nonzero(count_sources(edges, part, parts)))


@dataclass(frozen=True, eq=False)
class Limits:
    """How much of each resource the destinations of a set may take together."""

    indptr: Int64s  # [D + 1], the resources of each destination
    resource: Int32s  # [N], 0 <= resource < R
    most: Int64s  # [R], how many destinations of a set may take each
    # [D]; destinations are swapped within groups, which take about the same
    group: Int32s

    def loads(self, part: Int32s, parts: int) -> Int64s:
        """Return int64[parts, R], the destinations of each set that take each resource."""
        resources = len(self.most)
        row = np.repeat(part.astype(np.int64), np.diff(self.indptr))
        counted = np.bincount(row * resources + self.resource, minlength=parts * resources)
        return counted.reshape(parts, resources)

    def hold(self, part: Int32s, parts: int) -> bool:
        """Return whether all sets are within the limits."""
        return bool(np.all(self.loads(part, parts) <= self.most))


def limits_of(takes: Bools, most: Int64s, group: Int32s) -> Limits:
    """Return limits from bool[D, R], the resources that each destination takes."""
    _, resource = np.nonzero(takes)
    return Limits(indptr_of(takes.sum(axis=1)), resource.astype(np.int32), most, group)


def refinable(edges: Incidence, parts: int) -> bool:
    """Return whether refinement is quick and small enough for these edges."""
    most = max(edges.sources, edges.destinations)
    return most * parts <= MOST_NUMBERS and len(edges.source) * parts <= MOST_ADDITIONS


def fit(edges: Incidence, part: Int32s, parts: int, slots: int) -> Int32s:
    """Bring every set, int32[D], down to `slots` destinations, at little cost in pairs.

    In each round every overfull set offers its cheapest destinations to the sets with room where
    they cost least, and these take the cheapest offers.
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
            free = np.repeat(np.arange(parts), np.maximum(room, 0))
            target, best = (
                free[np.arange(len(movers)) % len(free)],
                -edges.degree[movers].astype(np.float64),
            )
        surplus = rank_within((part[movers],), (-best,)) < -room[part[movers]]
        movers, target, best = movers[surplus], target[surplus], best[surplus]
        taken = rank_within((target,), (-best,)) < room[target]
        part[movers[taken]] = target[taken]


def fit_within(edges: Incidence, part: Int32s, parts: int, limits: Limits) -> Int32s:
    """Move destinations out of sets beyond the limits; check the result with `limits.hold`."""
    part, known = part.copy(), refinable(edges, parts)
    loads = limits.loads(part, parts)
    gain = np.zeros((0, parts), dtype=np.float32)
    for _ in range(_FIT_ROUNDS):
        overfull: Bools = np.any(loads > limits.most, axis=1)
        movers = np.flatnonzero(overfull[part])
        if known:
            gain = gains_of(edges, part, count_sources(edges, part, parts))
            movers = movers[np.argsort(-gain[movers].max(axis=1), kind="stable")]
        if not _relieve(limits.indptr, limits.resource, limits.most, movers, gain, part, loads):
            break
    return part


def refine(edges: Incidence, part: Int32s, parts: int, slots: int) -> Int32s:
    """Move and swap destinations between sets as long as that saves (source, set) pairs.

    In each round every destination chooses its best other set. Opposite moves are swapped, best
    with best; others move where there is room. As moves disturb each other, each is evaluated again
    at its turn and undone if it saves nothing. `part` is int32[D], within `slots`, as is the
    result.
    """
    additions = max(len(edges.source) * parts, 1)
    rounds = min(_ROUNDS, max(_FEWEST_ROUNDS, MOST_ADDITIONS // additions))
    none = limits_of(np.zeros((len(part), 0), np.bool_), np.zeros(0, np.int64), np.zeros_like(part))
    return _refine(edges, part, parts, none, rounds=rounds, slots=slots)


def refine_within(edges: Incidence, part: Int32s, parts: int, limits: Limits) -> Int32s:
    """Do what `refine` does, without moves or swaps that break a limit."""
    return _refine(edges, part, parts, limits, rounds=_ROUNDS_WITHIN)


def _refine(
    edges: Incidence,
    part: Int32s,
    parts: int,
    limits: Limits,
    *,
    rounds: int,
    slots: int | None = None,
) -> Int32s:
    if parts == 1 or not refinable(edges, parts):
        return part
    part, counts = part.copy(), count_sources(edges, part, parts)
    loads = limits.loads(part, parts)
    pairs = int(np.count_nonzero(counts))
    tables = (*edges.rows, limits.indptr, limits.resource, limits.most)
    for _ in range(rounds):
        gains = gains_of(edges, part, counts)
        vertices, targets, swaps = _choose(gains, part, parts, limits.group, slots)
        saved = int(_move(*tables, vertices, targets, swaps, part, counts, loads))
        pairs -= saved
        if saved <= _LEAST_GAIN * pairs:
            break
    return part


def number_side_by_side(boundary: BoundaryEdges, block: Int32s, workers: int, pools: int) -> Int32s:
    """Return the blocks, int32[E], numbered again in the order of `side_by_side`."""
    if pools == 1 or not len(block):
        return block
    order = side_by_side(link_loads(boundary, block, workers)[1:], pools)
    number = np.empty(len(order) + 1, dtype=np.int32)
    number[order + 1] = np.arange(1, len(order) + 1)
    return number[block]


def side_by_side(loads: Int64s, pools: int) -> Int64s:
    """Return the blocks, int64[B], in an order in which the busiest links of neighbours differ.

    Next comes the block that adds least, beyond its own busiest link, to that of the `pools` blocks
    which are in flight then. `loads` are the packets of each block on each link, int64[B, L].
    """
    left, own = list(range(len(loads))), loads.max(axis=1, initial=0)
    order: list[int] = []
    if len(loads) * loads.size > MOST_ADDITIONS:
        return np.array(left, dtype=np.int64)
    while left:
        beside = loads[order[1 - pools :]].sum(axis=0)
        added = (loads[left] + beside).max(axis=1) - own[left]
        order.append(left.pop(int(added.argmin())))
    return np.array(order, dtype=np.int64)


def join_blocks(loads: Int64s, takes: Int64s, slots: int) -> Int32s:
    """Join blocks, busiest link first, each to the one to whose busiest link it adds least.

    Args:
        loads: int64[B, L], the packets of each block on each link.
        takes: int64[B, S], its slots in each switch; what joined blocks share counts twice.
        slots: of each switch.

    Returns:
        int32[B], the new number of each block, from 1.
    """
    blocks = len(loads)
    if blocks * loads.size > MOST_ADDITIONS:
        return np.arange(1, blocks + 1, dtype=np.int32)
    number, joined = np.zeros(blocks, dtype=np.int32), 0
    load, taken = np.zeros_like(loads), np.zeros_like(takes)
    for block in np.argsort(-loads.max(axis=1, initial=0), kind="stable"):
        added = (load[:joined] + loads[block]).max(axis=1) - load[:joined].max(axis=1)
        room = np.flatnonzero(np.all(taken[:joined] + takes[block] <= slots, axis=1))
        at = room[added[room].argmin()] if len(room) else joined
        joined = max(joined, at + 1)
        number[block] = at + 1
        load[at] += loads[block]
        taken[at] += takes[block]
    return number


def count_sources(edges: Incidence, part: Int32s, parts: int) -> Int32s:
    """Count the destinations of each source in each set, int32[N, parts]."""
    counts = np.zeros((edges.sources, parts), dtype=np.int32)
    _add_up(*edges.rows, part, counts)
    return counts


def gains_of(edges: Incidence, part: Int32s, counts: Int32s) -> Float32s:
    """Count the pairs that each move saves alone, float32[D, parts]; -inf for the own set."""
    gain = np.zeros((edges.destinations, counts.shape[1]), dtype=np.float32)
    _add_gains(*edges.rows, part, counts, gain)
    gain[np.arange(len(part)), part] = -np.inf
    return gain


@Compiled
def _add_up(indptr: Int64s, indices: Int32s, part: Int32s, counts: Int32s) -> None:
    for vertex in range(len(part)):
        here = part[vertex]
        for at in range(indptr[vertex], indptr[vertex + 1]):
            counts[indices[at], here] += 1


@Compiled
def _add_gains(
    indptr: Int64s, indices: Int32s, part: Int32s, counts: Int32s, gain: Float32s
) -> None:
    """Add sources that are alone in a set and leave it; subtract those new to the target."""
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
def _relieve(  # noqa: PLR0917 - numba takes them by position
    indptr: Int64s,
    resource: Int32s,
    most: Int64s,
    movers: Int64s,
    gain: Float32s,
    part: Int32s,
    loads: Int64s,
) -> int:
    """Move each destination to where it breaks the fewest limits, then costs the fewest pairs.

    Without gains (no rows) the set that takes least is the best. `part` and `loads` change.
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
def _move(  # noqa: PLR0917 - numba takes them by position
    indptr: Int64s,
    indices: Int32s,
    starts: Int64s,
    resource: Int32s,
    most: Int64s,
    vertices: Int64s,
    targets: Int32s,
    swaps: Int64s,
    part: Int32s,
    counts: Int32s,
    loads: Int64s,
) -> int:
    """Make those moves that save pairs within the limits when their turn comes.

    Moves of the same swap are made both or not at all. `part`, `counts` and `loads` change.
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


def _choose(
    gain: Float32s, part: Int32s, parts: int, group: Int32s, slots: int | None
) -> tuple[Int64s, Int32s, Int64s]:
    """Return swaps within groups and single moves that save pairs, best first.

    Of each move the destination, the target, and the number of its swap: both moves with the same
    one follow each other and belong together; -1: alone. With `slots`, single moves are only those
    that have room.
    """
    target = gain.argmax(axis=1).astype(np.int32)
    best = gain[np.arange(len(part)), target]
    groups = int(group.max(initial=0)) + 1
    there = (part.astype(np.int64) * parts + target) * groups + group
    back = (target.astype(np.int64) * parts + part) * groups + group
    order = np.lexsort((-best, there))
    first = np.searchsorted(there[order], back) + rank_within((there,), (-best,))
    paired = first < np.searchsorted(there[order], back, side="right")
    partner = order[np.minimum(first, len(part) - 1)]
    mean = np.where(paired, (best + best[partner]) / 2, -np.inf)
    swaps = np.flatnonzero((mean > 0) & (np.arange(len(part)) < partner))
    others = best > 0
    others[swaps] = others[partner[swaps]] = False
    alone = np.flatnonzero(others)
    if slots is not None:
        room = slots - np.bincount(part, minlength=parts)
        rank = rank_within((target[alone],), (-best[alone],))
        alone = alone[rank < room[target[alone]]]
    vertex = np.concatenate([swaps, partner[swaps], alone])
    number = np.concatenate([swaps, swaps, np.full(len(alone), -1)])
    by_gain = np.lexsort((number, -np.concatenate([mean[swaps], mean[swaps], best[alone]])))
    return vertex[by_gain], target[vertex[by_gain]], number[by_gain]
