"""Destination blocks: each is a set of destinations with all their in-edges.

Every destination is then returned once; the cost is the number of (source, block) pairs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from switchgnn.base.array_types import Int32s, Int64s
from switchgnn.planner.arrays import Incidence, number_ids
from switchgnn.planner.blocks.mlgp import MAX_BLOCKS
from switchgnn.planner.blocks.refine import count_pairs, fit, refinable, refine
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.partition.metis import partition_vertices
from switchgnn.planner.sending.cover import cover_edges, packets_up

# Cuts destinations into sets: (edges, sets, slots, seed) -> int32[D].
Cut = Callable[["Destinations", int, int, int], Int32s]
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


@dataclass(frozen=True, eq=False)
class Destinations:
    """The boundary edges with their ends numbered from 0."""

    edges: Incidence  # sources and destinations, numbered
    source_id: Int64s  # [N], vertex ids, ascending
    destination_id: Int64s  # [D], vertex ids, ascending


def destination(boundary: BoundaryEdges, slots: int, seed: int) -> Int32s:
    """Form destination blocks by METIS, then refine them: few (source, block) pairs.

    METIS cuts the boundary graph, in which only destinations have weight, for few cut edges and, if
    the graph is small, also for little communication volume, which counts the pairs outside a
    source's own block.
    """
    return destination_blocks(boundary, slots, seed, cut_by_metis)


def destination_cover(boundary: BoundaryEdges, slots: int, seed: int) -> Int32s:
    """Make the blocks of `destination`, refined for workers that send a minimum cover."""
    block = destination(boundary, slots, seed)
    return refine_for_cover(boundary, block, partial(refine, slots=slots))


def destination_blocks(boundary: BoundaryEdges, slots: int, seed: int, cut: Cut) -> Int32s:
    """Form as few blocks as possible with `cut`, fit them to the slots and refine them."""
    known = number_ends(boundary)
    sets = -(-len(known.destination_id) // slots)
    check_sets(sets, slots)
    if sets <= 1:
        return np.ones(len(boundary), dtype=np.int32)
    part = cut(known, sets, slots, seed)
    part = refine(known.edges, fit(known.edges, part, sets, slots), sets, slots)
    return number_sets(part)[known.edges.destination]


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
    if not refinable(known.edges, sets):
        return block
    part = np.empty(len(known.destination_id), dtype=np.int32)
    part[known.edges.destination] = block - 1
    packets = None
    for _ in range(_TURNS):
        now = (part[known.edges.destination] + 1).astype(np.int32)
        multicast = cover_edges(boundary, now)
        count = sum(int(each.sum()) for each in packets_up(boundary, now, multicast))
        if packets is not None and packets - count < _LEAST_GAIN * packets:
            break
        packets = count
        raw = Incidence(
            source=known.edges.source[multicast],
            destination=known.edges.destination[multicast],
            sources=known.edges.sources,
            destinations=known.edges.destinations,
        )
        part = improve(raw, part, sets)
    return number_sets(part)[known.edges.destination]


def cut_by_metis(known: Destinations, sets: int, slots: int, seed: int) -> Int32s:
    """Cut with both objectives of METIS, refine, and return the better sets: int32[D], from 0."""
    ids = np.union1d(known.source_id, known.destination_id)
    at = np.searchsorted(ids, known.destination_id).astype(np.int32)
    u, v = known.edges.source, known.edges.destination
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
        part = fit(known.edges, part, sets, slots)
        found.append(refine(known.edges, part, sets, slots))
    if len(found) == 1:
        return found[0]
    return min(found, key=lambda part: count_pairs(known.edges, part, sets))


def number_ends(boundary: BoundaryEdges) -> Destinations:
    """Return the edges with sources and destinations numbered from 0."""
    source_id, source = number_ids(boundary.source)
    destination_id, into = number_ids(boundary.destination)
    edges = Incidence(
        source=source, destination=into, sources=len(source_id), destinations=len(destination_id)
    )
    return Destinations(edges, source_id, destination_id)


def number_sets(part: Int32s) -> Int32s:
    """Return the sets that are in use, numbered from 1 without gaps."""
    number = np.unique(part, return_inverse=True)[1].reshape(-1)
    return (number + 1).astype(np.int32)
