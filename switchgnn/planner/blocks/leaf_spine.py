"""Destination blocks for a leaf-spine: within the slots of each switch, spread over the workers.

A destination takes a slot only in switches that add to its sum, so a block may have more
destinations than one switch has slots. Spreading them keeps any link from carrying most sums of a
block.
"""

import re
from dataclasses import dataclass
from functools import partial

import numpy as np

from switchgnn.base.array_types import Bools, Int32s
from switchgnn.planner.arrays import rank_within
from switchgnn.planner.blocks.destination import (
    Cut,
    Destinations,
    check_sets,
    cut_by_metis,
    number_ends,
    number_sets,
    refine_for_cover,
)
from switchgnn.planner.blocks.hypergraph import cut_by_mtkahypar
from switchgnn.planner.blocks.refine import Limits, fit, fit_within, limits_of, refine_within
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.partition.leaf_spine import even_leaf_spine

# How much more than an equal share of a worker's destinations a block may have. The next one is
# only tried where the blocks would not fit otherwise: fewer blocks are worth more.
_SURPLUS = (0.1, 0.25, 0.5, 1.0, 2.0, np.inf)
# Where a number of blocks does not do, this share more of them are tried, at least one.
_MORE_SETS = 0.02
# The cut of each kind, and whether its blocks are refined for workers that send a cover.
_KINDS: dict[str, tuple[Cut, bool]] = {
    "destination": (cut_by_metis, False),
    "destination-cover": (cut_by_metis, True),
    "hypergraph": (cut_by_mtkahypar, False),
    "hypergraph-cover": (cut_by_mtkahypar, True),
}
_NAME = re.compile(r"([1-9]\d{0,2}):(\d{1,3})")


@dataclass(frozen=True)
class BlocksOver:
    """Blocks of a kind for a number of leaves and spines."""

    kind: str  # `destination`, `hypergraph`, or one of these with `-cover`
    leaves: int
    spines: int  # that complete sums; 0: the leaves of the destinations do

    @property
    def name(self) -> str:
        """The name of the block strategy: KIND:LEAVES:SPINES."""
        return f"{self.kind}:{self.leaves}:{self.spines}"

    def form(self, boundary: BoundaryEdges, slots: int, seed: int, *, workers: int) -> Int32s:
        """Form about as few blocks as the slots of the fullest switch allow: int32[E], from 1."""
        cut, cover = _KINDS[self.kind]
        needs = slots_needed(boundary, self, workers)
        found = _within_slots(needs, slots, seed, cut)
        if found is None:
            return np.ones(len(boundary), dtype=np.int32)
        part, sets, limits = found
        known = needs.known
        part = refine_within(known.edges, part, sets, limits)
        block = number_sets(part)[known.edges.destination]
        if not cover:
            return block
        return refine_for_cover(boundary, block, partial(refine_within, limits=limits))

    def check(self, boundary: BoundaryEdges, block: Int32s, slots: int, workers: int) -> None:
        """Check that blocks fit the slots of each switch and split no destination."""
        needs = slots_needed(boundary, self, workers)
        into = needs.known.edges.destination
        own = np.zeros(len(needs.worker), dtype=np.int32)
        own[into] = block
        if np.any(own[into] != block):
            raise PlannerError(f"Block strategy {self.name} put a destination into two blocks.")
        fullest = max(int(np.bincount(own[takes]).max(initial=0)) for takes in needs.slot.T)
        if fullest > slots:
            raise PlannerError(
                f"Block strategy {self.name} made a block that takes {fullest} slots of one "
                f"switch, which has {slots}."
            )


def find_blocks_over(name: str) -> BlocksOver | None:
    """Parse KIND:LEAVES:SPINES; None for names without a colon."""
    kind, colon, numbers = name.partition(":")
    if not colon:
        return None
    found = _NAME.fullmatch(numbers)
    if kind not in _KINDS or found is None:
        raise PlannerError(
            f"No block strategy {name!r}: for leaves and spines write one of {', '.join(_KINDS)} "
            "with their numbers, as destination:8:8."
        )
    return BlocksOver(kind, int(found[1]), int(found[2]))


