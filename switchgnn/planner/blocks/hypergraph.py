"""Destination blocks by hypergraph partitioning with Mt-KaHyPar."""

import os
from functools import cache, partial
from typing import Any

import numpy as np

from switchgnn.base.array_types import Int32s
from switchgnn.base.machine import how_to_install
from switchgnn.planner.blocks.destination import Destinations, destination_blocks, refine_for_cover
from switchgnn.planner.blocks.refine import refine
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.boundary import BoundaryEdges

# The smallest imbalance to ask for; sets that come out too large are made to fit afterwards.
_LEAST_IMBALANCE = 0.005


_SEED_LIMIT = 2**31 - 1


def hypergraph(boundary: BoundaryEdges, slots: int, seed: int) -> Int32s:
    """Form destination blocks by Mt-KaHyPar, then refine them: few (source, block) pairs.

    Destinations are the vertices, each source is a net. The connectivity objective, the blocks of
    each net less one, is the number of pairs up to a constant. The deterministic algorithm gives
    the same blocks on any number of cores.
    """
    return destination_blocks(boundary, slots, seed, cut_by_mtkahypar)


def hypergraph_cover(boundary: BoundaryEdges, slots: int, seed: int) -> Int32s:
    """Make the blocks of `hypergraph`, refined for workers that send a minimum cover."""
    block = hypergraph(boundary, slots, seed)
    return refine_for_cover(boundary, block, partial(refine, slots=slots))


def has_mtkahypar() -> bool:
    """Return whether Mt-KaHyPar is installed."""
    try:
        _library()
    except PlannerError:
        return False
    return True


def cut_by_mtkahypar(known: Destinations, sets: int, slots: int, seed: int) -> Int32s:
    """Cut the destinations by Mt-KaHyPar: int32[D], 0 <= set < sets."""
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
