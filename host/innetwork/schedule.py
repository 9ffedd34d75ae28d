# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The frames that one worker sends and awaits in each block, prepared once per plan."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.batches import FrameRows
from switchgnn.host.wire.header import (
    BITS_AT,
    BODY_AT,
    HEADER_AT,
    VERSION,
    Kind,
    allowed_bits,
    bits_code,
    feature_frame_bytes,
    session_and_round,
)
from switchgnn.host.wire.narrow import bits_needed, pack_lanes
from switchgnn.host.wire.native import write_checksums
from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID
from switchgnn.planner.plan.plan import WorkerPart

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
    """The FEATURE frames of one worker in one block, S of them.

    `sources`: uint32[S], Src_id of each frame in send order. `count`: rows that each frame adds up,
    uint16[S] or one number for all. `destinations`: Dst_id, uint32[S] or one number for all: the
    vertex of a partial sum, otherwise 0. The switch acknowledges `group_size` features together.
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
        # By the width, and whether they are narrow.
        self._of_width: dict[tuple[int, bool], NDArray[np.uint8]] = {}

    @property
    def count(self) -> int:
        """The number of frames."""
        return len(self._headers)

    def fill(
        self, round_number: int, fragment: int, lanes: NDArray[np.int32], *, narrow: bool = False
    ) -> FrameRows:
        """Write round, fragment, payloads and checksums.

        `fragment`: its word, see `fragment_words`. `lanes`: int32[S, W], the slice of each source's
        fixed-point feature or sum, as wide as the fragment. `narrow`: each frame gets the fewest
        bits that hold its numbers. The frames are valid until the next call for this width.
        """
        size, width = lanes.shape
        frames = self._of_width.get((width, narrow))
        if frames is None:
            frames = self._of_width[width, narrow] = self._frames(width)
        _write(frames, _FRAGMENT, np.full(size, fragment, dtype=">u2"))
        number = session_and_round(self._session, round_number)
        _write(frames, _ROUND, np.full(size, number, dtype=">u4"))
        sizes = self._write_narrow(frames, lanes) if narrow else None
        if sizes is None:
            _write(frames, BODY_AT, np.ascontiguousarray(lanes, dtype=">i4"))
        write_checksums(frames, sizes)
        return FrameRows(frames, sizes)

    def _write_narrow(
        self, frames: NDArray[np.uint8], lanes: NDArray[np.int32]
    ) -> NDArray[np.uint32]:
        """Write bodies, lengths and Bits; return uint32[S], the bytes of each frame."""
        width = lanes.shape[1]
        needed = bits_needed(lanes)
        sizes = np.zeros(len(lanes), dtype=np.uint32)
        for bits in allowed_bits(width):
            those = np.flatnonzero(needed == bits)
            if not len(those):
                continue
            sizes[those] = end = feature_frame_bytes(width, bits)
            frames[those, BODY_AT:end] = pack_lanes(lanes[those], bits)
            envelope = self._addresses.envelope(end - HEADER_AT)
            frames[those, :HEADER_AT] = np.frombuffer(envelope, dtype=np.uint8)
            frames[those, _ECHO] = self._headers[those, _ECHO] | bits_code(bits) << BITS_AT
        return sizes

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


@dataclass(frozen=True)
class BlockSchedule:
    """One block of one worker's part of the plan.

    Attributes:
        block_id: number of the block, from 1.
        frames: the FEATURE frames in send order.
        send_row_indptr: int64[S + 1], where the rows of each frame begin.
        send_row: int64[...], local rows of the features that each frame adds up.
        send_destination: int64[S], the vertex of each partial sum, otherwise -1.
        receive_vertex: uint32[Q], the vertices whose sums arrive.
        receive_row: int64[Q], their local rows.
        receive_count: the contributions each sum must have, in the same order.
        receive_place: place of a vertex among them.
        neighbour_indptr: int64[Q + 1], where each sum's neighbours begin.
        neighbour_vertex: uint32[...], the vertices that each sum adds up.
        neighbour_owner: the worker of each such vertex.
    """

    block_id: int
    frames: FeatureFrames
    send_row_indptr: NDArray[np.int64]
    send_row: NDArray[np.int64]
    send_destination: NDArray[np.int64]
    receive_vertex: NDArray[np.uint32]
    receive_row: NDArray[np.int64]
    receive_count: list[int]
    receive_place: dict[int, int]
    neighbour_indptr: NDArray[np.int64]
    neighbour_vertex: NDArray[np.uint32]
    neighbour_owner: dict[int, int]

    def payloads(self, lanes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return int32[S, W], the content of each frame in send order: a row or the sum of several.

        Sums wrap modulo 2^32 like the switch's; those of a complete block cannot. `lanes`: int32[n,
        W].
        """
        rows = lanes[self.send_row]
        starts = self.send_row_indptr[:-1]
        return rows if len(rows) == len(starts) else np.add.reduceat(rows, starts, dtype=np.int32)

    def neighbour_slice(self, place: int) -> slice:
        """Return where the neighbours of the sum at ``place`` are."""
        return slice(int(self.neighbour_indptr[place]), int(self.neighbour_indptr[place + 1]))

    def neighbours_of(self, place: int) -> list[int]:
        """Return the vertices that the sum at ``place`` adds up."""
        return [int(source) for source in self.neighbour_vertex[self.neighbour_slice(place)]]


def block_schedules(
    part: WorkerPart, addresses: Addresses, group_size: int, session: int
) -> tuple[BlockSchedule, ...]:
    """Prepare the blocks of a worker's part, in order."""
    blocks = len(part.send_indptr) - 1
    return tuple(
        _block_schedule(part, addresses, group_size, session, block_id)
        for block_id in range(1, blocks + 1)
    )


def _block_schedule(
    part: WorkerPart, addresses: Addresses, group_size: int, session: int, block_id: int
) -> BlockSchedule:
    sent = slice(part.send_indptr[block_id - 1], part.send_indptr[block_id])
    received = slice(part.receive_indptr[block_id - 1], part.receive_indptr[block_id])
    sources = part.send_source[sent]
    vertices = part.receive_vertex[received]
    bounds = part.neighbour_indptr[received.start : received.stop + 1]
    neighbours = slice(bounds[0], bounds[-1])
    row_bounds = part.send_row_indptr[sent.start : sent.stop + 1]
    sources_here = part.neighbour_vertex[neighbours]
    owners = part.neighbour_worker[neighbours]
    return BlockSchedule(
        block_id=block_id,
        frames=FeatureFrames(
            addresses,
            block_id,
            sources,
            group_size,
            np.diff(row_bounds),
            destinations=part.send_destination[sent],
            session=session,
        ),
        send_row_indptr=row_bounds - row_bounds[0],
        send_row=part.send_row[row_bounds[0] : row_bounds[-1]],
        send_destination=np.where(
            sources >= FIRST_RESERVED_ID, part.send_destination[sent].astype(np.int64), -1
        ),
        receive_vertex=vertices,
        receive_row=part.receive_row[received],
        receive_count=[int(count) for count in part.receive_count[received]],
        receive_place={int(vertex): place for place, vertex in enumerate(vertices)},
        neighbour_indptr=bounds - bounds[0],
        neighbour_vertex=sources_here,
        neighbour_owner=dict(zip(sources_here.tolist(), owners.tolist(), strict=True)),
    )
