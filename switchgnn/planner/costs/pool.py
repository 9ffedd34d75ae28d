# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The strawman of section 2.3.2 played through: slots to whom comes first."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.arrays.compiled import Compiled
from switchgnn.planner.arrays.rows import indptr_of_keys, number_ids
from switchgnn.planner.costs.bounds import Packets
from switchgnn.planner.graphs.boundary import BoundaryEdges, holders


@dataclass(frozen=True, eq=False)
class Pool:
    """One exchange with the strawman, per fragment.

    Attributes:
        packets: sources up; sums and overflowed contributions down.
        sums: those that had a slot.
        overflowed: contributions that found no slot free and went on as they came.
    """

    packets: Packets
    sums: int
    overflowed: int


def simulate_pool(boundary: BoundaryEdges, slots: int, workers: int, seed: int) -> Pool:
    """Play one exchange: all sources in a random order, destinations compete for the slots.

    A source's contributions arrive together, by ascending destination. The first
    contribution to a destination that finds a slot free takes it; from then on all are added;
    with the last one the sum leaves and the slot is free. A contribution without a slot goes
    to the worker of its destination. The switch of the product has a pool for each bank; here
    is one for all, so this one overflows a little less.

    Args:
        boundary: the boundary edges.
        slots: of the whole switch.
        workers: their number.
        seed: of the order.

    Returns:
        The packets, and how many contributions found no slot.
    """
    sources, source = number_ids(boundary.source)
    destinations, destination = number_ids(boundary.destination)
    holder = holders(destination, boundary.destination_worker)
    sender = holders(source, boundary.source_worker)
    fan_in = np.bincount(destination, minlength=len(destinations)).astype(np.int64)
    sums, overflowed = _play(
        arrival_order(len(sources), seed),
        indptr_of_keys(source, len(sources)),
        destination,
        fan_in,
        slots,
    )
    down = np.bincount(holder, weights=sums + overflowed, minlength=workers).astype(np.int64)
    up = np.bincount(sender, minlength=workers)
    return Pool(Packets(up, down), int(sums.sum()), int(overflowed.sum()))


def arrival_order(sources: int, seed: int) -> NDArray[np.int64]:
    """Return the sources, numbered by their ids, in the order in which they arrive: int64[N]."""
    return np.random.default_rng(seed).permutation(sources)


@Compiled
def _play(
    order: NDArray[np.int64],
    indptr: NDArray[np.int64],
    destination: NDArray[np.int32],
    fan_in: NDArray[np.int64],
    slots: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each destination the sums that leave the switch, 0 or 1, and what overflows.

    Args:
        order: int64[N], the sources as they arrive.
        indptr: int64[N + 1].
        destination: int32[E], those of the first source, then of the second, and so on.
        fan_in: int64[D].
        slots: how many are free.
    """
    sums = np.zeros(len(fan_in), dtype=np.int64)
    overflowed = np.zeros(len(fan_in), dtype=np.int64)
    left = fan_in.copy()
    free = slots
    for source in order:
        for at in range(indptr[source], indptr[source + 1]):
            who = destination[at]
            left[who] -= 1
            if sums[who] == 0 and free > 0:
                sums[who] = 1
                free -= 1
            if sums[who] == 0:
                overflowed[who] += 1
            elif left[who] == 0:
                free += 1
    return sums, overflowed
