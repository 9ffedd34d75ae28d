# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The sieve for sums: sums.h takes what is plainly right, and Python sees the rest."""

from collections.abc import Sequence
from ctypes import Structure, addressof, c_uint32, c_void_p
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.wire.batches import FrameBatch
from switchgnn.host.wire.header import payload_bytes, session_and_round
from switchgnn.host.wire.native.library import Arrived, NativeFrames


class _SumSieve(Structure):
    _fields_ = (
        ("round", c_uint32),
        ("block", c_uint32),
        ("fragment", c_uint32),
        ("body_bytes", c_uint32),
        ("sums", c_uint32),
        ("vertices", c_void_p),
        ("places", c_void_p),
        ("counts", c_void_p),
        ("awaited", c_void_p),
        ("payloads", c_void_p),
        ("taken", c_uint32),
        ("acknowledgements", c_uint32),
        ("left", c_uint32),
        ("groups", c_void_p),
        ("accepted", c_void_p),
        ("left_frames", c_void_p),
    )


class Sifted(NamedTuple):
    """What a sieve has made of a batch.

    Attributes:
        taken: how many sums are in their places now.
        acknowledged: for each sound acknowledgement without a mark, the group and how many of its
            features the switch has.
        left: the frames that somebody has to look at.
    """

    taken: int
    acknowledged: Sequence[tuple[int, int]]
    left: Sequence[int]


class SumSieve:
    """Takes the sums of a block out of batches.

    Args:
        frames: the native code.
        vertices: uint32[Q], the vertices whose sums are awaited.
        counts: uint32[Q], the contributions each sum must have.
    """

    def __init__(
        self, frames: NativeFrames, vertices: NDArray[np.uint32], counts: NDArray[np.uint32]
    ) -> None:
        self._frames = frames
        order = np.argsort(vertices, kind="stable")
        self._places = order.astype(np.uint32)
        self._vertices = np.ascontiguousarray(vertices[order], dtype=np.uint32)
        self._counts = np.ascontiguousarray(counts[order], dtype=np.uint32)
        self._sieve = _SumSieve(
            sums=len(vertices),
            vertices=self._vertices.ctypes.data,
            places=self._places.ctypes.data,
            counts=self._counts.ctypes.data,
        )
        self._address = addressof(self._sieve)
        self._batch: FrameBatch | None = None

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
            place: the round, the block and the word of the fragment.
            awaited: uint8[Q], 1 for each sum that may be taken; 0 as soon as it was.
            payloads: uint8[Q · 4 W], where they go.
        """
        round_number, block, fragment = place
        self._sieve.round = session_and_round(session, round_number)
        self._sieve.block, self._sieve.fragment = block, fragment
        self._sieve.body_bytes = payload_bytes(fragment)
        self._awaited, self._payloads = awaited, payloads
        self._sieve.awaited = awaited.ctypes.data
        self._sieve.payloads = payloads.ctypes.data

    def sift(self, batch: FrameBatch) -> Sifted:
        """Take what can be taken of a batch."""
        if batch is not self._batch:
            self._get_ready(batch)
        sieve = self._sieve
        self._frames.sift_sums(self._address, self._arrived, batch.first, batch.count)
        number = sieve.acknowledgements
        acknowledged = (
            list(zip(self._groups[:number].tolist(), self._accepted[:number].tolist(), strict=True))
            if number
            else ()
        )
        return Sifted(
            sieve.taken, acknowledged, self._left[: sieve.left].tolist() if sieve.left else ()
        )

    def _get_ready(self, batch: FrameBatch) -> None:
        """Make room for what a batch can bring; links use the same one again and again."""
        self._batch = batch
        self._where = Arrived.of(batch)
        self._arrived = addressof(self._where)
        size = len(batch.sizes)
        self._groups, self._accepted, self._left = np.zeros((3, size), dtype=np.uint32)
        self._sieve.groups = self._groups.ctypes.data
        self._sieve.accepted = self._accepted.ctypes.data
        self._sieve.left_frames = self._left.ctypes.data
