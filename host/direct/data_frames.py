# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The hot path: data frames packed as one matrix, in sending order."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.direct.frames import DATA_FRAME_BYTES, GROUP, Envelopes, pair_number
from switchgnn.host.wire.checksums import write_checksums
from switchgnn.host.wire.header import (
    BODY_AT,
    HEADER_AT,
    HEADER_BYTES,
    LANES,
    VERSION,
    Kind,
    fragments_of,
)

# As HEADER of switchgnn.host.wire.header.
_HEADER = np.dtype(
    [
        *(("number", ">u4"), ("mark", ">u4"), ("pair", ">u2"), ("count", ">u2")),
        *(("kind", "u1"), ("extension", "u1"), ("fragment", ">u2"), ("group", ">u2")),
        *(("round", ">u4"), ("checksum", ">u4")),
    ]
)
_MOST_COUNT = 0xFFFF


@dataclass(frozen=True, eq=False)
class SendOrder:
    """Some frames of a round in the order in which they leave; arrays of length S.

    Attributes:
        peer: int64[S], who gets the frame.
        number: int64[S], its number among those for that worker.
        place: int64[S], where its payload is: row · fragments + fragment, over the rows given.
        run_start: int64[N + 1], where the runs begin: frames of one group without a gap.
    """

    peer: NDArray[np.int64]
    number: NDArray[np.int64]
    place: NDArray[np.int64]
    run_start: NDArray[np.int64]


def send_order(
    worker: int, out_indptr: NDArray[np.int64], fragments: int, rows: NDArray[np.int64]
) -> SendOrder:
    """Spread the groups of each receiver evenly over the time that the rows take.

    So every receiver gets its frames at a constant rate from all senders, for any sizes of
    the pairs, and no queue is filled by all senders at the same time. Workers begin with
    different receivers.

    Args:
        worker: the sender.
        out_indptr: int64[W + 1], the rows for each worker in the whole round.
        fragments: frames per row.
        rows: int64[R], ascending, which of the round's rows leave.

    Returns:
        The frames of these rows, in sending order.
    """
    workers = len(out_indptr) - 1
    peer_of_row = np.searchsorted(out_indptr, rows, side="right") - 1
    peer = np.repeat(peer_of_row, fragments)
    place = np.arange(len(peer))
    number = ((rows - out_indptr[peer_of_row]) * fragments).repeat(fragments) + place % fragments
    turn = _turns(peer, number // GROUP, workers)
    order = np.lexsort((number, (peer - worker) % workers, turn))
    peer, number, place = peer[order], number[order], place[order]
    starts = np.ones(len(peer), dtype=np.bool_)
    starts[1:] = (number[1:] % GROUP == 0) | (np.diff(number) != 1) | (np.diff(peer) != 0)
    return SendOrder(peer, number, place, np.append(np.flatnonzero(starts), len(peer)))


def _turns(peer: NDArray[np.int64], group: NDArray[np.int64], workers: int) -> NDArray[np.float64]:
    """Return float64[S] between 0 and 1: when the group of a frame is due; both ascend."""
    first = np.ones(len(peer), dtype=np.bool_)
    first[1:] = (np.diff(peer) != 0) | (np.diff(group) != 0)
    groups = np.bincount(peer[first], minlength=workers)
    before = np.cumsum(groups) - groups
    rank = np.cumsum(first) - 1 - before[peer]
    turns: NDArray[np.float64] = (rank + 0.5) / groups[peer]
    return turns


def data_frames(
    order: SendOrder,
    rows: NDArray[np.float32],
    counts: NDArray[np.int64],
    *,
    worker: int,
    envelopes: Envelopes,
    round_number: int,
    mark: int,
    asking: NDArray[np.bool_],
) -> NDArray[np.uint8]:
    """Pack the frames.

    Args:
        order: the frames.
        rows: float32[R, F], what is sent.
        counts: int64[R], how many rows of vertices each of them adds up.
        worker: the sender.
        envelopes: its envelopes.
        round_number: the round.
        mark: the mark of the schedule.
        asking: bool[S], which frames want an acknowledgement.

    Returns:
        uint8[S, 188].
    """
    size = len(order.peer)
    frames = np.zeros((size, DATA_FRAME_BYTES), dtype=np.uint8)
    if not size:
        return frames
    lanes = _fragments(rows)
    fragments = len(lanes) // len(rows)
    peers = np.arange(int(order.peer.max()) + 1)
    heads = np.frombuffer(b"".join(envelopes.data(int(peer)) for peer in peers), dtype=np.uint8)
    frames[:, :HEADER_AT] = heads.reshape(len(peers), HEADER_AT)[order.peer]
    header = np.zeros(size, dtype=_HEADER)
    header["number"] = order.number
    header["mark"] = mark
    header["pair"] = pair_number(worker, 0) + order.peer
    header["count"] = np.minimum(counts, _MOST_COUNT)[order.place // fragments]
    header["kind"] = Kind.FEATURE
    header["extension"] = VERSION << 4 | asking
    header["fragment"] = order.place % fragments
    header["group"] = (order.number // GROUP) & 0xFFFF
    header["round"] = round_number
    frames[:, BODY_AT:] = lanes[order.place].view(np.uint8)
    frames[:, HEADER_AT:BODY_AT] = header.view(np.uint8).reshape(size, HEADER_BYTES)
    write_checksums(frames)
    return frames


def join_fragments(
    payloads: NDArray[np.uint8], rows: NDArray[np.int64], width: int
) -> NDArray[np.float32]:
    """Put rows together from the payloads of their frames.

    Args:
        payloads: uint8[N · 128], the frames of the round, row after row.
        rows: int64[R], which rows.
        width: F, the elements of a row.

    Returns:
        float32[R, F].
    """
    lanes = payloads.view(">f4").reshape(-1, fragments_of(width) * LANES)
    return lanes[rows, :width].astype(np.float32)


def _fragments(rows: NDArray[np.float32]) -> NDArray[np.generic]:
    """Return big-endian float32[R · fragments, 32], padded with zeros."""
    count, width = rows.shape
    padded = np.zeros((count, fragments_of(width) * LANES), dtype=">f4")
    padded[:, :width] = rows
    return padded.reshape(-1, LANES)
