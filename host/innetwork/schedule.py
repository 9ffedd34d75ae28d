"""The frames that one worker sends and awaits in each block, prepared once per plan."""

from dataclasses import dataclass

import numpy as np

from switchgnn.base.array_types import Int32s, Int64s, Integers, UInt8s, UInt32s
from switchgnn.host.wire import header
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.batches import FrameRows
from switchgnn.host.wire.narrow import bits_needed, pack_lanes
from switchgnn.host.wire.native import write_checksums
from switchgnn.planner.plan.plan import WorkerPart


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
        sources: UInt32s,
        group_size: int,
        count: Integers | int = 1,
        *,
        destinations: UInt32s | int = 0,
        session: int,
    ) -> None:
        self.count = size = len(sources)  # of the frames
        self._addresses = addresses
        echoes = np.zeros(size, dtype=np.uint8)
        echoes[group_size - 1 :: group_size] = 1
        echoes[-1:] = 1
        # The headers of all widths, without what changes.
        self._headers = np.zeros((size, header.HEADER_BYTES), dtype=np.uint8)
        header.write_fields(
            self._headers,
            src_id=sources,
            dst_id=destinations,
            block_id=block_id,
            count=count,
            kind=header.Kind.FEATURE,
            version=header.VERSION,
            echo=echoes,
            feature_group=np.arange(size) // group_size,
            session=session & header.SESSION_MASK,
        )
        # By the width, the pool, and whether they are narrow.
        self._frames_of: dict[tuple[int, int, bool], UInt8s] = {}

    def fill(
        self, round_number: int, fragment: int, lanes: Int32s, *, narrow: bool = False
    ) -> FrameRows:
        """Write round, fragment, payloads and checksums.

        `fragment`: its word, see `fragment_words`. `lanes`: int32[S, W], the slice of each source's
        fixed-point feature or sum, as wide as the fragment. `narrow`: each frame gets the fewest
        bits that hold its numbers. The frames are valid until the next call for this width and
        pool.
        """
        width = lanes.shape[1]
        key = width, header.pool_of(fragment), narrow
        if (frames := self._frames_of.get(key)) is None:
            frames = self._frames_of[key] = self._frames(width)
        header.write_fields(_headers_of(frames), fragment=fragment, round=round_number)
        sizes = self._write_narrow(frames, lanes) if narrow else None
        if sizes is None:
            body = np.ascontiguousarray(lanes, dtype=">i4").view(np.uint8)
            frames[:, header.BODY_AT : header.BODY_AT + body.shape[1]] = body
        write_checksums(frames, sizes)
        return FrameRows(frames, sizes)

    def _write_narrow(self, frames: UInt8s, lanes: Int32s) -> UInt32s:
        width = lanes.shape[1]
        needed = bits_needed(lanes)
        codes = np.zeros(len(lanes), dtype=np.uint8)
        sizes = np.zeros(len(lanes), dtype=np.uint32)
        for bits in header.allowed_bits(width):
            those = np.flatnonzero(needed == bits)
            if not len(those):
                continue
            sizes[those] = end = header.feature_frame_bytes(width, bits)
            frames[those, header.BODY_AT : end] = pack_lanes(lanes[those], bits)
            envelope = self._addresses.envelope(end - header.HEADER_AT)
            frames[those, : header.HEADER_AT] = np.frombuffer(envelope, dtype=np.uint8)
            codes[those] = header.BITS.index(bits)
        header.write_fields(_headers_of(frames), bits=codes)
        return sizes

    def _frames(self, width: int) -> UInt8s:
        frames = np.zeros((self.count, header.feature_frame_bytes(width)), dtype=np.uint8)
        _headers_of(frames)[:] = self._headers
        envelope = self._addresses.envelope(header.feature_frame_bytes(width) - header.HEADER_AT)
        frames[:, : header.HEADER_AT] = np.frombuffer(envelope, dtype=np.uint8)
        return frames


def _headers_of(frames: UInt8s) -> UInt8s:
    return frames[:, header.HEADER_AT : header.BODY_AT]


