# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a plan costs between leaves and spines, beside what others would cost: numbers only."""

from dataclasses import dataclass

import numpy as np

from switchgnn.planner.costs.report import HOST, ONCE, PLAN, Frames
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.partition.leaf_crossings import crossing_copies, crossing_sums
from switchgnn.planner.plan.leaf_spine import LeafSpinePart, LeafSpineParts
from switchgnn.planner.plan.manifest import DirectionRecord
from switchgnn.planner.plan.predict_leaf_spine import predict_leaf_spine

# The row of leaves that pass everything on, so that spines alone add.
SINGLE = "single"


@dataclass(frozen=True)
class LeafSpineLoad:
    """What all links between leaves and spines carry together.

    Attributes:
        packets_up, packets_down: of data, per fragment.
        bytes_up, bytes_down: of an exchange of features, headers included.
    """

    packets_up: int
    packets_down: int
    bytes_up: int
    bytes_down: int


@dataclass(frozen=True)
class LeafSpineDirection:
    """One direction of a plan.

    Attributes:
        ways: by name: `plan`; `host`, host-based exchange between leaves; `single`, leaves
            that pass everything on; `once`, one partial sum for each destination and leaf that
            contributes, and one sum for each destination.
        packets_max: the most that one link carries one way, per fragment.
        control_bytes: of barriers, up and down together.
        control_share: those, as a share of all bytes of the plan.
        leaf_slots: the most slots of each leaf that a block uses.
        spine_slots: the same of each spine.
    """

    ways: dict[str, LeafSpineLoad]
    packets_max: int
    control_bytes: int
    control_share: float
    leaf_slots: tuple[int, ...]
    spine_slots: tuple[int, ...]


def report_leaf_spine_direction(
    parts: LeafSpineParts,
    record: DirectionRecord,
    boundary: BoundaryEdges,
    frames: Frames,
    barrier_bytes: int,
) -> LeafSpineDirection:
    """Count one direction of a plan on a leaf-spine.

    Args:
        parts: the parts of the switches.
        record: the direction.
        boundary: its edges.
        frames: what a packet weighs.
        barrier_bytes: of the frame of a barrier.

    Returns:
        The plan beside other ways, and the slots in use.
    """
    said, leaf_spine = predict_leaf_spine(parts, record), parts.leaf_spine
    copies = crossing_copies(boundary, leaf_spine)
    packets = {
        PLAN: (sum(map(sum, said.partial_sums)), sum(map(sum, said.sums))),
        ONCE: crossing_sums(boundary, leaf_spine),
        SINGLE: (sum(record.prediction.packets_up), sum(record.prediction.packets_down)),
        HOST: (copies, copies),
    }
    ways = {name: _load(up, down, frames) for name, (up, down) in packets.items()}
    # Each leaf reports each fragment of a block once, and the scale; the spine answers each.
    meetings = 1 + len(record.block_numbers) * frames.fragments
    control = 2 * meetings * leaf_spine.leaves * barrier_bytes
    data = ways[PLAN].bytes_up + ways[PLAN].bytes_down
    return LeafSpineDirection(
        ways=ways,
        packets_max=max(max(row) for row in (*said.partial_sums, *said.sums)),
        control_bytes=control,
        control_share=control / (control + data),
        leaf_slots=tuple(_slots_used(leaf, record) for leaf in parts.leaves),
        spine_slots=tuple(_slots_used(spine, record) for spine in parts.spines),
    )


def _load(up: int, down: int, frames: Frames) -> LeafSpineLoad:
    weight = frames.feature_bytes
    return LeafSpineLoad(up, down, up * weight, down * weight)


def _slots_used(part: LeafSpinePart, record: DirectionRecord) -> int:
    """Return the sums that a switch makes in the fullest block of a direction."""
    counts = np.bincount(part.switch.result_block, minlength=record.last_block + 1)
    return int(counts[record.first_block : record.last_block + 1].max(initial=0))
