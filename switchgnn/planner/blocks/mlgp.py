# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""MLGP: boundary edges in blocks that fit the aggregators (section 3.3)."""

import os
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.blocks.destination import (
    Destinations,
    destination_blocks,
    refine_for_cover,
)
from switchgnn.planner.blocks.refine import refine
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.partition.metis import partition_vertices, symmetric_rows

# Block_id has 16 bits and 0 means no block.
MAX_BLOCKS = 65535
# Both ends of an edge are vertices of its block.
MIN_SLOTS = 2

_CUT = -1


def mlgp(boundary: BoundaryEdges, slots: int, seed: int) -> NDArray[np.int32]:
    """Find the block of every boundary edge by multi-level graph partitioning (section 3.3).

    The boundary graph, taken as undirected, is cut by METIS into parts of at most `slots`
    vertices. The edges inside a part are one block; the edges that were cut, with only their
    own vertices, are the graph of the next level, until none are left. A level that fits as
    a whole is one block.

    METIS balances only roughly, so surplus vertices move to parts with room. Should METIS
    cut every edge of a level, a greedy cut takes its place: each part is the vertex with the
    most neighbours and as many of those as fit, which keeps at least one edge. Parts are
    never merged, neither within a level nor across.

    Args:
        boundary: the boundary edges, length E.
        slots: the aggregators of the switch; the most vertices of a block.
        seed: of METIS.

    Returns:
        int32[E], blocks numbered from 1 without gaps, in the order of level and part.

    Raises:
        PlannerError: fewer than 2 slots, or more than 65,535 blocks.
    """
    if slots < MIN_SLOTS:
        raise PlannerError(
            f"{slots} slots are too few: a block holds both ends of an edge, so it needs "
            f"at least {MIN_SLOTS}"
        )
    block = np.zeros(len(boundary), dtype=np.int32)
    remaining = np.arange(len(boundary))
    blocks = 0
    while len(remaining):
        part = _cut_level(boundary.source[remaining], boundary.destination[remaining], slots, seed)
        kept = part != _CUT
        numbers, number = np.unique(part[kept], return_inverse=True)
        block[remaining[kept]] = blocks + 1 + number
        blocks += len(numbers)
        if blocks > MAX_BLOCKS:
            raise PlannerError(
                f"with {slots} slots the graph needs more than {MAX_BLOCKS} blocks; "
                "give the switch more slots"
            )
        remaining = remaining[~kept]
    return block


