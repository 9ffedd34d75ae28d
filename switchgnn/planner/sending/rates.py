"""The time of an exchange at the rates of links and loop, and the weight that takes the least."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from switchgnn.base.array_types import Bools, Int32s, Int64s
from switchgnn.planner.base.arrays import distinct_pairs
from switchgnn.planner.graphs.boundary import BoundaryEdges, holders
from switchgnn.planner.sending.packets import Packets, make_packets

# In packets. With 1 every partial sum of two or more features is made.
WEIGHTS = (0.0, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)

Choose = Callable[[BoundaryEdges, Int32s, float], Bools]


@dataclass(frozen=True)
class Rates:
    """The capacity of the network."""

    link: float  # packets per second on each worker's link, in each direction
    loop: float  # passes per second of the switch after the first of each packet
    additions: float  # contributions that a pass makes on average


def quickest_first(
    sets: Sequence[tuple[BoundaryEdges, Int32s]],
    choose: Choose,
    rates: Rates,
    *,
    vertices: int,
    workers: int,
) -> list[float]:
    """Sort WEIGHTS by the time of an exchange; `sets` are boundary edges and their blocks."""

    def seconds(weight: float) -> float:
        made = (
            make_packets(
                boundary, block, choose(boundary, block, weight), vertices=vertices, workers=workers
            )
            for boundary, block in sets
        )
        return sum(exchange_seconds(packets, rates, workers) for packets in made)

    return sorted(WEIGHTS, key=seconds)


def exchange_seconds(packets: Packets, rates: Rates, workers: int) -> float:
    """Return the least time of a fragment of all blocks, one block after another.

    Links and loop work side by side: the longer of the busiest link and all passes counts.
    """
    edges, block = packets.edges, packets.block
    blocks = int(block.max(initial=0)) + 1
    loads = link_loads(edges, block, workers)
    contributions = np.bincount(block, minlength=blocks)
    passes = np.maximum(contributions / rates.additions - loads[:, :workers].sum(axis=1), 0.0)
    return float(np.maximum(loads.max(axis=1) / rates.link, passes / rates.loop).sum())


def link_loads(edges: BoundaryEdges, block: Int32s, workers: int) -> Int64s:
    """Count the packets of each block, from 0, on each link: int64[B, 2W], up and then down."""
    shape = int(block.max(initial=0)) + 1, workers
    loads = []
    for row, worker in (
        (edges.source, edges.source_worker),
        (edges.destination, edges.destination_worker),
    ):
        of_block, rows = distinct_pairs(block, row)
        link = of_block.astype(np.int64) * workers + holders(row, worker)[rows]
        loads.append(np.bincount(link, minlength=shape[0] * workers).reshape(shape))
    return np.concatenate(loads, axis=1)
