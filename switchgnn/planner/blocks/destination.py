"""Destination blocks, by METIS or Mt-KaHyPar: sets of destinations with all their in-edges.

Every destination is then returned once; the cost is the number of (source, block) pairs.

On a leaf-spine a destination takes a slot only in switches that add to its sum, so a block may have
more destinations than one switch has slots. Spreading them over the workers keeps any link from
carrying most sums of a block. There, blocks of MLGP are joined to larger ones.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from switchgnn.base.array_types import Bools, Int32s, Int64s
from switchgnn.base.machine import how_to_install
from switchgnn.planner.base.arrays import Incidence, number_ids, number_pairs, rank_within
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.blocks import refine
from switchgnn.planner.blocks.mlgp import MAX_BLOCKS, mlgp
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.partition.metis import partition_vertices
from switchgnn.planner.sending.cover import cover_edges, packets_up
from switchgnn.planner.sending.rates import link_loads

# Cuts destinations into sets: (edges, sets, slots, seed) -> int32[D].
Cut = Callable[[Incidence, int, int, int], Int32s]
# Changes sets of destinations: (edges, int32[D], sets) -> int32[D].
Improve = Callable[[Incidence, Int32s, int], Int32s]

# How often blocks and cover are improved in turn, unless a turn gains less than this share. With
# more edges they are not, as the first cover alone takes half a minute.
_TURNS = 12
_MOST_EDGES_IN_TURN = 20_000_000
_LEAST_GAIN = 5e-4
# How many edges METIS sees, a sample: refinement, which sees all, makes up for it.
_MOST_EDGES_OF_METIS = 1 << 24
# The most edges with which METIS runs with both of its objectives.
_MOST_EDGES_TWICE = 2_000_000


def form_blocks(boundary: BoundaryEdges, slots: int, seed: int, *, kind: str) -> Int32s:
    """Form destination blocks of a kind of KINDS: few (source, block) pairs, or packets of a cover.

    Returns int32[E], numbered from 1.
    """
    cut, covers = KINDS[kind]
    block = destination_blocks(boundary, slots, seed, cut)
    return (
        refine_for_cover(boundary, block, partial(refine.refine, slots=slots)) if covers else block
    )


def destination_blocks(boundary: BoundaryEdges, slots: int, seed: int, cut: Cut) -> Int32s:
    """Form as few blocks as possible with `cut`, fit them to the slots and refine them."""
    known = number_ends(boundary)
    sets = -(-len(known.destination_id) // slots)
    check_sets(sets, slots)
    if sets <= 1:
        return np.ones(len(boundary), dtype=np.int32)
    part = cut(known, sets, slots, seed)
    part = refine.refine(known, refine.fit(known, part, sets, slots), sets, slots)
    return number_sets(part)[known.destination]


def check_sets(sets: int, slots: int) -> None:
    """Check that sets of destinations can be numbered as blocks."""
    if sets > MAX_BLOCKS:
        raise PlannerError(
            f"With {slots} slots the graph needs {sets} blocks, at most {MAX_BLOCKS} fit; "
            "give the switch more slots."
        )


def refine_for_cover(boundary: BoundaryEdges, block: Int32s, improve: Improve) -> Int32s:
    """Change destination blocks, int32[E], so that a minimum cover needs fewer packets.

    In turn, chooses the cover for the blocks, and refines the blocks for the edges that the cover
    serves by multicast; the others cost the same in any block. Neither step adds packets.
    """
    sets = int(block.max(initial=0))
    if sets <= 1 or len(boundary) > _MOST_EDGES_IN_TURN:
        return block
    known = number_ends(boundary)
    if not refine.refinable(known, sets):
        return block
    part = np.empty(len(known.destination_id), dtype=np.int32)
    part[known.destination] = block - 1
    packets = None
    for _ in range(_TURNS):
        now = (part[known.destination] + 1).astype(np.int32)
        multicast = cover_edges(boundary, now)
        count = sum(int(each.sum()) for each in packets_up(boundary, now, multicast))
        if packets is not None and packets - count < _LEAST_GAIN * packets:
            break
        packets = count
        source, destination = known.source[multicast], known.destination[multicast]
        raw = replace(known, source=source, destination=destination)
        part = improve(raw, part, sets)
    return number_sets(part)[known.destination]


def cut_by_metis(known: Incidence, sets: int, slots: int, seed: int) -> Int32s:
    """Cut with both objectives of METIS, refine, and return the better sets: int32[D], from 0.

    Only destinations have weight. The cut edges are few or, if the graph is small, maybe the
    communication volume, which counts the pairs outside a source's own block.
    """
    ids = np.union1d(known.source_id, known.destination_id)
    at = np.searchsorted(ids, known.destination_id).astype(np.int32)
    u, v = known.source, known.destination
    if len(ids) > len(known.source_id):
        u = np.searchsorted(ids, known.source_id).astype(np.int32)[u]
    if len(ids) > len(known.destination_id):
        v = at[v]
    weights = np.zeros(len(ids), dtype=np.int64)
    weights[at] = 1
    found = []
    for volume in (False, True) if len(u) <= _MOST_EDGES_TWICE else (False,):
        part = partition_vertices(
            u,
            v,
            vertices=len(ids),
            parts=sets,
            seed=seed,
            weights=None if weights.all() else weights,
            volume=volume,
            most_edges=_MOST_EDGES_OF_METIS,
        )[at]
        part = refine.fit(known, part, sets, slots)
        found.append(refine.refine(known, part, sets, slots))
    if len(found) == 1:
        return found[0]
    return min(found, key=lambda part: refine.count_pairs(known, part, sets))


def number_ends(boundary: BoundaryEdges) -> Incidence:
    """Return the edges with sources and destinations numbered from 0."""
    source_id, source = number_ids(boundary.source)
    destination_id, into = number_ids(boundary.destination)
    return Incidence(source, into, source_id, destination_id)


def number_sets(part: Int32s) -> Int32s:
    """Return the sets that are in use, numbered from 1 without gaps."""
    number = np.unique(part, return_inverse=True)[1].reshape(-1)
    return (number + 1).astype(np.int32)


# The smallest imbalance to ask for; sets that come out too large are made to fit afterwards.
_LEAST_IMBALANCE = 0.005
# Mt-KaHyPar takes a C int.
_SEED_LIMIT = 2**31 - 1


def has_mtkahypar() -> bool:
    """Return whether Mt-KaHyPar is installed."""
    try:
        _library()
    except PlannerError:
        return False
    return True


def cut_by_mtkahypar(known: Incidence, sets: int, slots: int, seed: int) -> Int32s:
    """Cut the destinations by Mt-KaHyPar: int32[D], 0 <= set < sets.

    Each source is a net; the blocks of each net less one are the pairs up to a constant. The
    deterministic algorithm gives the same sets on any number of cores.
    """
    library = _library()
    shares = np.bincount(known.source, minlength=known.sources)
    # Nets of one destination are never cut.
    cuttable = (shares > 1)[known.source]
    if not cuttable.any():
        return (np.arange(known.destinations) % sets).astype(np.int32)
    ends = np.cumsum(shares[shares > 1])[:-1]
    nets = [net.tolist() for net in np.split(known.destination[cuttable], ends)]
    even = -(-known.destinations // sets)
    try:
        library.set_seed(seed % _SEED_LIMIT)
        context = _started().context_from_preset(library.PresetType.DETERMINISTIC_QUALITY)
        context.logging = False
        imbalance = max(slots / even - 1, _LEAST_IMBALANCE)
        context.set_partitioning_parameters(sets, imbalance, library.Objective.KM1)
        graph = _started().create_hypergraph(context, known.destinations, len(nets), nets)
        parts = graph.partition(context).get_partition()
    except Exception as error:  # of several kinds of its own
        raise PlannerError(f"Mt-KaHyPar could not make {sets} blocks: {error}.") from error
    return np.array(parts, dtype=np.int32)


def _library() -> Any:  # noqa: ANN401 - a module without types
    try:
        import mtkahypar  # noqa: PLC0415 - optional
    except ImportError as error:
        raise PlannerError(
            "Blocks by hypergraph partitioning need Mt-KaHyPar: "
            f"{how_to_install('hypergraph')}, or choose the block strategy destination."
        ) from error
    return mtkahypar


@cache
def _started() -> Any:  # noqa: ANN401 - a module without types
    return _library().initialize(os.cpu_count() or 1, False)


# How much more than an equal share of a worker's destinations a block may have. The next one is
# only tried where the blocks would not fit otherwise: fewer blocks are worth more.
_SURPLUS = (0.1, 0.25, 0.5, 1.0, 2.0, np.inf)
# Where a number of blocks does not do, this share more of them are tried, at least one.
_MORE_SETS = 0.02
# The cut of each kind, and whether its blocks are refined for workers that send a cover.
KINDS: dict[str, tuple[Cut, bool]] = {
    "destination": (cut_by_metis, False),
    "destination-cover": (cut_by_metis, True),
    "hypergraph": (cut_by_mtkahypar, False),
    "hypergraph-cover": (cut_by_mtkahypar, True),
}
# The paper's blocks, in several of which a destination may be.
MLGP = "mlgp"
_NAME = re.compile(r"([1-9]\d{0,2}):(\d{1,3})")


@dataclass(frozen=True)
class BlocksOver:
    """Blocks of a kind for a number of leaves and spines."""

    kind: str  # a key of KINDS, or MLGP
    leaves: int
    spines: int  # that complete sums; 0: the leaves of the destinations do

    @property
    def name(self) -> str:
        """The name of the block strategy: KIND:LEAVES:SPINES."""
        return f"{self.kind}:{self.leaves}:{self.spines}"

    def form(self, boundary: BoundaryEdges, slots: int, seed: int, *, workers: int) -> Int32s:
        """Form about as few blocks as the slots of the fullest switch allow: int32[E], from 1."""
        if self.kind == MLGP:
            block = mlgp(boundary, slots, seed)
            takes = self._slots_taken(boundary, block, workers)
            return refine.join_blocks(link_loads(boundary, block, workers)[1:], takes[1:], slots)[
                block - 1
            ]
        cut, cover = KINDS[self.kind]
        needs = slots_needed(boundary, self, workers)
        found = _within_slots(needs, slots, seed, cut)
        if found is None:
            return np.ones(len(boundary), dtype=np.int32)
        part, sets, limits = found
        known = needs.known
        part = refine.refine_within(known, part, sets, limits)
        block = number_sets(part)[known.destination]
        if not cover:
            return block
        return refine_for_cover(boundary, block, partial(refine.refine_within, limits=limits))

    def check(self, boundary: BoundaryEdges, block: Int32s, slots: int, workers: int) -> None:
        """Check that blocks fit the slots of each switch and split no destination."""
        fullest = int(self._slots_taken(boundary, block, workers).max(initial=0))
        if fullest > slots:
            raise PlannerError(
                f"Block strategy {self.name} made a block that takes {fullest} slots of one "
                f"switch, which has {slots}."
            )

    def _slots_taken(self, boundary: BoundaryEdges, block: Int32s, workers: int) -> Int64s:
        """Count the slots that each block, from 0, takes of each switch: int64[B + 1, switches]."""
        needs = slots_needed(boundary, self, workers, block if self.kind == MLGP else None)
        into = needs.known.destination
        own = np.zeros(len(needs.worker), dtype=np.int32)
        own[into] = block
        if np.any(own[into] != block):
            raise PlannerError(f"Block strategy {self.name} put a destination into two blocks.")
        blocks = int(block.max(initial=0)) + 1
        taken = [np.bincount(own[takes], minlength=blocks) for takes in needs.slot.T]
        return np.stack(taken, axis=1)


def find_blocks_over(name: str) -> BlocksOver | None:
    """Parse KIND:LEAVES:SPINES; None for names without a colon."""
    kind, colon, numbers = name.partition(":")
    if not colon:
        return None
    found = _NAME.fullmatch(numbers)
    if kind not in (MLGP, *KINDS) or found is None:
        raise PlannerError(
            f"No block strategy {name!r}: for leaves and spines write one of "
            f"{', '.join((MLGP, *KINDS))} with their numbers, as destination:8:8."
        )
    return BlocksOver(kind, int(found[1]), int(found[2]))


@dataclass(frozen=True, eq=False)
class Needs:
    """The switches in which each destination of a block takes a slot for its in-edges there."""

    known: Incidence  # the boundary edges, with D destinations
    slot: Bools  # [D, switches], leaves first
    worker: Int32s  # [D], the holder of the destination
    workers: int  # their number


def slots_needed(
    boundary: BoundaryEdges, over: BlocksOver, workers: int, block: Int32s | None = None
) -> Needs:
    """Find the switches that add to the sum of each destination, or of each in a given block.

    A leaf adds the packets of its workers. Partial sums that cross leaves are added by the spine of
    the destination, or without spines by its leaf.
    """
    attached = even_leaf_spine(workers, over.leaves, max(over.spines, 1))
    leaf_of = np.array(attached.leaf_of_worker)
    known = number_ends(boundary)
    if block is not None:
        (_, vertex), into = number_pairs(block, boundary.destination)
        known = replace(known, destination=into, destination_id=vertex.astype(np.int64))
    into, size = known.destination, known.destinations
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
) -> tuple[Int32s, int, refine.Limits] | None:
    """Return sets that fit, their number and their limits; None: all fit into one set."""
    edges, size = needs.known, needs.known.destinations
    sets = -(-int(needs.slot.sum(axis=0).max(initial=0)) // slots)
    if sets <= 1:
        return None
    check_sets(sets, slots)
    # No switch takes more slots than a set has destinations, so these always fit.
    enough = -(-size // slots)
    while sets < enough:
        part = cut(edges, sets, -(-size // sets), seed)
        # Or deal each worker's destinations out to the sets in turn.
        dealt = (rank_within((needs.worker,), (part,)) + needs.worker) % sets
        for start in (part, dealt.astype(np.int32)):
            for surplus in _SURPLUS:
                limits = _limits(needs, slots, sets, surplus)
                fitted = refine.fit_within(edges, start, sets, limits)
                if limits.hold(fitted, sets):
                    return fitted, sets, limits
        sets += max(1, int(sets * _MORE_SETS))
    check_sets(enough, slots)
    part = refine.fit(edges, cut(edges, enough, slots, seed), enough, slots)
    return part, enough, _limits(needs, slots, enough, np.inf)


def _limits(needs: Needs, slots: int, sets: int, surplus: float) -> refine.Limits:
    """Limit each switch to its slots, and each worker's destinations to about an equal share."""
    of_worker = np.zeros((len(needs.worker), needs.workers), dtype=np.bool_)
    of_worker[np.arange(len(needs.worker)), needs.worker] = True
    held = of_worker.sum(axis=0)
    share = np.minimum(np.ceil(held / sets * (1 + surplus)), held) if surplus < np.inf else held
    most = np.concatenate([np.full(needs.slot.shape[1], slots), share]).astype(np.int64)
    return refine.limits_of(np.concatenate([needs.slot, of_worker], axis=1), most, needs.worker)
