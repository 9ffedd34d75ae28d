# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Host-based exchange as the arrays of a simulation: copies (BNS-GCN, p = 1) or partial sums."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.direct.frames import GROUP, send_order
from switchgnn.host.direct.outbox import asking_frames
from switchgnn.host.direct.schedule import EdgeChoice, PairRows, count_rows
from switchgnn.host.pace import Pace
from switchgnn.host.wire.header import (
    BODY_AT,
    ETHERNET_BYTES,
    FEATURE_FRAME_BYTES,
    FRAGMENT_BYTES,
    LANES,
    fragments_of,
)
from switchgnn.lab.simulator.errors import SimulatorError
from switchgnn.planner.arrays import indptr_of, sort_by_keys
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.lanes import frame_bytes
from switchgnn.planner.plan.plan import Plan


@dataclass(frozen=True, eq=False)
class Setup:
    """One exchange of all workers.

    Attributes:
        host_based: hosts send rows to each other, and the switch only hands them on.
        arrays: as `models/schedule.h` and `models/simulation.cc` read them.
        blocks: that are exchanged one after another.
        fragments: of a feature, exchanged one after another; 1 if `host_based`, whose frames are
            listed one by one.
        pools: the slots of each pool of the strawman; none where each sum has its slot.
        together: fragments of a feature that are exchanged together, as a slot holds them all.
        data_frame_bytes: of the longest frame of features or sums that there may be.
        lanes: numbers in the frames of each fragment of a feature; empty: 32 in all of them.
        packed_frame_bytes: of a full frame between hosts; 0 where they send each other none.
    """

    workers: int
    host_based: bool
    arrays: Mapping[str, NDArray[Any]]
    blocks: int = 1
    fragments: int = 1
    pools: tuple[int, ...] = field(default=())
    together: int = 1
    data_frame_bytes: int = FEATURE_FRAME_BYTES
    lanes: tuple[int, ...] = ()
    packed_frame_bytes: int = 0

    @property
    def mixed(self) -> bool:
        """Whether hosts send rows to each other next to what the switch adds up."""
        return not self.host_based and self.packed_frame_bytes > 0

    @property
    def fragment_bytes(self) -> tuple[int, ...]:
        """Return the bytes of the frames of each fragment of a feature, for the switch's sums."""
        return tuple(map(frame_bytes, self.lanes or (LANES,) * self.fragments_of_feature))

    @property
    def fragments_of_feature(self) -> int:
        """Return all fragments of a feature, however they travel."""
        return self.fragments * self.together


# In place of a number: a fragment of one row in each frame, padded, as the switch needs it.
FRAGMENT: Literal["fragment"] = "fragment"
Mtu = int | Literal["fragment"]
ETHERNET_MTU = 1_500
# Room for one number, and frames of 9,216 bytes: the most that switches commonly take.
_LEAST, _MOST = 50, 9_202
_NUMBER_BYTES = 4


@dataclass(frozen=True)
class Packing:
    """How the rows of one worker for another one travel.

    They are one run of bytes, which is cut into frames of the same size; the last one is shorter.

    Attributes:
        row_bytes: of a row in that run.
        payload_bytes: of the run in a full frame.
    """

    row_bytes: int
    payload_bytes: int

    @property
    def frame_bytes(self) -> int:
        """Return the bytes of a full frame with its headers."""
        return BODY_AT + self.payload_bytes

    def frames(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many frames that number of rows takes, int64 of the same shape."""
        return -(-rows * self.row_bytes // self.payload_bytes)

    def last_frame_bytes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bytes of the last of these frames, int64 of the same shape."""
        before = (self.frames(rows) - 1) * self.payload_bytes
        return BODY_AT + rows * self.row_bytes - before


def packing_of(features: int, mtu: Mtu) -> Packing:
    """Return how rows of that width are packed.

    Args:
        features: float32 numbers of a row.
        mtu: bytes of the largest IP packet; or FRAGMENT, for a padded fragment in each frame.
    """
    if mtu == FRAGMENT:
        return Packing(fragments_of(features) * FRAGMENT_BYTES, FRAGMENT_BYTES)
    if not _LEAST <= mtu <= _MOST:
        raise _refused(mtu)
    room = mtu + ETHERNET_BYTES - BODY_AT
    return Packing(_NUMBER_BYTES * features, room - room % _NUMBER_BYTES)


def parse_mtu(text: str) -> Mtu:
    """Parse `--mtu`.

    Raises:
        SimulatorError: it is neither a number that can be nor the word.
    """
    if text == FRAGMENT:
        return FRAGMENT
    if not (text.isdecimal() and len(text) <= len(str(_MOST))):
        raise _refused(text)
    mtu = int(text)
    packing_of(1, mtu)  # refuse a wrong one
    return mtu


def _refused(mtu: object) -> SimulatorError:
    return SimulatorError(
        f"The MTU must be from {_LEAST} to {_MOST:,} bytes, or the word {FRAGMENT}, but it is "
        f"{mtu}."
    )


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
    """Count the rows between each pair of hosts on the partition of a plan."""
    return count_rows(boundary_of_plan(plan, direction), plan.manifest.workers, choose)


def boundary_of_plan(plan: Plan, direction: Direction = Direction.FORWARD) -> BoundaryEdges:
    """Return the boundary edges that the switch of a plan serves."""
    record = plan.manifest.direction(direction)
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


def _confirmed(number: NDArray[np.int64], asking: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """How many frames the ACK of each asking frame confirms: those since the last of its group.

    The frames of a group leave one after another, and nothing is lost.
    """
    index = np.arange(len(number))
    before = np.maximum.accumulate(np.where(asking, index, -1))
    last_asked = np.append(-1, before)[:-1]
    since = np.minimum(index - last_asked, number % GROUP + 1)
    return np.where(asking, since, 0).astype(np.uint8)


def mixed_setup(
    switch: Setup, rows: NDArray[np.int64], features: int, pace: Pace, mtu: Mtu
) -> Setup:
    """Return what one exchange takes when hosts send rows next to what the switch adds up.

    Args:
        switch: the switch's part, as `plan_setup` returns it.
        rows: int64[W, W], the rows that travel from worker a to worker b.
        features: numbers of a row.
        pace: how many frames are acknowledged together.
        mtu: bytes of the largest IP packet between hosts, or FRAGMENT.

    Returns:
        Both parts; the hosts' part alone where the switch has no blocks, and the switch's part
        alone where no rows travel.

    Raises:
        SimulatorError: packets of that size cannot be.
    """
    hosts = host_setup(rows, features, pace, mtu)
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
