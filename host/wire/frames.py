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
    HEADER_AT,
    VERSION,
    Kind,
    feature_frame_bytes,
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
        self._addresses = addresses
        # The headers of all widths, without what changes.
        self._headers = np.zeros((size, BODY_AT), dtype=np.uint8)
        _write(self._headers, _SRC_ID, sources.astype(">u4"))
        _write(self._headers, _DST_ID, np.full(size, destinations, dtype=">u4"))
        _write(self._headers, _BLOCK_ID, np.full(size, block_id, dtype=">u2"))
        _write(self._headers, _COUNT, np.full(size, count, dtype=">u2"))
        self._headers[:, _KIND] = Kind.FEATURE
        _write(self._headers, _GROUP, (np.arange(size) // group_size).astype(">u2"))
        echoes = np.zeros(size, dtype=np.bool_)
        echoes[group_size - 1 :: group_size] = True
        echoes[-1:] = True
        self._headers[:, _ECHO] = VERSION << 4 | echoes
        self._of_width: dict[int, NDArray[np.uint8]] = {}

    @property
    def count(self) -> int:
        """The number of frames."""
        return len(self._headers)

    def fill(self, round_number: int, fragment: int, lanes: NDArray[np.int32]) -> FrameRows:
        """Write round, fragment, payloads and checksums.

        Args:
            round_number: the round, from 1.
            fragment: the fragment's word; see `fragment_words`.
            lanes: int32[S, W], the slice of each source's fixed-point feature or sum, as wide as
                the fragment is.

        Returns:
            The frames, as they are until the next call for this width.
        """
        size, width = lanes.shape
        frames = self._of_width.get(width)
        if frames is None:
            frames = self._of_width[width] = self._frames(width)
        _write(frames, _FRAGMENT, np.full(size, fragment, dtype=">u2"))
        number = session_and_round(self._session, round_number)
        _write(frames, _ROUND, np.full(size, number, dtype=">u4"))
        _write(frames, BODY_AT, np.ascontiguousarray(lanes, dtype=">i4"))
        write_checksums(frames)
        return FrameRows(frames)

    def _frames(self, width: int) -> NDArray[np.uint8]:
        """Return frames with that many numbers, still to be filled."""
        frames = np.zeros((self.count, feature_frame_bytes(width)), dtype=np.uint8)
        frames[:, :BODY_AT] = self._headers
        envelope = self._addresses.envelope(feature_frame_bytes(width) - HEADER_AT)
        frames[:, :HEADER_AT] = np.frombuffer(envelope, dtype=np.uint8)
        return frames


def _write(frames: NDArray[np.uint8], at: int, values: NDArray[np.generic]) -> None:
    width = values.itemsize * (values.shape[1] if values.ndim == 2 else 1)
    frames[:, at : at + width] = values.view(np.uint8).reshape(len(values), width)
