# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Frames that a worker may send to pass for a leaf, a spine, or a worker elsewhere."""

from collections.abc import Sequence

from switchgnn.host.wire.header import KIND_AT, Kind
from switchgnn.lab.virtual.network import EXTENSION_AT, seal, write_header
from tests.fuzz.frames import Generator
from tests.fuzz.world import World

_LEVEL_BITS = 0b1110


class LeafSpineGenerator(Generator):
    """Also draws frames that only switches send each other."""

    def __init__(
        self,
        world: World,
        seed: int,
        *,
        partial_sums: Sequence[tuple[int, int, int]],
        workers: int,
        source: str,
        target: str,
        shortest: int = 0,
        longest: int,
    ) -> None:
        super().__init__(
            world, seed, source=source, target=target, shortest=shortest, longest=longest
        )
        self._partial_sums = partial_sums
        self._workers = workers

    def packet(self, kind: int | None = None) -> bytearray:
        """Draw a sound packet; half of them look as if other switches had forwarded them."""
        frame = super().packet(kind)
        draw = self.random
        kind = frame[KIND_AT] & 0xF
        if kind == Kind.FEATURE and draw.random() < 0.4:
            block, source, count = draw.choice(self._partial_sums)
            write_header(frame, src_id=source, dst_id=0, block_id=block, count=count)
        elif kind == Kind.NOTICE and draw.random() < 0.8:
            write_header(frame, src_id=draw.randrange(self._workers))
        if draw.random() < 0.5:
            level = draw.choice((1, 1, 2, 7))
            frame[EXTENSION_AT] = frame[EXTENSION_AT] & ~_LEVEL_BITS | level << 1
        seal(frame)
        return frame