def _cut_level(
    source: NDArray[np.int32], destination: NDArray[np.int32], slots: int, seed: int
) -> NDArray[np.int32]:
    """Return the part of each edge of one level, int32[E], or _CUT; at least one has a part."""
    ids, ends = np.unique(np.concatenate([source, destination]), return_inverse=True)
    u, v = ends[: len(source)], ends[len(source) :]
    if len(ids) <= slots:
        return np.zeros(len(source), dtype=np.int32)
    parts = -(-len(ids) // slots)
    part = partition_vertices(u, v, vertices=len(ids), parts=parts, seed=seed)
    indptr, indices = symmetric_rows(u, v, len(ids))
    part = _move_surplus(part, parts, slots, indptr, indices)
    if not np.any(part[u] == part[v]):
        part = _grow_stars(indptr, indices, slots)
    return np.where(part[u] == part[v], part[u], _CUT).astype(np.int32)


def _move_surplus(
    part: NDArray[np.int32],
    parts: int,
    slots: int,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Bring every part down to `slots` vertices.

    The vertices with the fewest neighbours in their part leave it, each for the part with
    room that holds most of its neighbours. There is room: parts * slots >= vertices.
    """
    part = part.copy()
    room = slots - np.bincount(part, minlength=parts)
    if room.min() >= 0:
        return part
    row = np.repeat(np.arange(len(part)), np.diff(indptr))
    inner = np.bincount(row[part[row] == part[indices]], minlength=len(part))
    for full in np.flatnonzero(room < 0):
        members = np.flatnonzero(part == full)
        leaving = members[np.argsort(inner[members], kind="stable")[: -room[full]]]
        for vertex in leaving:
            near = part[indices[indptr[vertex] : indptr[vertex + 1]]]
            near = near[room[near] > 0]
            target = np.bincount(near).argmax() if len(near) else room.argmax()
            part[vertex] = target
            room[target] -= 1
            room[full] += 1
    return part


def _grow_stars(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], slots: int
) -> NDArray[np.int32]:
    """Return the greedy cut: int32[V], in each part one vertex and neighbours of it."""
    part = np.full(len(indptr) - 1, _CUT, dtype=np.int32)
    number = 0
    for centre in np.argsort(-np.diff(indptr), kind="stable"):
        if part[centre] != _CUT:
            continue
        near = indices[indptr[centre] : indptr[centre + 1]]
        part[near[part[near] == _CUT][: slots - 1]] = number
        part[centre] = number
        number += 1
    return part


# The smallest imbalance to ask for; sets that come out too large are made to fit afterwards.
_LEAST_IMBALANCE = 0.005
_SEED_LIMIT = 2**31 - 1


def hypergraph(boundary: BoundaryEdges, slots: int, seed: int) -> NDArray[np.int32]:
    """Form destination blocks by Mt-KaHyPar, then refine them: few (source, block) pairs.

    Destinations are the vertices of the hypergraph and each source is a net over its
    destinations. The connectivity objective, the number of blocks of each net less one, is
    the number of (source, block) pairs but for a constant. The deterministic algorithm runs,
    so that the same seed gives the same blocks on any number of cores.

    Args:
        boundary: the boundary edges, length E.
        slots: the aggregators of the switch; the most destinations of a block.
        seed: of Mt-KaHyPar.

    Returns:
        int32[E], blocks numbered from 1 without gaps.

    Raises:
        PlannerError: more than 65,535 blocks, or Mt-KaHyPar is not installed or fails.
    """
    return destination_blocks(boundary, slots, seed, cut_by_mtkahypar)


def hypergraph_cover(boundary: BoundaryEdges, slots: int, seed: int) -> NDArray[np.int32]:
    """Make the blocks of `hypergraph`, refined for workers that send a minimum cover.

    Args:
        boundary: the boundary edges, length E.
        slots: the aggregators of the switch; the most destinations of a block.
        seed: of Mt-KaHyPar.

    Returns:
        int32[E], blocks numbered from 1 without gaps.

    Raises:
        PlannerError: more than 65,535 blocks, or Mt-KaHyPar is not installed or fails.
    """
    block = hypergraph(boundary, slots, seed)
    return refine_for_cover(boundary, block, partial(refine, slots=slots))


def has_mtkahypar() -> bool:
    """Return whether Mt-KaHyPar is installed."""
    try:
        _library()
    except PlannerError:
        return False
    return True


def cut_by_mtkahypar(known: Destinations, sets: int, slots: int, seed: int) -> NDArray[np.int32]:
    """Let Mt-KaHyPar cut the destinations.

    Args:
        known: the boundary edges, with D destinations.
        sets: their number.
        slots: about the most destinations of a set.
        seed: of Mt-KaHyPar.

    Returns:
        int32[D], 0 <= set < sets.

    Raises:
        PlannerError: Mt-KaHyPar is not installed or fails.
    """
    library = _library()
    edges = known.edges
    shares = np.bincount(edges.source, minlength=edges.sources)
    # Nets of one destination are never cut.
    cuttable = (shares > 1)[edges.source]
    if not cuttable.any():
        return (np.arange(edges.destinations) % sets).astype(np.int32)
    ends = np.cumsum(shares[shares > 1])[:-1]
    nets = [net.tolist() for net in np.split(edges.destination[cuttable], ends)]
    even = -(-edges.destinations // sets)
    try:
        library.set_seed(seed % _SEED_LIMIT)
        context = _started().context_from_preset(library.PresetType.DETERMINISTIC_QUALITY)
        context.logging = False
        imbalance = max(slots / even - 1, _LEAST_IMBALANCE)
        context.set_partitioning_parameters(sets, imbalance, library.Objective.KM1)
        graph = _started().create_hypergraph(context, edges.destinations, len(nets), nets)
        parts = graph.partition(context).get_partition()
    except Exception as error:  # of several kinds of its own
        raise PlannerError(f"Mt-KaHyPar could not make {sets} blocks: {error}") from error
    return np.array(parts, dtype=np.int32)


def _library() -> Any:  # noqa: ANN401 - a module without types
    try:
        import mtkahypar  # noqa: PLC0415 - optional
    except ImportError as error:
        raise PlannerError(
            "blocks by hypergraph partitioning need Mt-KaHyPar: "
            "pip install mtkahypar, or choose the block strategy destination"
        ) from error
    return mtkahypar


@cache
def _started() -> Any:  # noqa: ANN401 - a module without types
    """Return the library's threads, which start once per process."""
    return _library().initialize(os.cpu_count() or 1, False)
