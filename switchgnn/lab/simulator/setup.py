"""Host-based exchange as the arrays of a simulation: copies (BNS-GCN, p = 1) or partial sums."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Bools, Int64s, UInt8s
from switchgnn.host.direct.frames import GROUP, send_order
from switchgnn.host.direct.framing import Framing
from switchgnn.host.direct.outbox import asking_frames
from switchgnn.host.pace import Pace
from switchgnn.host.wire.header import BODY_AT, FEATURE_FRAME_BYTES, LANES
from switchgnn.planner import BoundaryEdges, Direction, Plan
from switchgnn.planner.arrays import indptr_of, sort_by_keys
from switchgnn.planner.lanes import frame_bytes


@dataclass(frozen=True, eq=False)
class Setup:
    """One exchange of all workers."""

    workers: int
    host_based: bool  # hosts send rows to each other, and the switch only hands them on
    # as `models/schedule.h` and `models/simulation.cc` read them
    arrays: Mapping[str, NDArray[Any]]
    blocks: int = 1  # that are exchanged one after another
    # of a feature, exchanged one after another; 1 if `host_based`, whose frames are listed one by
    # one
    fragments: int = 1
    # the slots of each bank of the strawman; none where each sum has its slot
    bank_slots: tuple[int, ...] = ()
    # fragments of a feature that are exchanged together, as a slot holds them all
    together: int = 1
    # of the longest frame of features or sums that there may be
    data_frame_bytes: int = FEATURE_FRAME_BYTES
    # numbers in the frames of each fragment of a feature; empty: 32 in all of them
    lanes: tuple[int, ...] = ()
    packed_frame_bytes: int = 0  # of a full frame between hosts; 0 where they send each other none
    pools: int = 1  # units, fragments of blocks, in flight at once
    rows: int = 1  # of a frame to or from the switch

    @property
    def mixed(self) -> bool:
        """Whether hosts send rows to each other next to what the switch adds up."""
        return not self.host_based and self.packed_frame_bytes > 0

    @property
    def fragment_bytes(self) -> tuple[int, ...]:
        """Return the bytes of the frames of each fragment of a feature to the switch."""
        lanes = self.lanes or (LANES,) * self.fragments_of_feature
        return tuple(frame_bytes(each, self.rows) for each in lanes)

    @property
    def fragments_of_feature(self) -> int:
        """Return all fragments of a feature, however they travel."""
        return self.fragments * self.together


def host_setup(rows: Int64s, features: int, pace: Pace, framing: Framing) -> Setup:
    """Return what one exchange takes when hosts send rows to each other, in the order of `host`.

    Args:
        rows: int64[W, W], the rows that travel from worker a to worker b.
        features: numbers of a row.
        pace: how many frames are acknowledged together.
        framing: of the rows.

    Returns:
        The arrays, and the numbers that go with them.
    """
    workers, full = len(rows), BODY_AT + framing.payload_bytes
    frames = framing.frames(rows, features)
    last = framing.frame_bytes(rows, features) - (frames - 1) * full
    receivers, confirms, lengths, sizes = [], [], [], []
    for worker in range(workers):
        indptr = indptr_of(frames[worker])
        order = send_order(worker, indptr, np.arange(int(indptr[-1])))
        receivers.append(order.peer.astype(np.uint8))
        confirms.append(_confirmed(order.number, asking_frames(order, pace)))
        ends = order.number + 1 == frames[worker][order.peer]
        length = np.where(ends, last[worker][order.peer], full)
        lengths.append(length.astype(np.uint16))
        sizes.append(len(order.peer))
    arrays = {
        "frame_indptr": indptr_of(np.array(sizes)).astype(np.uint64),
        "frame_to": np.concatenate(receivers),
        "frame_confirms": np.concatenate(confirms),
        "frame_bytes": np.concatenate(lengths),
        "awaited": frames.sum(axis=0).astype(np.uint64),
    }
    return Setup(workers, True, arrays, data_frame_bytes=full, packed_frame_bytes=full)


def boundary_of_plan(plan: Plan) -> BoundaryEdges:
    """Return the boundary edges that the switch of a plan serves."""
    record = plan.manifest.direction(Direction.FORWARD)
    sources, destinations, senders, receivers = [], [], [], []
    for part in plan.workers:
        first, last = part.receive_indptr[[record.first_block - 1, record.last_block]].tolist()
        sums = slice(*part.neighbour_indptr[[first, last]].tolist())
        sizes = np.diff(part.neighbour_indptr[first : last + 1])
        sources.append(part.neighbour_vertex[sums])
        destinations.append(np.repeat(part.receive_vertex[first:last], sizes))
        senders.append(part.neighbour_worker[sums])
        receivers.append(np.full(int(sizes.sum()), part.worker))
    source, destination = (
        np.concatenate(each).astype(np.int32) for each in (sources, destinations)
    )
    sender, receiver = (np.concatenate(each).astype(np.uint8) for each in (senders, receivers))
    order = sort_by_keys(destination, source)
    return BoundaryEdges(source[order], destination[order], sender[order], receiver[order])


def _confirmed(number: Int64s, asking: Bools) -> UInt8s:
    """How many frames the ACK of each asking frame confirms: those since the last of its group.

    The frames of a group leave one after another, and nothing is lost.
    """
    index = np.arange(len(number))
    before = np.maximum.accumulate(np.where(asking, index, -1))
    last_asked = np.append(-1, before)[:-1]
    since = np.minimum(index - last_asked, number % GROUP + 1)
    return np.where(asking, since, 0).astype(np.uint8)


def mixed_setup(switch: Setup, rows: Int64s, features: int, pace: Pace, framing: Framing) -> Setup:
    """Return what one exchange takes when hosts send rows next to what the switch adds up.

    Args:
        switch: the switch's part, as `plan_setup` returns it.
        rows: int64[W, W], the rows that travel from worker a to worker b.
        features: numbers of a row.
        pace: how many frames are acknowledged together.
        framing: of the rows.

    Returns:
        Both parts, or one alone where the switch has no blocks, or where no rows travel.
    """
    hosts = host_setup(rows, features, pace, framing)
    if not switch.blocks:
        return hosts
    if not rows.any():
        return switch
    return replace(
        switch,
        arrays={**switch.arrays, **hosts.arrays},
        data_frame_bytes=max(switch.data_frame_bytes, hosts.data_frame_bytes),
        packed_frame_bytes=hosts.packed_frame_bytes,
    )


# Of G3's comparison with other full-graph systems (section 7).
BIN_SIZE = 5_000


def bins_of(vertices: int, size: int) -> int:
    """Return how many bins of that size the vertices fill."""
    return -(-vertices // size)


def overlapped_seconds(compute: float, communication: float, bins: int) -> float:
    """Return what a layer, or an epoch of layers that are alike, takes less with bins.

    A pipeline of two stages: each bin takes the same share of both times, is computed after the
    bin before it, and sent when it has been computed and the one before it has been sent. With B
    bins that takes (c + s + (B - 1) max(c, s)) / B, or c + s less what is returned.

    Args:
        compute: c, seconds.
        communication: s, seconds.
        bins: B; 0: there are none.

    Returns:
        Seconds.
    """
    return min(compute, communication) * (bins - 1) / bins if bins else 0.0
