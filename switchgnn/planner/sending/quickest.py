# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How much a contribution should weigh, so that neither links nor the switch's loop hold up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.arrays.rows import distinct_pairs
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.sending.packets import Packets, make_packets

# In packets. With 1 every partial sum of two or more features is made.
WEIGHTS = (0.0, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)

Choose = Callable[[BoundaryEdges, NDArray[np.int32], float], NDArray[np.bool_]]


@dataclass(frozen=True)
class Rates:
    """What the network carries.

    Attributes:
        link: packets per second on each worker's link, in each direction.
        loop: passes per second of the switch, but for the first of each packet.
        additions: contributions that a pass makes on average.
    """

    link: float
    loop: float
    additions: float


def quickest_first(
    sets: Sequence[tuple[BoundaryEdges, NDArray[np.int32]]],
    choose: Choose,
    rates: Rates,
    *,
    vertices: int,
    workers: int,
) -> list[float]:
    """Sort WEIGHTS by the time that an exchange takes with each.

    Args:
        sets: boundary edges, and their blocks, int32[E].
        choose: the send strategy.
        rates: of links and loop.
        vertices: V, the vertices of the graph.
        workers: their number.

    Returns:
        All of WEIGHTS, the quickest first; of those that take the same time the smallest first.

    Raises:
        PlannerError: more partial sums than ids.
    """

    def seconds(weight: float) -> float:
        return sum(
            exchange_seconds(
                make_packets(
                    boundary,
                    block,
                    choose(boundary, block, weight),
                    vertices=vertices,
                    workers=workers,
                ),
                rates,
                workers,
            )
            for boundary, block in sets
        )

    return sorted(WEIGHTS, key=seconds)


def exchange_seconds(packets: Packets, rates: Rates, workers: int) -> float:
    """Return what a fragment of all blocks takes at least, one block after another.

    Links and loop work side by side, so what takes longer counts: packets of the busiest link, or
    all passes of the loop.

    Args:
        packets: of all blocks.
        rates: of links and loop.
        workers: their number.

    Returns:
        Seconds, without barriers and the way of a packet.
    """
    edges, block = packets.edges, packets.block
    blocks = int(block.max(initial=0)) + 1
    up, sent = _of_links(block, edges.source, edges.source_worker, blocks, workers)
    down, _ = _of_links(block, edges.destination, edges.destination_worker, blocks, workers)
    contributions = np.bincount(block, minlength=blocks)
    passes = np.maximum(contributions / rates.additions - sent, 0.0)
    return float(np.maximum(np.maximum(up, down) / rates.link, passes / rates.loop).sum())


def _of_links(
    block: NDArray[np.int32],
    row: NDArray[np.int32],
    worker: NDArray[np.uint8],
    blocks: int,
    workers: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return of each block the packets of the busiest link, and those of all."""
    of_row = np.zeros(int(row.max(initial=0)) + 1, dtype=np.int64)
    of_row[row] = worker
    of_block, rows = distinct_pairs(block, row)
    link = of_block.astype(np.int64) * workers + of_row[rows]
    packets = np.bincount(link, minlength=blocks * workers).reshape(blocks, workers)
    return packets.max(axis=1), packets.sum(axis=1)
