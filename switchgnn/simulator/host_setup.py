# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Host-based exchange as the arrays of a simulation: copies (BNS-GCN, p = 1) or partial sums."""

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.direct.frames import GROUP, send_order
from switchgnn.host.direct.kinds import copies
from switchgnn.host.direct.outbox import asking_frames
from switchgnn.host.direct.schedule import EdgeChoice, PairRows, count_rows
from switchgnn.host.pace import Pace
from switchgnn.planner.arrays import indptr_of, sort_by_keys
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.plan.manifest import DirectionRecord
from switchgnn.planner.plan.plan import Plan, WorkerPart
from switchgnn.simulator.exchange_setup import Setup
from switchgnn.simulator.packing import Mtu, packing_of


def host_setup(rows: NDArray[np.int64], features: int, pace: Pace, mtu: Mtu) -> Setup:
    """Return what one exchange takes when hosts send rows to each other, in the order of `host`.

    Args:
        rows: int64[W, W], the rows that travel from worker a to worker b.
        features: numbers of a row.
        pace: how many frames are acknowledged together.
        mtu: bytes of the largest IP packet, or FRAGMENT.

    Returns:
        The arrays, and the numbers that go with them.

    Raises:
        SimulatorError: packets of that size cannot be.
    """
    workers = len(rows)
    packing = packing_of(features, mtu)
    frames, last = packing.frames(rows), packing.last_frame_bytes(rows)
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
        "frame_indptr": indptr_of(np.array(sizes)).astype(np.uint64),
        "frame_to": np.concatenate(receivers),
        "frame_confirms": np.concatenate(confirms),
        "frame_bytes": np.concatenate(lengths),
        "awaited": frames.sum(axis=0).astype(np.uint64),
    }
    size = packing.frame_bytes
    return Setup(workers, True, arrays, data_frame_bytes=size, packed_frame_bytes=size)


def rows_of_plan(
    plan: Plan, choose: EdgeChoice, direction: Direction = Direction.FORWARD
) -> PairRows:
    """Count the rows between hosts on the partition of a plan, from what its workers sum.

    Args:
        plan: the plan.
        choose: copies or partial sums, as ``direct_schedules`` takes it.
        direction: of the exchange.

    Returns:
        The rows of each pair of workers.
    """
    record, workers = plan.manifest.direction(direction), plan.manifest.workers
    each = [count_rows(_edges_into(part, record), workers, choose) for part in plan.workers]
    rows: NDArray[np.int64] = np.sum([found.rows for found in each], axis=0)
    return PairRows(rows, sum(found.sums for found in each))


def copies_of_edges(boundary: BoundaryEdges, workers: int) -> NDArray[np.int64]:
    """Count a copy of each source for each other worker that needs it, int64[W, W]."""
    return count_rows(boundary, workers, copies).rows


def copies_of_plan(plan: Plan, direction: Direction = Direction.FORWARD) -> NDArray[np.int64]:
    """Count the same for the partition of a plan."""
    return rows_of_plan(plan, copies, direction).rows


def _edges_into(part: WorkerPart, record: DirectionRecord) -> BoundaryEdges:
    """Return the boundary edges to the vertices of a worker."""
    first, last = part.receive_indptr[[record.first_block - 1, record.last_block]].tolist()
    low, high = part.neighbour_indptr[[first, last]].tolist()
    sizes = np.diff(part.neighbour_indptr[first : last + 1])
    source = part.neighbour_vertex[low:high].astype(np.int32)
    destination = np.repeat(part.receive_vertex[first:last], sizes).astype(np.int32)
    order = sort_by_keys(destination, source)
    return BoundaryEdges(
        source=source[order],
        destination=destination[order],
        source_worker=part.neighbour_worker[low:high][order].astype(np.uint8),
        destination_worker=np.full(len(source), part.worker, dtype=np.uint8),
    )


def _confirmed(number: NDArray[np.int64], asking: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """How many frames the ACK of each asking frame confirms: those since the last of its group.

    The frames of a group leave one behind another, and nothing is lost.
    """
    place = np.arange(len(number))
    before = np.maximum.accumulate(np.where(asking, place, -1))
    last_asked = np.append(-1, before)[:-1]
    since = np.minimum(place - last_asked, number % GROUP + 1)
    return np.where(asking, since, 0).astype(np.uint8)
