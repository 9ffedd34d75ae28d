# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Takes the sums that are plainly right out of what arrives, before anybody looks at it.

Most frames bring a sum that is whole, complete and awaited. Putting it into its place follows
from the rules of ``receiver.py`` and changes nothing else, so native code may do it for many
frames at a time. Whatever is not plainly right is left to those rules.
"""

from collections.abc import Sequence

import numpy as np

from switchgnn.host.innetwork.schedule import BlockSchedule
from switchgnn.host.wire.batches import FrameBatch
from switchgnn.host.wire.native.library import native_frames
from switchgnn.host.wire.native.sums import Sifted, SumSieve


def sieves(schedules: Sequence[BlockSchedule]) -> tuple[SumSieve | None, ...]:
    """Return a sieve for each block; None where there is no native code."""
    frames = native_frames()
    if frames is None:
        return (None,) * len(schedules)
    return tuple(
        SumSieve(frames, each.receive_vertex, np.array(each.receive_count, dtype=np.uint32))
        for each in schedules
    )


def sift(sieve: SumSieve | None, batch: FrameBatch) -> Sifted:
    """Take what can be taken of a batch; without a sieve all of it is left."""
    return sieve.sift(batch) if sieve else Sifted(0, (), range(batch.first, batch.count))
