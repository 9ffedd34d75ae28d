# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What one worker sends and awaits in one block, prepared once per plan."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.frames import FeatureFrames
from switchgnn.planner.plan.plan import WorkerPart


@dataclass(frozen=True)
class BlockSchedule:
    """One block of one worker's part of the plan.

    Attributes:
        block_id: number of the block, from 1.
        frames: the FEATURE frames in send order.
        send_row_indptr: int64[S + 1], where the rows of each frame begin.
        send_row: int64[...], local rows of the features that each frame adds up.
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
    receive_vertex: NDArray[np.uint32]
    receive_row: NDArray[np.int64]
    receive_count: list[int]
    receive_place: dict[int, int]
    neighbour_indptr: NDArray[np.int64]
    neighbour_vertex: NDArray[np.uint32]
    neighbour_owner: dict[int, int]

    def payloads(self, lanes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return what each frame carries: a row as it is, or the sum of several.

        Sums wrap modulo 2^32 like the switch's; those of a block that is complete cannot.

        Args:
            lanes: int32[n, W], one row per vertex of the worker.

        Returns:
            int32[S, W], in send order.
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
    """Prepare the blocks of a worker's part, in order.

    Args:
        part: the worker's part of the plan.
        addresses: for the frames.
        group_size: features that are acknowledged together.
        session: the number of the install.

    Returns:
        One schedule per block.
    """
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
        receive_vertex=vertices,
        receive_row=part.receive_row[received],
        receive_count=[int(count) for count in part.receive_count[received]],
        receive_place={int(vertex): place for place, vertex in enumerate(vertices)},
        neighbour_indptr=bounds - bounds[0],
        neighbour_vertex=sources_here,
        neighbour_owner=dict(zip(sources_here.tolist(), owners.tolist(), strict=True)),
    )
