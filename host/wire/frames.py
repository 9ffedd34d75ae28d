# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The hot path: FEATURE frames of a whole block, packed as one matrix.

Row i is the i-th frame of the block, ready to be sent. What does not change
from one fragment to the next is written once; what does is written by column.
"""

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.batches import FrameRows
from switchgnn.host.wire.checksums import write_checksums
from switchgnn.host.wire.header import (
    BODY_AT,
    FEATURE_FRAME_BYTES,
    FRAGMENT_BYTES,
    HEADER_AT,
    HEADER_BYTES,
    VERSION,
    Kind,
    session_and_round,
)

_SRC_ID = HEADER_AT
_DST_ID = HEADER_AT + 4
_BLOCK_ID = HEADER_AT + 8
_COUNT = HEADER_AT + 10
_KIND = HEADER_AT + 12
_ECHO = HEADER_AT + 13
_FRAGMENT = HEADER_AT + 14
_GROUP = HEADER_AT + 16
_ROUND = HEADER_AT + 18


class FeatureFrames:
    """The FEATURE frames of one worker in one block.

    Args:
        addresses: addresses for the envelope.
        block_id: the block's number, from 1.
        sources: uint32[S], Src_id of each frame in send order.
        group_size: features that the switch acknowledges together.
        count: rows that each frame adds up, uint16[S] or one number for all.
        destinations: Dst_id of each frame, uint32[S] or one number for all: the vertex that a
            partial sum is for, otherwise 0.
        session: the number of the install.
    """

    def __init__(
        self,
        addresses: Addresses,
        block_id: int,
        sources: NDArray[np.uint32],
        group_size: int,
        count: NDArray[np.integer] | int = 1,
        *,
        destinations: NDArray[np.uint32] | int = 0,
        session: int,
    ) -> None:
        size = len(sources)
        self._session = session
        self._frames = np.zeros((size, FEATURE_FRAME_BYTES), dtype=np.uint8)
        envelope = addresses.envelope(HEADER_BYTES + FRAGMENT_BYTES)
        self._frames[:, :HEADER_AT] = np.frombuffer(envelope, dtype=np.uint8)
        self._write(_SRC_ID, sources.astype(">u4"))
        self._write(_DST_ID, np.full(size, destinations, dtype=">u4"))
        self._write(_BLOCK_ID, np.full(size, block_id, dtype=">u2"))
        self._write(_COUNT, np.full(size, count, dtype=">u2"))
        self._frames[:, _KIND] = Kind.FEATURE
        self._write(_GROUP, (np.arange(size) // group_size).astype(">u2"))
        echoes = np.zeros(size, dtype=np.bool_)
        echoes[group_size - 1 :: group_size] = True
        echoes[-1:] = True
        self._frames[:, _ECHO] = VERSION << 4 | echoes
        self.rows = FrameRows(self._frames)

    def fill(self, round_number: int, fragment: int, lanes: NDArray[np.int32]) -> None:
        """Write round, fragment, payloads and checksums.

        Args:
            round_number: the round, from 1.
            fragment: the fragment's number, from 0.
            lanes: int32[S, 32], the slice of each source's fixed-point feature or sum.
        """
        size = self.rows.count
        self._write(_FRAGMENT, np.full(size, fragment, dtype=">u2"))
        self._write(
            _ROUND, np.full(size, session_and_round(self._session, round_number), dtype=">u4")
        )
        self._write(BODY_AT, np.ascontiguousarray(lanes, dtype=">i4"))
        write_checksums(self._frames)

    def _write(self, at: int, values: NDArray[np.generic]) -> None:
        width = values.itemsize * (values.shape[1] if values.ndim == 2 else 1)
        self._frames[:, at : at + width] = values.view(np.uint8).reshape(len(values), width)