def name_over(kind: str, leaves: int, spines: int) -> str:
    """Return KIND:LEAVES:SPINES, or `kind` itself if it has no blocks for leaves and spines."""
    return BlocksOver(kind, leaves, spines).name if kind in _KINDS else kind


@dataclass(frozen=True, eq=False)
class Needs:
    """The switches in which each destination takes a slot, if a block has all its in-edges."""

    known: Destinations  # the boundary edges, with D destinations
    slot: Bools  # [D, switches], leaves first
    worker: Int32s  # [D], the holder of the destination
    workers: int  # their number


def slots_needed(boundary: BoundaryEdges, over: BlocksOver, workers: int) -> Needs:
    """Find the switches that add to the sum of each destination.

    A leaf adds the packets of its workers. Partial sums that cross leaves are added by the spine of
    the destination, or without spines by its leaf.
    """
    attached = even_leaf_spine(workers, over.leaves, max(over.spines, 1))
    leaf_of = np.array(attached.leaf_of_worker)
    known = number_ends(boundary)
    into, size = known.edges.destination, known.edges.destinations
    worker = np.zeros(size, dtype=np.int32)
    worker[into] = boundary.destination_worker
    slot = np.zeros((size, over.leaves + over.spines), dtype=np.bool_)
    slot[into, leaf_of[boundary.source_worker]] = True
    crosses = np.zeros(size, dtype=np.bool_)
    away = leaf_of[boundary.source_worker] != leaf_of[boundary.destination_worker]
    crosses[into[away]] = True
    rows = np.flatnonzero(crosses)
    if over.spines:
        slot[rows, over.leaves + attached.spine_of(known.destination_id[rows])] = True
    else:
        slot[rows, leaf_of[worker[rows]]] = True
    return Needs(known, slot, worker, workers)


def _within_slots(
    needs: Needs, slots: int, seed: int, cut: Cut
) -> tuple[Int32s, int, Limits] | None:
    """Return sets that fit, their number and their limits; None: all fit into one set."""
    edges, size = needs.known.edges, needs.known.edges.destinations
    sets = -(-int(needs.slot.sum(axis=0).max(initial=0)) // slots)
    if sets <= 1:
        return None
    check_sets(sets, slots)
    # No switch takes more slots than a set has destinations, so these always fit.
    enough = -(-size // slots)
    while sets < enough:
        part = cut(needs.known, sets, -(-size // sets), seed)
        # Or deal each worker's destinations out to the sets in turn.
        dealt = (rank_within((needs.worker,), (part,)) + needs.worker) % sets
        for start in (part, dealt.astype(np.int32)):
            for surplus in _SURPLUS:
                limits = _limits(needs, slots, sets, surplus)
                fitted = fit_within(edges, start, sets, limits)
                if limits.hold(fitted, sets):
                    return fitted, sets, limits
        sets += max(1, int(sets * _MORE_SETS))
    check_sets(enough, slots)
    part = fit(edges, cut(needs.known, enough, slots, seed), enough, slots)
    return part, enough, _limits(needs, slots, enough, np.inf)


def _limits(needs: Needs, slots: int, sets: int, surplus: float) -> Limits:
    """Limit each switch to its slots, and each worker's destinations to about an equal share."""
    of_worker = np.zeros((len(needs.worker), needs.workers), dtype=np.bool_)
    of_worker[np.arange(len(needs.worker)), needs.worker] = True
    held = of_worker.sum(axis=0)
    share = np.minimum(np.ceil(held / sets * (1 + surplus)), held) if surplus < np.inf else held
    most = np.concatenate([np.full(needs.slot.shape[1], slots), share]).astype(np.int64)
    return limits_of(np.concatenate([needs.slot, of_worker], axis=1), most, needs.worker)
