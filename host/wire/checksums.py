# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The checksums of frames that are to leave, many at a time."""

import zlib

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.wire.header import BODY_AT, CHECKED_BYTES, HEADER_AT
from switchgnn.host.wire.native import native_frames

_CHECKSUM_AT = HEADER_AT + CHECKED_BYTES


def write_checksums(frames: NDArray[np.uint8], sizes: NDArray[np.uint32] | None = None) -> None:
    """Write the checksum of each frame over its header and its whole body.

    `frames`: uint8[S, L], contiguous, whole frames but for their checksums. `sizes`: uint32[S], how
    long each is; None: all have L bytes.
    """
    native = native_frames()
    count, room = frames.shape
    if native is not None:
        ends = None if sizes is None else sizes.ctypes.data
        native.write_checksums(frames.ctypes.data, room, count, ends)
        return
    lengths = [room] * count if sizes is None else sizes.tolist()
    found = (_checksum(row[:end].data) for row, end in zip(frames, lengths, strict=True))
    values = np.fromiter(found, dtype=">u4", count=count)
    frames[:, _CHECKSUM_AT:BODY_AT] = values.view(np.uint8).reshape(-1, 4)


def _checksum(frame: memoryview) -> int:
    return zlib.crc32(frame[BODY_AT:], zlib.crc32(frame[HEADER_AT:_CHECKSUM_AT]))
