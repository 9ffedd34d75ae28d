"""The receiving side of exchanges between hosts: stores, acknowledges, keeps early frames.

A worker may send frames of a round that this one has not entered. They are kept and acknowledged
immediately, so that no window stalls, with one exception: to a worker that exchanges one way only,
the acknowledgement means that this worker has entered the round. No worker enters
a round before the one before the last is complete, so none is ever more than two rounds
ahead of a worker that it sends to.
"""

from collections.abc import Iterable, Sequence
from ctypes import addressof
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Float32s, Int64s, UInt8s, UInt32s
from switchgnn.host.base.status import DirectCounters
from switchgnn.host.direct.frames import ALL_OF_A_GROUP, GROUP, PROTOCOL, UNASKED, Envelopes, Packet
from switchgnn.host.direct.framing import Runs
from switchgnn.host.wire.batches import FrameBatch
from switchgnn.host.wire.header import Header, Kind
from switchgnn.host.wire.link import Link
from switchgnn.host.wire.native import FastPaths, native_frames, shared_struct

# How many rounds a worker is in at most, and how far it may be ahead of the others.
MOST_OPEN = 2
# Bytes of rows that are kept of a round before it is entered.
_EARLY_AT_MOST = 1 << 27


@dataclass(frozen=True, eq=False)
class RowArrays:
    """The storage for the frames of a round; W workers, N frames, R rows."""

    first: UInt32s  # uint32[W], the first frame of each worker
    frames: UInt32s  # uint32[W], how many each sends
    begin: NDArray[np.uint64]  # uint64[W + 1], where the rows of each begin in `payloads`
    seen: UInt8s  # uint8[N], which frames are here
    payloads: UInt8s  # uint8[B], the rows of all workers
    left_of_row: UInt32s  # uint32[R], how many frames of each row are missing
    whole: UInt8s  # uint8[R], which rows are here


