"""Frames between workers: the SwitchGNN header under another protocol number.

The switch forwards them by their MAC address like any packet. docs/transports.md explains the
fields.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from switchgnn.base.array_types import Bools, Float32s, Float64s, Int64s, UInt8s
from switchgnn.base.network import Station
from switchgnn.host.direct.framing import Runs
from switchgnn.host.wire import header as wire
from switchgnn.host.wire.addresses import TOS_AT, ipv4_envelope
from switchgnn.host.wire.batches import FrameRows
from switchgnn.host.wire.native import write_checksums
from switchgnn.planner.base.arrays import ranges, starts_group
from switchgnn.planner.sending.phases import WorkerPhases

# The other protocol number for experiments (RFC 3692).
PROTOCOL = 254
# Frames that are acknowledged together; the bits of an ACK.
GROUP = 8
ALL_OF_A_GROUP = (1 << GROUP) - 1
# The question of an ACK that no question asked for.
UNASKED = 0xFFFF
CONTROL_FRAME_BYTES = wire.BODY_AT
# `Level` of a FEATURE that has parts of any rows, and not a fragment of one.
PACKED = 1

_MARKED = 3
_LENGTH_AT = wire.ETHERNET_BYTES + 2
_BEFORE_BODY = wire.BODY_AT - wire.ETHERNET_BYTES
_CONTROL_KINDS = (wire.Kind.ACK, wire.Kind.RECALL, wire.Kind.DONE)


class Packet(NamedTuple):
    """A sound frame."""

    kind: wire.Kind
    sender: int
    # FEATURE: of the frame, from 0 for each receiver and round. ACK, RECALL: of the first frame of
    # the group.
    number: int
    tag: int  # ACK: one bit for each frame of the group. Otherwise the schedule's mark.
    question: int  # ACK, RECALL: the number of the question; 0 is a FEATURE with `echo`.
    echo: bool
    marked: bool  # FEATURE: a queue on the way was long. ACK: one was, for the frames it covers.
    round: int
    body: memoryview


def unpack(frame: memoryview, receiver: int) -> Packet | None:
    """Parse a frame; None when it is no sound frame for this receiver (see ``unpack_header``)."""
    if not wire.is_plain(frame, PROTOCOL):
        return None
    header, checksum = wire.parse_header(frame)
    size = direct_body_bytes(header.kind, frame)
    if header.version != wire.VERSION or size is None or len(frame) < wire.BODY_AT + size:
        return None
    if wire.frame_checksum(frame, size) != checksum or header.block_id & 0xFF != receiver:
        return None
    ce_marked = header.kind is wire.Kind.FEATURE and frame[TOS_AT] & _MARKED == _MARKED
    return Packet(
        kind=header.kind,
        sender=header.block_id >> 8,
        number=header.src_id,
        tag=header.dst_id,
        question=header.fragment,
        echo=header.echo,
        marked=header.ecn or ce_marked,
        round=wire.session_and_round(header.session, header.round),
        body=frame[wire.BODY_AT : wire.BODY_AT + size],
    )


def direct_body_bytes(kind: int, frame: bytes | memoryview) -> int | None:
    """Return how long the body of a frame is, a FEATURE's by IPv4; None: there is no such frame."""
    if kind != wire.Kind.FEATURE:
        return 0 if kind in _CONTROL_KINDS else None
    size = (frame[_LENGTH_AT] << 8 | frame[_LENGTH_AT + 1]) - _BEFORE_BODY
    return size if size > 0 and size % 4 == 0 else None


class Envelopes:
    """The Ethernet and IPv4 headers from one worker to the others."""

    def __init__(self, worker: int, stations: tuple[Station, ...]) -> None:
        self._worker = worker
        self._stations = stations
        own = stations[worker]
        # Like pure acknowledgements of TCP, control frames are not ECN-capable.
        self._control = [
            ipv4_envelope(own, peer, wire.HEADER_BYTES, protocol=PROTOCOL, ecn=0)
            for peer in stations
        ]

    def data(self, peer: int, body_bytes: int) -> bytes:
        """Return the 34 bytes before a FEATURE with a body of that length."""
        ends = self._stations[self._worker], self._stations[peer]
        return ipv4_envelope(*ends, wire.HEADER_BYTES + body_bytes, protocol=PROTOCOL)

    def control(self, peer: int, header: wire.Header) -> bytes:
        """Return a whole frame of 60 bytes."""
        to = self._worker << 8 | peer
        return self._control[peer] + header._replace(block_id=to).pack(b"")


_MOST_COUNT = 0xFFFF
_LANE_BYTES = 4


@dataclass(frozen=True, eq=False)
class FrameOrder:
    """Frames of a round in sending order, by their int64[S] receivers and numbers.

    `run_start`: int64[N + 1], where the runs begin: frames of one group without a gap. `due`:
    int64[S], how many frames a link carries in the round before each of them may leave.
    """

    peer: Int64s
    number: Int64s
    run_start: Int64s
    due: Int64s


