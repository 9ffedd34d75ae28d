"""Strategies by name: partitions, blocks, sends and orders.

To add one, write a function with the signature of the protocol and add it to the mapping;
`build_plan` checks its results.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np

from switchgnn.base.array_types import Bools, Int32s
from switchgnn.base.names import no_such
from switchgnn.planner.base.arrays import distinct_pairs
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.blocks.destination import KINDS, find_blocks_over, form_blocks
from switchgnn.planner.blocks.mlgp import mlgp
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition import vertex_cut
from switchgnn.planner.partition.g3 import g3
from switchgnn.planner.partition.leaf_spine import metis_leaf_spine
from switchgnn.planner.partition.simple import balanced_boundary, chunk, shuffled
from switchgnn.planner.partition.workers import partition_workers
from switchgnn.planner.sending.cover import cover_edges
from switchgnn.planner.sending.order import SendOrder, gamr
from switchgnn.planner.sending.packets import multicast
from switchgnn.planner.sending.replicas import even_blocks

# All strategies are deterministic, and take a seed where they choose at random.
# Assigns vertices to workers, given the graph, the number of workers and a seed: int32[V],
# 0 <= worker < workers; every worker has a vertex.
PartitionStrategy: TypeAlias = Callable[[Graph, int, int], Int32s]
# Puts every boundary edge into a block, given the edges, the slots and a seed: int32[E], numbered
# from 1 without gaps. A block has at most that many destinations.
BlockStrategy: TypeAlias = Callable[[BoundaryEdges, int, int], Int32s]
# Chooses whether its source serves each boundary edge in its block, or a partial sum for its
# destination, given the edges, their blocks and the cost of a contribution in packets: bool[E].
SendStrategy: TypeAlias = Callable[[BoundaryEdges, Int32s, float], Bools]
# Orders the packets of each block, given the edges from packets to destinations (partial sums are
# sources like vertices), their blocks and a seed: every (block, source) once, blocks ascending.
OrderStrategy: TypeAlias = Callable[[BoundaryEdges, Int32s, int], SendOrder]


class PartitionStrategies(dict[str, PartitionStrategy]):
    """Partition strategies by name, and those with a number in their name.

    `metis-leaf-spine:LEAVES`, and vertex cuts, which give a vertex to the worker of its master.
    """

    def __missing__(self, name: str) -> PartitionStrategy:
        """Return the strategy, or raise KeyError."""
        if vertex_cut.is_vertex_cut(name):
            return partial(_masters, name)
        kind, _, leaves = name.partition(":")
        if kind != "metis-leaf-spine":
            raise KeyError(name)
        if not re.fullmatch(r"[1-9]\d{0,2}", leaves):
            raise PlannerError(f"{name!r} does not say how many leaves: write it as {kind}:2.")
        return partial(metis_leaf_spine, leaves=int(leaves))


def _masters(name: str, graph: Graph, workers: int, seed: int) -> Int32s:
    cut = vertex_cut.cut_by(name, graph, workers, seed)
    return cut.worker[: cut.masters]


def random_order(boundary: BoundaryEdges, block: Int32s, seed: int) -> SendOrder:
    """Shuffle the sources of each block (section 2.3.2, the strawman)."""
    blocks = int(block.max(initial=0))
    numbers, sources = distinct_pairs(block, boundary.source)
    bounds = np.searchsorted(numbers, np.arange(1, blocks + 2))
    for number in range(1, blocks + 1):
        # A view: shuffles the sources of one block in place.
        own = sources[bounds[number - 1] : bounds[number]]
        np.random.default_rng([seed, number]).shuffle(own)
    return SendOrder(block=numbers, source=sources)


PARTITION_STRATEGIES: Mapping[str, PartitionStrategy] = PartitionStrategies(
    {
        "metis": partition_workers,
        "metis-volume": partial(partition_workers, volume=True),
        "metis-boundary": balanced_boundary,
        "g3": g3,
        "random": shuffled,
        "chunk": chunk,
        **{name: partial(_masters, name) for name in vertex_cut.VERTEX_CUTS},
    }
)
BLOCK_STRATEGIES: Mapping[str, BlockStrategy] = {
    "mlgp": mlgp,
    **{kind: partial(form_blocks, kind=kind) for kind in KINDS},
    "even": even_blocks,
}
ORDER_STRATEGIES: Mapping[str, OrderStrategy] = {
    "gamr": gamr,
    "bfs": partial(gamr, by_degree=False),
    "random": random_order,
}
SEND_STRATEGIES: Mapping[str, SendStrategy] = {"multicast": multicast, "cover": cover_edges}


class _BlockNames(dict[str, object]):
    """Names of blocks: the keys of BLOCK_STRATEGIES, and KIND:LEAVES:SPINES."""

    def __missing__(self, name: str) -> object:
        found = find_blocks_over(name)
        if found is None:
            raise KeyError(name)
        return found


BLOCK_NAMES: Mapping[str, object] = _BlockNames(BLOCK_STRATEGIES)

_Strategy = TypeVar("_Strategy")


def find_strategy(what: str, name: str, known: Mapping[str, _Strategy]) -> _Strategy:
    """Look up a strategy; the error lists the known ones."""
    try:
        return known[name]
    except KeyError:
        raise PlannerError(no_such(f"{what} strategy", name, sorted(known))) from None


def find_blocks(name: str, workers: int, known: Mapping[str, BlockStrategy]) -> BlockStrategy:
    """Look up a block strategy, or parse KIND:LEAVES:SPINES."""
    over = find_blocks_over(name)
    if over is not None:
        return partial(over.form, workers=workers)
    return find_strategy("block", name, known)


def check_blocks(name: str, boundary: BoundaryEdges, block: Int32s, slots: int) -> None:
    """Check that a strategy returned what BlockStrategy promises."""
    if block.shape != (len(boundary),):
        raise PlannerError(f"Block strategy {name} must give one block for each boundary edge.")
    if block.min(initial=1) < 1 or np.any(np.bincount(block)[1:] == 0):
        raise PlannerError(f"Block strategy {name} must number the blocks from 1 without gaps.")
    fullest = int(np.bincount(distinct_pairs(block, boundary.destination)[0]).max(initial=0))
    if fullest > slots:
        raise PlannerError(
            f"Block strategy {name} made a block of {fullest} destinations for {slots} slots."
        )


def check_sends(name: str, boundary: BoundaryEdges, by_vertex: Bools) -> None:
    """Check that a strategy returned what SendStrategy promises."""
    if by_vertex.shape != (len(boundary),) or by_vertex.dtype != np.bool_:
        raise PlannerError(f"Send strategy {name} must give one truth value per boundary edge.")


def check_order(name: str, boundary: BoundaryEdges, block: Int32s, sends: SendOrder) -> None:
    """Check that a strategy returned what OrderStrategy promises."""
    needed = distinct_pairs(block, boundary.source)
    by_pair = np.lexsort((sends.source, sends.block))
    given = sends.block[by_pair], sends.source[by_pair]
    if not all(map(np.array_equal, needed, given)) or np.any(np.diff(sends.block) < 0):
        raise PlannerError(
            f"Order strategy {name} must give each source of each block once, blocks ascending."
        )
