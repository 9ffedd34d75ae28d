# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The sieve for rows of other workers: rows.h takes what is plainly right, Python sees the rest."""

from collections.abc import Sequence
from ctypes import Structure, addressof, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.wire.batches import FrameBatch
from switchgnn.host.wire.native.library import Arrived, NativeFrames


@dataclass(frozen=True, eq=False)
class RowArrays:
    """Where the frames of a round go; W workers, N frames, R rows.

    Attributes:
        first: uint32[W], where the frames of each worker begin.
        frames: uint32[W], how many each sends.
        begin: uint64[W + 1], where the rows of each begin in ``payloads``.
        seen: uint8[N], which frames are here.
        payloads: uint8[B], the rows of all workers.
        left_of_row: uint32[R], how many frames of each row are missing.
        whole: uint8[R], which rows are here.
    """

    first: NDArray[np.uint32]
    frames: NDArray[np.uint32]
    begin: NDArray[np.uint64]
    seen: NDArray[np.uint8]
    payloads: NDArray[np.uint8]
    left_of_row: NDArray[np.uint32]
    whole: NDArray[np.uint8]


class _RowSieve(Structure):
    _fields_ = (
        ("protocol", c_uint32),
        ("group", c_uint32),
        ("round", c_uint32),
        ("mark", c_uint32),
        ("receiver", c_uint32),
        ("workers", c_uint32),
        ("row_bytes", c_uint64),
        ("payload_bytes", c_uint64),
        ("first", c_void_p),
        ("frames", c_void_p),
        ("begin", c_void_p),
        ("seen", c_void_p),
        ("payloads", c_void_p),
        ("left_of_row", c_void_p),
        ("whole", c_void_p),
        ("taken", c_uint32),
        ("heard", c_void_p),
        ("held", c_void_p),
        ("held_count", c_uint32),
    )


class RowSieve:
    """What is plainly right in a round.

    Args:
        arrays: where it goes.
        row_bytes: of a row on the wire.
        payload_bytes: of rows in a full frame.
        receiver: this worker.
        round_number: what the frames must carry,
        mark: and that,
        protocol: and the number of the protocol.
        group: frames that are acknowledged together.

    Attributes:
        heard: uint8[W], of whom something was taken since this was set to 0.
    """

    def __init__(
        self,
        arrays: RowArrays,
        *,
        row_bytes: int,
        payload_bytes: int,
        receiver: int,
        round_number: int,
        mark: int,
        protocol: int,
        group: int,
    ) -> None:
        self._arrays = arrays
        self.heard = np.zeros(len(arrays.first), dtype=np.uint8)
        self._held = np.zeros(0, dtype=np.uint32)
        self._sieve = _RowSieve(
            protocol=protocol,
            group=group,
            round=round_number,
            mark=mark,
            receiver=receiver,
            workers=len(arrays.first),
            row_bytes=row_bytes,
            payload_bytes=payload_bytes,
            first=arrays.first.ctypes.data,
            frames=arrays.frames.ctypes.data,
            begin=arrays.begin.ctypes.data,
            seen=arrays.seen.ctypes.data,
            payloads=arrays.payloads.ctypes.data,
            left_of_row=arrays.left_of_row.ctypes.data,
            whole=arrays.whole.ctypes.data,
            heard=self.heard.ctypes.data,
        )

    @property
    def taken(self) -> int:
        """How many frames of the last batch are in their places now."""
        return int(self._sieve.taken)

    def address(self, frames: int) -> int:
        """Return where the native sieve is, which has room for a batch of that many frames."""
        if len(self._held) < frames:
            self._held = np.zeros(frames, dtype=np.uint32)
            self._sieve.held = self._held.ctypes.data
        return addressof(self._sieve)


class RowSifter:
    """Takes rows out of batches.

    Args:
        frames: the native code.
    """

    def __init__(self, frames: NativeFrames) -> None:
        self._frames = frames
        self._batch: FrameBatch | None = None

    def sift(self, batch: FrameBatch, sieves: Sequence[RowSieve]) -> Sequence[int]:
        """Take what can be taken of a batch.

        Args:
            batch: what has come.
            sieves: of the rounds that are open.

        Returns:
            The frames that somebody has to look at.
        """
        if batch is not self._batch:
            self._batch = batch
            self._where = Arrived.of(batch)
            self._arrived = addressof(self._where)
            self._left = np.zeros(len(batch.sizes), dtype=np.uint32)
            self._left_address = self._left.ctypes.data
        addresses = (c_void_p * len(sieves))(*(sieve.address(len(batch.sizes)) for sieve in sieves))
        left = self._frames.sift_rows(
            addresses, len(sieves), self._arrived, batch.first, batch.count, self._left_address
        )
        return self._left[:left].tolist() if left else ()
