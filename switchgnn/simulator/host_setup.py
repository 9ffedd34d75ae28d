# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Host-based exchange as the arrays of a simulation: BNS-GCN with p = 1."""

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.direct.data_frames import send_order
from switchgnn.host.direct.frames import GROUP
from switchgnn.host.direct.outbox import asking_frames
from switchgnn.host.pace import Pace
from switchgnn.planner.arrays.rows import indptr_of
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.plan.plan import Plan
from switchgnn.simulator.exchange_setup import Setup
from switchgnn.simulator.packing import Mtu, packing_of


def host_setup(copies: NDArray[np.int64], features: int, pace: Pace, mtu: Mtu) -> Setup:
    """Return what one exchange takes when hosts send copies, in the order of `host`.

    Args:
        copies: int64[W, W], the rows that travel from worker a to worker b.
        features: numbers of a row.
        pace: how many frames are acknowledged together.
        mtu: bytes of the largest IP packet, or FRAGMENT.

    Returns:
        The arrays, and the numbers that go with them.

    Raises:
        SimulatorError: packets of that size cannot be.
    """
    workers = len(copies)
    packing = packing_of(features, mtu)
    frames, last = packing.frames(copies), packing.last_frame_bytes(copies)
    receivers, confirms, lengths, sizes = [], [], [], []
    for worker in range(workers):
        indptr = indptr_of(frames[worker])
        order = send_order(worker, indptr, np.arange(int(indptr[-1])))
        receivers.append(order.peer.astype(np.uint8))
        confirms.append(_confirmed(order.number, asking_frames(order, pace)))
        ends = order.number + 1 == frames[worker][order.peer]
        length = np.where(ends, last[worker][order.peer], packing.frame_bytes)
        lengths.append(length.astype(np.uint16))
        sizes.append(len(order.peer))
    arrays = {
        "send_indptr": indptr_of(np.array(sizes)).astype(np.uint64),
        "frame_to": np.concatenate(receivers),
        "frame_confirms": np.concatenate(confirms),
        "frame_bytes": np.concatenate(lengths),
        "awaited": frames.sum(axis=0).astype(np.uint64),
    }
    return Setup(workers, True, arrays, data_frame_bytes=packing.frame_bytes)


def copies_of_edges(boundary: BoundaryEdges, workers: int) -> NDArray[np.int64]:
    """Count a copy of each source for each other worker that needs it, int64[W, W]."""
    sender, receiver = boundary.host_copies()
    pairs = sender.astype(np.int64) * workers + receiver
    return np.bincount(pairs, minlength=workers * workers).reshape(workers, workers)


def copies_of_plan(plan: Plan, direction: Direction = Direction.FORWARD) -> NDArray[np.int64]:
    """Count the same, from what the workers of a plan have to sum."""
    record, workers = plan.manifest.direction(direction), plan.manifest.workers
    copies = np.zeros((workers, workers), dtype=np.int64)
    for part in plan.workers:
        sums = part.receive_indptr[[record.first_block - 1, record.last_block]]
        low, high = part.neighbour_indptr[sums].tolist()
        _, first = np.unique(part.neighbour_vertex[low:high], return_index=True)
        owners = part.neighbour_worker[low:high][first]
        copies[:, part.worker] = np.bincount(owners, minlength=workers)
    return copies


def _confirmed(number: NDArray[np.int64], asking: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """How many frames the ACK of each asking frame confirms: those since the last of its group.

    The frames of a group leave one behind another, and nothing is lost.
    """
    place = np.arange(len(number))
    before = np.maximum.accumulate(np.where(asking, place, -1))
    last_asked = np.append(-1, before)[:-1]
    since = np.minimum(place - last_asked, number % GROUP + 1)
    return np.where(asking, since, 0).astype(np.uint8)
