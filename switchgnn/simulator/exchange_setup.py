# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a simulation is given: arrays, and the numbers that go with them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from switchgnn.host.wire.header import FEATURE_FRAME_BYTES, LANES
from switchgnn.planner.lanes import frame_bytes


@dataclass(frozen=True, eq=False)
class Setup:
    """One exchange of all workers.

    Attributes:
        workers: their number.
        host_based: hosts send rows to each other, and the switch only hands them on.
        arrays: as `models/schedule.h` and `models/peer.h` read them.
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
