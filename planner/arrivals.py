# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The packets of a finished plan in the order in which they reach the switch, or in another."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.boundary import BoundaryEdges
from switchgnn.planner.direction import Direction
from switchgnn.planner.graph import FIRST_RESERVED_ID
from switchgnn.planner.groups import rank_in_group
from switchgnn.planner.plan import Plan
from switchgnn.planner.strategies import OrderStrategy


@dataclass(frozen=True, eq=False)
class Arriving:
    """The packets of one direction, S in the order of arrival, and their A additions.

    All links are equally fast: the first packets of all workers enter, then the second ones,
    and so on; a worker that has sent all of its block sends nothing until the next.

    Attributes:
        block: int64[S], from 1 for the first of the direction, ascending.
        source: int64[S], the ids: vertices, and from 2^31 partial sums.
        worker: int64[S], who sends it.
        packet: int64[A], for each addition its packet.
        destination: int64[A], the vertex whose sum it goes to.
        result: int64[A], the sum, numbered from 0 over all blocks.
    """

    block: NDArray[np.int64]
    source: NDArray[np.int64]
    worker: NDArray[np.int64]
    packet: NDArray[np.int64]
    destination: NDArray[np.int64]
    result: NDArray[np.int64]


def plan_arrivals(plan: Plan, direction: Direction) -> Arriving:
    """Say which packet of the plan enters when, and what it adds to."""
    record, switch = plan.manifest.direction(direction), plan.switch
    first, last = record.first_block, record.last_block
    block, source, worker = _sends(plan)
    inside = (block >= first) & (block <= last)
    block, source, worker = block[inside], source[inside], worker[inside]
    order = _by_turns(block, worker)
    block, source, worker = block[order], source[order], worker[order]

    entry, bank = np.nonzero(switch.entry_expected)
    inside = (switch.entry_block[entry] >= first) & (switch.entry_block[entry] <= last)
    entry, bank = entry[inside], bank[inside]
    packet = _find(block, source, switch.entry_block[entry], switch.entry_source[entry])
    place = _slots(switch.entry_block[entry], bank, switch.entry_slot[entry, bank])
    # Results are sorted by block, bank and slot.
    known = _slots(switch.result_block, switch.result_bank, switch.result_slot)
    result = np.searchsorted(known, place)
    return Arriving(
        block=block - first + 1,
        source=source,
        worker=worker,
        packet=packet,
        destination=switch.result_vertex[result].astype(np.int64),
        result=result - int(np.searchsorted(switch.result_block, first)),
    )


def reordered(arriving: Arriving, order: OrderStrategy, plan: Plan) -> Arriving:
    """The same packets as another order strategy has them sent, with the plan's seed."""
    numbers = arriving.source.copy()
    summed = numbers >= FIRST_RESERVED_ID
    # As build_plan numbers them for its order strategy: partial sums behind the vertices.
    numbers[summed] += plan.manifest.graph.vertices - FIRST_RESERVED_ID
    by_ends = np.lexsort((arriving.destination, numbers[arriving.packet]))
    packet, destination = arriving.packet[by_ends], arriving.destination[by_ends]
    edges = BoundaryEdges(
        source=numbers[packet].astype(np.int32),
        destination=destination.astype(np.int32),
        source_worker=arriving.worker[packet].astype(np.uint8),
        destination_worker=plan.assignment[destination].astype(np.uint8),
    )
    sends = order(edges, arriving.block[packet].astype(np.int32), plan.manifest.strategy.seed)
    now = _find(arriving.block, numbers, sends.block, sends.source)
    now = now[_by_turns(arriving.block[now], arriving.worker[now])]
    place = np.empty_like(now)
    place[now] = np.arange(len(now))
    return Arriving(
        block=arriving.block[now],
        source=arriving.source[now],
        worker=arriving.worker[now],
        packet=place[arriving.packet],
        destination=arriving.destination,
        result=arriving.result,
    )


def _sends(plan: Plan) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Block, id and worker of every packet, each worker's in sending order."""
    blocks, sources, workers = [], [], []
    for part in plan.workers:
        sizes = np.diff(part.send_indptr)
        blocks.append(np.repeat(np.arange(1, len(sizes) + 1), sizes))
        sources.append(part.send_source.astype(np.int64))
        workers.append(np.full(len(part.send_source), part.worker))
    return np.concatenate(blocks), np.concatenate(sources), np.concatenate(workers)


def _by_turns(block: NDArray[np.int64], worker: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order of arrival of packets that are given in each worker's sending order."""
    together = np.lexsort((worker, block))
    turn = np.empty(len(block), dtype=np.int64)
    turn[together] = rank_in_group(block[together], worker[together])
    return np.lexsort((worker, turn, block))


def _find(
    block: NDArray[np.int64],
    source: NDArray[np.int64],
    wanted_block: NDArray[np.integer],
    wanted_source: NDArray[np.integer],
) -> NDArray[np.int64]:
    """Where the wanted packets are."""
    keys = (block << 32) | source
    by_key = np.argsort(keys)
    wanted = (wanted_block.astype(np.int64) << 32) | wanted_source
    found: NDArray[np.int64] = by_key[np.searchsorted(keys, wanted, sorter=by_key)]
    return found


def _slots(
    block: NDArray[np.integer], bank: NDArray[np.integer], slot: NDArray[np.integer]
) -> NDArray[np.int64]:
    """A number for each slot of each block."""
    place = (block.astype(np.int64) << 4) | bank
    return (place << 32) | slot
