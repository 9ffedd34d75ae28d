# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The strawman of section 2.3.2 played through: slots to whom comes first."""

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.boundary import BoundaryEdges
from switchgnn.planner.bounds import Packets

# Contributions are played one by one, a few million per second.
MOST_CONTRIBUTIONS = 20_000_000


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


def simulate_pool(boundary: BoundaryEdges, slots: int, workers: int, seed: int) -> Pool | None:
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
        None beyond MOST_CONTRIBUTIONS.
    """
    if len(boundary) > MOST_CONTRIBUTIONS:
        return None
    destinations, place = np.unique(boundary.destination, return_inverse=True)
    arrival = _arrivals(boundary, seed)
    order = place[arrival].astype(np.int64)
    taken = _take_slots(order, len(destinations), slots)
    times = np.arange(len(order))
    # Those before the slot was taken have overflowed; without a slot all have.
    early = times < taken[order]
    worker = boundary.destination_worker[arrival]
    sums = taken < len(order)
    owner = np.empty(len(destinations), dtype=np.int64)
    owner[order] = worker
    down = np.bincount(worker[early], minlength=workers)
    down += np.bincount(owner[sums], minlength=workers)
    _, first = np.unique(boundary.source, return_index=True)
    up = np.bincount(boundary.source_worker[first], minlength=workers)
    return Pool(Packets(up, down), int(sums.sum()), int(early.sum()))


def _arrivals(boundary: BoundaryEdges, seed: int) -> NDArray[np.int64]:
    """The edges in the order in which their contributions arrive."""
    sources, place = np.unique(boundary.source, return_inverse=True)
    turn = np.random.default_rng(seed).permutation(len(sources))
    return np.argsort(turn[place], kind="stable")


def _take_slots(order: NDArray[np.int64], destinations: int, slots: int) -> NDArray[np.int64]:
    """When each destination takes a slot: int64[destinations], len(order) for never.

    While slots are free, whoever comes takes one. While none is, time jumps to the next
    release.
    """
    end = len(order)
    last = np.zeros(destinations, dtype=np.int64)
    last[order] = np.arange(end)
    taken = np.full(destinations, end, dtype=np.int64)
    coming, leaves = order.tolist(), last.tolist()
    has_slot = [False] * destinations
    releases: list[int] = []
    free, time = slots, 0
    while time < end:
        while releases and releases[0] < time:
            heapq.heappop(releases)
            free += 1
        if not free:
            time = releases[0] + 1
            continue
        who = coming[time]
        if not has_slot[who]:
            has_slot[who] = True
            taken[who] = time
            free -= 1
            heapq.heappush(releases, leaves[who])
        time += 1
    return taken
