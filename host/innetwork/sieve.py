# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Takes the sums that are plainly right out of what arrives, before anybody looks at it.

Most frames bring a sum that is whole, complete and awaited. Putting it into its place follows
from the rules of ``receiver.py`` and changes nothing else, so native code may do it for many
frames at a time. Whatever is not plainly right is left to those rules.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.innetwork.schedule import BlockSchedule
from switchgnn.host.wire.batches import FrameBatch
from switchgnn.host.wire.native.library import native_frames
from switchgnn.host.wire.native.sums import Sifted, SumSieve


class Sieve(Protocol):
    """Looks at batches of one block first."""

    def open(
        self,
        session: int,
        place: tuple[int, int, int],
        awaited: NDArray[np.uint8],
        payloads: NDArray[np.uint8],
    ) -> None:
        """Begin with a fragment.

        Args:
            session: what the frames must carry.
            place: the round, the block and the fragment.
            awaited: uint8[Q], 1 for each sum that may be taken; 0 as soon as it was.
            payloads: uint8[Q · 128], where they go.
        """

    def sift(self, batch: FrameBatch) -> Sifted:
        """Take what can be taken of a batch."""


class WideSieve:
    """Lets everything through."""

    def open(
        self,
        session: int,
        place: tuple[int, int, int],
        awaited: NDArray[np.uint8],
        payloads: NDArray[np.uint8],
    ) -> None:
        """Do nothing.

        Args:
            session: ignored, as the others are.
            place: as in ``Sieve.open``.
            awaited: as there.
            payloads: as there.
        """

    def sift(self, batch: FrameBatch) -> Sifted:
        """Leave all frames."""
        return Sifted(0, (), range(batch.first, batch.count))


def sieves(schedules: Sequence[BlockSchedule]) -> tuple[Sieve, ...]:
    """Return a sieve for each block: a native one where there is native code."""
    frames = native_frames()
    if frames is None:
        return tuple(WideSieve() for _ in schedules)
    return tuple(
        SumSieve(frames, each.receive_vertex, np.array(each.receive_count, dtype=np.uint32))
        for each in schedules
    )