@dataclass(frozen=True)
class BlockSchedule:
    """One block of one worker's part of the plan, with S frames to send and Q sums to receive."""

    block_id: int
    rows: int  # Of a frame, K.
    frames: FeatureFrames
    # Int64[S · K + 1], where the local rows of each row of a frame begin in `send_row`.
    send_row_indptr: Int64s
    send_row: Int64s
    # Int64[S · K], the vertex of each partial sum, otherwise -1.
    send_destination: Int64s
    receive_vertex: UInt32s
    # Int64[Q], the local rows of the vertices `receive_vertex`, uint32[Q].
    receive_row: Int64s
    receive_count: list[int]  # The contributions each sum must have, in the same order.
    receive_index: dict[int, int]  # Index of a vertex among them.
    # Int64[Q + 1], where the vertices that each sum adds up begin.
    neighbour_indptr: Int64s
    neighbour_vertex: UInt32s
    neighbour_owner: dict[int, int]  # The worker of each such vertex.

    def payloads(self, lanes: Int32s, combine: np.ufunc = np.add) -> Int32s:
        """Return int32[S · K, W], the rows of each frame in send order: one or several as one.

        Sums wrap modulo 2^32 like the switch's; those of a complete block cannot. `lanes`: int32[n,
        W]. `combine`: see ``combine_of``.
        """
        rows, sizes = lanes[self.send_row], np.diff(self.send_row_indptr)
        if len(rows) == len(sizes) and sizes.all():
            return rows
        # The last frame may have fewer rows than others.
        filled = sizes > 0
        sums = np.zeros((len(sizes), rows.shape[1]), dtype=np.uint32)
        begins = self.send_row_indptr[:-1][filled]
        sums[filled] = combine.reduceat(rows.view(np.uint32), begins, dtype=np.uint32)
        return sums.view(np.int32)

    def frames_of(self, rows: Int32s) -> Int32s:
        """Return int32[S, K · W], the numbers of each frame, given those of its rows."""
        return rows.reshape(self.frames.count, -1) if len(rows) else rows

    def neighbours_of(self, index: int) -> list[int]:
        """Return the vertices that the sum at ``index`` adds up."""
        begin, end = self.neighbour_indptr[index : index + 2]
        neighbours: list[int] = self.neighbour_vertex[begin:end].tolist()
        return neighbours


def block_schedules(
    part: WorkerPart, addresses: Addresses, group_size: int, session: int, rows: int = 1
) -> tuple[BlockSchedule, ...]:
    """Prepare the blocks of a worker's part, in order; its frames have that many rows."""
    # A bundle names no destination, and each of its rows is one contribution.
    alone, schedules = rows == 1, []
    for block_id in range(1, len(part.send_indptr)):
        sent = slice(part.send_indptr[block_id - 1], part.send_indptr[block_id])
        received = slice(part.receive_indptr[block_id - 1], part.receive_indptr[block_id])
        vertices = part.receive_vertex[received].tolist()
        bounds = part.neighbour_indptr[received.start : received.stop + 1]
        neighbours = part.neighbour_vertex[bounds[0] : bounds[-1]]
        owners = part.neighbour_worker[bounds[0] : bounds[-1]]
        row_bounds = part.send_row_indptr[sent.start * rows : sent.stop * rows + 1]
        destinations = part.send_destination[sent.start * rows : sent.stop * rows]
        sizes = np.diff(row_bounds)
        frames = FeatureFrames(
            *(addresses, block_id, part.send_source[sent], group_size, sizes if alone else 1),
            destinations=destinations if alone else 0,
            session=session,
        )
        schedule = BlockSchedule(
            block_id=block_id,
            rows=rows,
            frames=frames,
            send_row_indptr=row_bounds - row_bounds[0],
            send_row=part.send_row[row_bounds[0] : row_bounds[-1]],
            send_destination=np.where(sizes > 1, destinations.astype(np.int64), -1),
            receive_vertex=part.receive_vertex[received],
            receive_row=part.receive_row[received],
            receive_count=part.receive_count[received].tolist(),
            receive_index={vertex: index for index, vertex in enumerate(vertices)},
            neighbour_indptr=bounds - bounds[0],
            neighbour_vertex=neighbours,
            neighbour_owner=dict(zip(neighbours.tolist(), owners.tolist(), strict=True)),
        )
        schedules.append(schedule)
    return tuple(schedules)


def empty_schedule(addresses: Addresses, session: int) -> BlockSchedule:
    """Return a block without features and sums."""
    nothing, bounds = np.zeros(0, dtype=np.uint32), np.zeros(1, dtype=np.int64)
    rows = nothing.astype(np.int64)
    frames = FeatureFrames(addresses, 0, nothing, 1, session=session)
    return BlockSchedule(
        *(0, 1, frames, bounds, rows, rows, nothing, rows, [], {}, bounds, nothing, {})
    )