class Incoming:
    """The rows of one round that other workers send; `frames`: how many frames each of them sends.

    It belongs to the thread that exchanges, except for `arrived` and `rows`.
    """

    def __init__(self, mark: int, runs: Runs) -> None:
        self.mark = mark
        self.runs = runs
        self.frames: list[int] = np.diff(runs.first).tolist()
        self._first: list[int] = runs.first[:-1].tolist()
        self._begin: list[int] = runs.begin.tolist()
        self._left = runs.frames
        # The workers that were not heard, and when the last of the others was.
        self.unheard = set(np.flatnonzero(self.frames).tolist())
        self.joined_at = float("-inf")
        _, frames_of_row = runs.frames_of_rows(np.arange(runs.rows))
        self.arrays = RowArrays(
            first=runs.first[:-1].astype(np.uint32),
            frames=np.diff(runs.first).astype(np.uint32),
            begin=runs.begin.astype(np.uint64),
            seen=np.zeros(self._left, dtype=np.uint8),
            payloads=np.zeros(int(runs.begin[-1]), dtype=np.uint8),
            left_of_row=frames_of_row.astype(np.uint32),
            whole=np.zeros(runs.rows, dtype=np.uint8),
        )
        # Access to elements is faster through views.
        self._seen, self._view = self.arrays.seen.data, self.arrays.payloads.data

    @property
    def done(self) -> bool:
        """Whether all rows have arrived."""
        return self._left == 0

    @property
    def waiting_for(self) -> set[int]:
        """The workers of which frames are missing."""
        return {
            peer
            for peer, (first, size) in enumerate(zip(self._first, self.frames, strict=True))
            if not self.arrays.seen[first : first + size].all()
        }

    def hear(self, peers: Iterable[int], now: float) -> None:
        """Note that these workers are in the round."""
        if self.unheard and not self.unheard.isdisjoint(peers):
            self.unheard.difference_update(peers)
            self.joined_at = now

    def arrived(self, rows: Int64s) -> bool:
        """Return whether these rows are here, counted through all workers."""
        return self.done or bool(self.arrays.whole[rows].all())

    def rows(self, rows: Int64s) -> Float32s:
        """Return float32[len(rows), F] of rows that have arrived."""
        lanes = self.arrays.payloads.view(">f4").reshape(-1, self.runs.lanes)
        return lanes[rows, : self.runs.width].astype(np.float32)

    def seen(self, peer: int, number: int) -> bool:
        """Return whether a frame is here."""
        return bool(self._seen[self._first[peer] + number])

    def body_bytes(self, peer: int, number: int) -> int:
        """Return how long the body of a frame is."""
        begin, end = self._span(peer, number)
        return end - begin

    def put(self, peer: int, number: int, body: bytes | memoryview) -> None:
        """Store a new frame."""
        begin, end = self._span(peer, number)
        self._seen[self._first[peer] + number] = 1
        self._view[begin:end] = body
        rows = slice(begin // self.runs.row_bytes, (end - 1) // self.runs.row_bytes + 1)
        left = self.arrays.left_of_row[rows]
        left -= 1
        self.arrays.whole[rows] = left == 0
        self._left -= 1

    def took(self, frames: int) -> None:
        """Count frames that a fast path has stored."""
        self._left -= frames

    def bits(self, peer: int, first: int) -> int:
        """Return one bit for each frame of a group that is here."""
        size = min(GROUP, self.frames[peer] - first)
        start = self._first[peer] + first
        return sum(1 << index for index in range(size) if self._seen[start + index])

    def whole(self, peer: int, first: int) -> int:
        """Return the bits of a complete group."""
        return (1 << max(0, min(GROUP, self.frames[peer] - first))) - 1

    def _span(self, peer: int, number: int) -> tuple[int, int]:
        begin = self._begin[peer] + number * self.runs.payload_bytes
        return begin, min(begin + self.runs.payload_bytes, self._begin[peer + 1])


class RowFastPath:
    """Takes the frames of a round that need no answer."""

    def __init__(self, incoming: Incoming, worker: int, round_number: int) -> None:
        self._arrays = arrays = incoming.arrays
        # uint8[W], the workers whose frames were taken since it was set to 0
        self.heard = np.zeros(len(arrays.first), dtype=np.uint8)
        self._held = np.zeros(0, dtype=np.uint32)
        self._fields = shared_struct("RowFields")(
            row_bytes=incoming.runs.row_bytes,
            payload_bytes=incoming.runs.payload_bytes,
            receiver=worker,
            round=round_number,
            mark=incoming.mark,
            protocol=PROTOCOL,
            group=GROUP,
            workers=len(arrays.first),
            heard=self.heard.ctypes.data,
            **{each.name: getattr(arrays, each.name).ctypes.data for each in fields(arrays)},
        )

    @property
    def taken(self) -> int:
        """How many frames of the last batch were stored."""
        return int(self._fields.taken)

    def address(self, frames: int) -> int:
        """See ``FastPath``."""
        if len(self._held) < frames:
            self._held = np.zeros(frames, dtype=np.uint32)
            self._fields.held = self._held.ctypes.data
        return addressof(self._fields)


@dataclass(eq=False)
class Arrivals:
    """The receiving side of one worker, through all rounds."""

    worker: int
    link: Link
    envelopes: Envelopes
    one_way: frozenset[int]
    counters: DirectCounters

    def __post_init__(self) -> None:
        self._newest = 0
        self._rounds: dict[int, Incoming] = {}
        self._early: dict[int, dict[tuple[int, int], tuple[int, bytes]]] = {}
        self._early_bytes: dict[int, int] = {}
        self._queues: set[int] = set()
        frames = native_frames()
        self._native = FastPaths(frames.take_rows) if frames is not None else None
        self._fast_paths: dict[int, RowFastPath] = {}

    def open_round(self, round_number: int, incoming: Incoming) -> None:
        """Enter a round, and take the frames that have arrived early."""
        self._newest = round_number
        self._rounds[round_number] = incoming
        early = self._early.pop(round_number, {})
        self._early_bytes.pop(round_number, None)
        incoming.hear({peer for peer, _ in early}, float("-inf"))
        for (peer, number), (frame_mark, body) in early.items():
            self._stage(incoming, peer, number, frame_mark, body)
        if self._native is not None:
            self._fast_paths[round_number] = RowFastPath(incoming, self.worker, round_number)
        for peer, first in {(p, n - n % GROUP) for p, n in early if p in self.one_way}:
            self._acknowledge(peer, first, UNASKED, incoming.bits(peer, first), round_number)

    def close_round(self, round_number: int) -> None:
        """Leave a round of which everything has arrived."""
        del self._rounds[round_number]
        self._fast_paths.pop(round_number, None)

    def take_plain(self, batch: FrameBatch, now: float, heard: dict[int, float]) -> Sequence[int]:
        """Take frames that need no answer, see ``host.wire.native``; return the others."""
        if self._native is None:
            return range(batch.first, batch.count)
        left = self._native.take_plain(batch, tuple(self._fast_paths.values()))
        for number, fast_path in self._fast_paths.items():
            if fast_path.taken:
                self._rounds[number].took(fast_path.taken)
                self.counters.data_received += fast_path.taken
                those = np.flatnonzero(fast_path.heard).tolist()
                heard.update(dict.fromkeys(those, now))
                self._rounds[number].hear(those, now)
                fast_path.heard[:] = 0
        return left

    def take(self, packet: Packet) -> bool:
        """Take a FEATURE or a RECALL and answer it; return whether it is progress."""
        if packet.marked and packet.kind is Kind.FEATURE:
            self.counters.marked += 1
            self._queues.add(packet.sender)
        first = packet.number - packet.number % GROUP
        incoming = self._rounds.get(packet.round)
        if incoming is not None:
            return self._take_now(incoming, packet, first)
        if packet.round <= self._newest:
            # This worker would not have left the round without it.
            if packet.echo or packet.kind is Kind.RECALL:
                self._answer(packet, first, ALL_OF_A_GROUP)
        elif packet.round <= self._newest + MOST_OPEN:
            self._take_early(packet, first)
        else:
            self.counters.wrong += 1
        return False

    def _take_now(self, incoming: Incoming, packet: Packet, first: int) -> bool:
        news = False
        if packet.kind is Kind.FEATURE:
            news = self._stage(incoming, packet.sender, packet.number, packet.tag, packet.body)
        elif packet.tag != incoming.mark:
            self.counters.foreign += 1
        if packet.tag != incoming.mark:
            return False
        bits = incoming.bits(packet.sender, first)
        if packet.echo or packet.kind is Kind.RECALL:
            self._answer(packet, first, bits)
        elif news and bits == incoming.whole(packet.sender, first):
            self._acknowledge(packet.sender, first, UNASKED, bits, packet.round)
        return news

    def _take_early(self, packet: Packet, first: int) -> None:
        early = self._early.setdefault(packet.round, {})
        key = (packet.sender, packet.number)
        kept = self._early_bytes.get(packet.round, 0)
        if packet.kind is Kind.FEATURE and key not in early and kept < _EARLY_AT_MOST:
            self.counters.early += 1
            early[key] = (packet.tag, bytes(packet.body))
            self._early_bytes[packet.round] = kept + len(packet.body)
        if packet.sender in self.one_way:
            return
        bits = sum(1 << index for index in range(GROUP) if (packet.sender, first + index) in early)
        if packet.echo or packet.kind is Kind.RECALL:
            self._answer(packet, first, bits)
        elif bits == ALL_OF_A_GROUP:
            self._acknowledge(packet.sender, first, UNASKED, bits, packet.round)

    def _stage(
        self, incoming: Incoming, peer: int, number: int, mark: int, body: bytes | memoryview
    ) -> bool:
        if mark != incoming.mark:
            self.counters.foreign += 1
            return False
        if number >= incoming.frames[peer] or len(body) != incoming.body_bytes(peer, number):
            self.counters.wrong += 1
            return False
        if incoming.seen(peer, number):
            self.counters.repeated += 1
            return False
        incoming.put(peer, number, body)
        self.counters.data_received += 1
        return True

    def _answer(self, packet: Packet, first: int, bits: int) -> None:
        question = packet.question if packet.kind is Kind.RECALL else 0
        self._acknowledge(packet.sender, first, question, bits, packet.round)

    def _acknowledge(
        self, peer: int, first: int, question: int, bits: int, round_number: int
    ) -> None:
        header = Header(
            kind=Kind.ACK,
            is_ack=True,
            ecn=peer in self._queues,
            src_id=first,
            dst_id=bits,
            count=bits.bit_count(),
            fragment=question,
            round=round_number,
        )
        self._queues.discard(peer)
        self.link.send(self.envelopes.control(peer, header))
        self.counters.acks_sent += 1
