# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The checksums of frames that are to leave, many at a time."""

import zlib

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.wire.header import BODY_AT, CHECKED_BYTES, HEADER_AT
from switchgnn.host.wire.native.library import native_frames

_CHECKSUM_AT = HEADER_AT + CHECKED_BYTES


def write_checksums(frames: NDArray[np.uint8]) -> None:
    """Write the checksum of each frame over its header and its whole body.

    Args:
        frames: uint8[S, L], contiguous, whole frames but for their checksums.
    """
    native = native_frames()
    if native is not None:
        native.write_checksums(frames.ctypes.data, frames.shape[1], len(frames))
        return
    values = np.fromiter((_checksum(row.data) for row in frames), dtype=">u4", count=len(frames))
    frames[:, _CHECKSUM_AT:BODY_AT] = values.view(np.uint8).reshape(-1, 4)


def _checksum(frame: memoryview) -> int:
    return zlib.crc32(frame[BODY_AT:], zlib.crc32(frame[HEADER_AT:_CHECKSUM_AT]))
