# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What an exchange puts on a worker's link when nothing is lost."""

import numpy as np

from switchgnn.host.wire.header import (
    BARRIER_FRAME_BYTES,
    BODY_AT,
    feature_frame_bytes,
)
from switchgnn.host.wire.link import Traffic
from switchgnn.planner.lanes import fragment_lanes
from switchgnn.planner.plan.plan import WorkerPart


def expected_traffic(
    part: WorkerPart, blocks: range, width: int, group_size: int, *, lanes: int
) -> Traffic:
    """Count the frames of one exchange, from the plan alone.

    Up: the features and partial sums, and one DONE per barrier. Down: the sums, one ACK per group
    of features, and one ADVANCE per barrier. There is a barrier at the opening, and one behind each
    fragment of each block, or one behind the opening where there is no block.

    Args:
        part: this worker's part of the plan.
        blocks: numbers of the blocks of the direction.
        width: elements of a feature.
        group_size: features that are acknowledged together.
        lanes: of the widest frame.

    Returns:
        Frames and bytes of this worker, up and down.
    """
    widths = fragment_lanes(width, lanes)
    fragments = len(widths)
    bytes_of_row = sum(map(feature_frame_bytes, widths))
    inside = slice(blocks.start - 1, blocks.stop - 1)
    sent = np.diff(part.send_indptr)[inside]
    features = int(sent.sum())
    acks = fragments * int((-(-sent // group_size)).sum())
    sums = int(np.diff(part.receive_indptr)[inside].sum())
    barriers = 1 + max(fragments * len(blocks), 1)
    barrier_bytes = barriers * BARRIER_FRAME_BYTES
    return Traffic(
        frames_up=fragments * features + barriers,
        bytes_up=features * bytes_of_row + barrier_bytes,
        frames_down=fragments * sums + acks + barriers,
        bytes_down=sums * bytes_of_row + acks * BODY_AT + barrier_bytes,
    )