def send_order(
    worker: int, out_indptr: Int64s, frames: Int64s, phases: WorkerPhases | None = None
) -> FrameOrder:
    """Send in phases, or spread the groups of each receiver evenly over the time of the round.

    Without phases every receiver gets its frames at a constant rate from all senders, for any sizes
    of the pairs, and no queue is filled by all senders at once. Workers begin with different
    receivers. `out_indptr`: int64[W + 1], the frames for each worker in the whole round. `frames`:
    int64[S], ascending, which of them leave. `phases`: of rounds with as many frames for each
    worker, or in proportion.
    """
    workers = len(out_indptr) - 1
    peer = np.searchsorted(out_indptr, frames, side="right") - 1
    number = frames - out_indptr[peer]
    due = stay = np.zeros_like(frames)
    if phases is None:
        turn = _turns(peer, number // GROUP, workers)
        order = np.lexsort((number, (peer - worker) % workers, turn))
    else:
        due, stay = phases.due(peer, number, np.diff(out_indptr)[peer])
        order = np.lexsort((number, due))
    peer, number, due, stay = (each[order] for each in (peer, number, due, stay))
    starts = starts_group(peer, stay)
    starts[1:] |= (number[1:] % GROUP == 0) | (np.diff(number) != 1)
    return FrameOrder(peer, number, np.append(np.flatnonzero(starts), len(peer)), due)


def _turns(peer: Int64s, group: Int64s, workers: int) -> Float64s:
    """Return float64[S] between 0 and 1: when the group of a frame is due; both ascend."""
    first = starts_group(peer, group)
    groups = np.bincount(peer[first], minlength=workers)
    before = np.cumsum(groups) - groups
    rank = np.cumsum(first) - 1 - before[peer]
    turns: Float64s = (rank + 0.5) / groups[peer]
    return turns


class Outgoing:
    """The rows of one round for all other workers.

    `lanes`: big-endian float32, the runs one after the other, then a frame's length of zeros.
    `counts`: int64[R], how many rows of vertices each row adds up.
    """

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self.lanes = np.zeros(0, dtype=">f4")
        self.counts = np.zeros(0, dtype=np.int64)
        self._lacks: Int64s | None = None
        self._left = runs.rows

    def give(self, indices: Int64s, rows: Float32s, counts: Int64s) -> Int64s:
        """Take rows, see ``DirectExchange.give``; return int64[S], the completed frames."""
        runs = self.runs
        if not len(self.counts):
            self.lanes = np.zeros(
                runs.rows * runs.lanes + runs.payload_bytes // _LANE_BYTES, dtype=">f4"
            )
            self.counts = np.zeros(runs.rows, dtype=np.int64)
        matrix = self.lanes[: runs.rows * runs.lanes].reshape(runs.rows, runs.lanes)
        matrix[indices, : rows.shape[1]] = rows
        self.counts[indices] = counts
        everything = len(indices) == runs.rows
        self._left -= len(indices)
        return np.arange(runs.frames) if everything else self._completed(indices)

    def forget(self) -> None:
        """Free the rows once all have been given."""
        if not self._left:
            self.lanes, self.counts = self.lanes[:0], self.counts[:0]

    def _completed(self, indices: Int64s) -> Int64s:
        if self._lacks is None:
            self._lacks = self.runs.rows_of_frames()
        first, count = self.runs.frames_of_rows(indices)
        frames, times = np.unique(ranges(first, count), return_counts=True)
        self._lacks[frames] -= times
        whole: Int64s = frames[self._lacks[frames] == 0]
        return whole


def data_frames(
    order: FrameOrder,
    outgoing: Outgoing,
    *,
    worker: int,
    envelopes: Envelopes,
    round_number: int,
    mark: int,
    asking: Bools,
) -> FrameRows:
    """Pack the frames; `asking`: bool[S], which of them ask for an acknowledgement."""
    runs, size = outgoing.runs, len(order.peer)
    frames = np.zeros((size, wire.BODY_AT + runs.payload_bytes), dtype=np.uint8)
    if not size:
        return FrameRows(frames)
    begin, end = runs.span(order.peer, order.number)
    body = end - begin
    _write_envelopes(frames, order.peer, body, runs.payload_bytes, envelopes)
    header = np.zeros((size, wire.HEADER_BYTES), dtype=np.uint8)
    count, fragment = body // _LANE_BYTES, np.zeros_like(body)
    if not runs.framing.packed:
        fragments = runs.row_bytes // runs.payload_bytes
        row = runs.indptr[order.peer] + order.number // fragments
        count = np.minimum(outgoing.counts, _MOST_COUNT)[row]
        fragment = order.number % fragments
    wire.write_fields(
        header,
        src_id=order.number,
        dst_id=mark,
        block_id=(worker << 8) + order.peer,
        count=count,
        kind=wire.Kind.FEATURE,
        version=wire.VERSION,
        level=runs.framing.packed * PACKED,
        echo=asking.view(np.uint8),
        fragment=fragment,
        feature_group=(order.number // GROUP) & 0xFFFF,
        session=round_number >> 24,
        round=round_number & wire.LAST_ROUND,
    )
    # A shorter frame is followed by bytes of another one, which are not sent.
    windows = sliding_window_view(outgoing.lanes.view("u4"), runs.payload_bytes // _LANE_BYTES)
    frames[:, wire.BODY_AT :].view("u4")[...] = windows[begin // _LANE_BYTES]
    frames[:, wire.HEADER_AT : wire.BODY_AT] = header
    sizes = (wire.BODY_AT + body).astype(np.uint32)
    write_checksums(frames, sizes)
    return FrameRows(frames, sizes)


def _write_envelopes(
    frames: UInt8s, peer: Int64s, body: Int64s, payload_bytes: int, envelopes: Envelopes
) -> None:
    peers = range(int(peer.max()) + 1)
    heads = np.frombuffer(
        b"".join(envelopes.data(each, payload_bytes) for each in peers), dtype=np.uint8
    )
    frames[:, : wire.HEADER_AT] = heads.reshape(len(peers), wire.HEADER_AT)[peer]
    # The last frame for each worker is shorter.
    for index in np.flatnonzero(body != payload_bytes).tolist():
        head = envelopes.data(int(peer[index]), int(body[index]))
        frames[index, : wire.HEADER_AT] = np.frombuffer(head, dtype=np.uint8)
