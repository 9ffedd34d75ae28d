# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The packets of a finished plan in the order in which they reach the switch, or in another."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.arrays.rows import rank_in_group
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.plan.slots import SlotNumbers, entries_of
from switchgnn.planner.strategies import OrderStrategy


@dataclass(frozen=True, eq=False)
class Arriving:
    """The packets of one direction in the order of arrival, length S.

    All links are equally fast: the first packets of all workers enter, then the second ones,
    and so on; a worker that has sent all of its block sends nothing until the next.

    Attributes:
        block: int64[S], from 1 for the first of the direction, ascending.
        source: int64[S], the ids: vertices, and from 2^31 partial sums.
        worker: int64[S], who sends it.
    """

    block: NDArray[np.int64]
    source: NDArray[np.int64]
    worker: NDArray[np.int64]

    def find(self, block: NDArray[np.integer], source: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the places of these packets."""
        keys = (self.block << 32) | self.source
        by_key = np.argsort(keys)
        wanted = (block.astype(np.int64) << 32) | source
        found: NDArray[np.int64] = by_key[np.searchsorted(keys, wanted, sorter=by_key)]
        return found

    def taken(self, places: NDArray[np.int64]) -> "Arriving":
        """Return those at these places."""
        return Arriving(self.block[places], self.source[places], self.worker[places])


def plan_arrivals(plan: Plan, direction: Direction) -> Arriving:
    """Say which packet of the plan enters when."""
    record = plan.manifest.direction(direction)
    first, last = record.first_block, record.last_block
    blocks, sources, workers = [], [], []
    for part in plan.workers:
        inside = slice(int(part.send_indptr[first - 1]), int(part.send_indptr[last]))
        sizes = np.diff(part.send_indptr[first - 1 : last + 1])
        blocks.append(np.repeat(np.arange(1, len(sizes) + 1), sizes))
        sources.append(part.send_source[inside].astype(np.int64))
        workers.append(np.full(len(sources[-1]), part.worker))
    sent = Arriving(np.concatenate(blocks), np.concatenate(sources), np.concatenate(workers))
    return _by_turns(sent)


def reordered(
    plan: Plan, direction: Direction, arriving: Arriving, order: OrderStrategy
) -> Arriving:
    """Return the same packets as another order strategy has them sent, with the plan's seed.

    Args:
        plan: the plan.
        direction: one that it has.
        arriving: its packets.
        order: the other strategy.

    Returns:
        The packets in the new order.
    """
    block, source, destination = packet_edges(plan, direction)
    numbers = _as_planned(source, plan)
    by_ends = np.lexsort((destination, numbers))
    block, source, destination = block[by_ends], source[by_ends], destination[by_ends]
    edges = BoundaryEdges(
        source=numbers[by_ends].astype(np.int32),
        destination=destination.astype(np.int32),
        source_worker=arriving.worker[arriving.find(block, source)].astype(np.uint8),
        destination_worker=plan.assignment[destination].astype(np.uint8),
    )
    sends = order(edges, block.astype(np.int32), plan.manifest.strategy.seed)
    renumbered = Arriving(arriving.block, _as_planned(arriving.source, plan), arriving.worker)
    return _by_turns(arriving.taken(renumbered.find(sends.block, sends.source)))


def packet_edges(
    plan: Plan, direction: Direction
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return block (from 1), packet and destination of every addition of a direction."""
    switch, entries = plan.switch, entries_of(plan, direction)
    numbers = SlotNumbers(plan, direction)
    entry, bank = np.nonzero(switch.entry_expected[entries])
    slot = switch.entry_slot[entries][entry, bank]
    block = switch.entry_block[entries][entry]
    return (
        block.astype(np.int64) - plan.manifest.direction(direction).first_block + 1,
        switch.entry_source[entries][entry].astype(np.int64),
        numbers.vertex[numbers.of(block, bank, slot)],
    )


def _as_planned(source: NDArray[np.int64], plan: Plan) -> NDArray[np.int64]:
    """Give packets the numbers that build_plan gives them to order them."""
    summed = source >= FIRST_RESERVED_ID
    return np.where(summed, source - FIRST_RESERVED_ID + plan.manifest.graph.vertices, source)


def _by_turns(sent: Arriving) -> Arriving:
    """Return packets in the order of arrival, given in each worker's sending order."""
    together = np.lexsort((sent.worker, sent.block))
    turn = np.empty(len(together), dtype=np.int64)
    turn[together] = rank_in_group(sent.block[together], sent.worker[together])
    return sent.taken(np.lexsort((sent.worker, turn, sent.block)))
