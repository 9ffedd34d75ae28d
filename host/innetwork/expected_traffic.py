# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What an exchange puts on a worker's link when nothing is lost."""

import numpy as np

from switchgnn.host.wire.header import (
    BARRIER_FRAME_BYTES,
    BODY_AT,
    FEATURE_FRAME_BYTES,
    fragments_of,
)
from switchgnn.host.wire.link import Traffic
from switchgnn.planner.plan.plan import WorkerPart


def expected_traffic(part: WorkerPart, blocks: range, width: int, group_size: int) -> Traffic:
    """Count the frames of one exchange, from the plan alone.

    Up: the features and partial sums, and one DONE per barrier. Down: the sums, one ACK per group
    of features, and one ADVANCE per barrier. There is a barrier at the opening, and one behind each
    fragment of each block, or one behind the opening where there is no block.

    Args:
        part: this worker's part of the plan.
        blocks: numbers of the blocks of the direction.
        width: elements of a feature.
        group_size: features that are acknowledged together.

    Returns:
        Frames and bytes of this worker, up and down.
    """
    fragments = fragments_of(width)
    inside = slice(blocks.start - 1, blocks.stop - 1)
    sent = np.diff(part.send_indptr)[inside]
    features = fragments * int(sent.sum())
    acks = fragments * int((-(-sent // group_size)).sum())
    sums = fragments * int(np.diff(part.receive_indptr)[inside].sum())
    barriers = 1 + max(fragments * len(blocks), 1)
    barrier_bytes = barriers * BARRIER_FRAME_BYTES
    return Traffic(
        frames_up=features + barriers,
        bytes_up=features * FEATURE_FRAME_BYTES + barrier_bytes,
        frames_down=sums + acks + barriers,
        bytes_down=sums * FEATURE_FRAME_BYTES + acks * BODY_AT + barrier_bytes,
    )
