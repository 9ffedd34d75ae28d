# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What the other workers sent: staged, acknowledged, and kept when it is early.

A worker that is through with a round may send frames of the next one while others still
wait. They are kept and acknowledged at once, so that nobody's window stands still, with one
exception: to a worker that exchanges with us one way only, the acknowledgement tells that we
have entered the round. So nobody is ever more than one round ahead of whom it sends to.
"""

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.header import FRAGMENT_BYTES, Header, Kind
from switchgnn.host.link import Link
from switchgnn.transports.tally import HostTally
from switchgnn.transports.wire import ALL_OF_A_GROUP, GROUP, UNASKED, Envelopes, Packet

_EARLY_AT_MOST = 1 << 20


class Arrivals:
    """The receiving side of one worker, through all rounds.

    Args:
        link: for acknowledgements.
        envelopes: around them.
        one_way: the workers that only send to us, or only receive.
        round_number: the last round, before the first.
        tally: counters.
    """

    def __init__(
        self,
        link: Link,
        envelopes: Envelopes,
        *,
        one_way: frozenset[int],
        round_number: int,
        tally: HostTally,
    ) -> None:
        self._link = link
        self._envelopes = envelopes
        self._one_way = one_way
        self._tally = tally
        self._round = round_number
        self._mark = 0
        self._first: list[int] = []
        self._frames: list[int] = []
        self._seen = bytearray()
        self._payloads = bytearray()
        self._view = memoryview(self._payloads)
        self._left = 0
        self._early: dict[tuple[int, int], tuple[int, bytes]] = {}
        self._queues: set[int] = set()

    @property
    def done(self) -> bool:
        """Whether the round is complete."""
        return self._left == 0

    @property
    def payloads(self) -> bytearray:
        """Big-endian float32, 128 bytes for each frame, by sender and number."""
        return self._payloads

    @property
    def waiting_for(self) -> set[int]:
        """The workers of which frames are missing."""
        return {
            peer
            for peer, (first, size) in enumerate(zip(self._first, self._frames, strict=True))
            if not all(self._seen[first : first + size])
        }

    def open_round(self, round_number: int, mark: int, frames: NDArray[np.int64]) -> None:
        """Enter a round, and take what has come for it already.

        Args:
            round_number: one more than the last one.
            mark: what the frames must carry.
            frames: int64[W], how many each worker sends.
        """
        self._round, self._mark = round_number, mark
        self._frames = frames.tolist()
        self._first = (np.cumsum(frames) - frames).tolist()
        self._left = int(frames.sum())
        self._seen = bytearray(self._left)
        self._payloads = bytearray(self._left * FRAGMENT_BYTES)
        self._view = memoryview(self._payloads)
        early, self._early = self._early, {}
        for (peer, number), (frame_mark, body) in early.items():
            self._stage(peer, number, frame_mark, body)
        for peer, first in {(p, n - n % GROUP) for p, n in early if p in self._one_way}:
            self._acknowledge(peer, first, UNASKED, self._bits(peer, first), round_number)

    def take(self, packet: Packet) -> bool:
        """Take a FEATURE or a RECALL, answer it; tell whether it is progress."""
        if packet.marked and packet.kind is Kind.FEATURE:
            self._tally.marked += 1
            self._queues.add(packet.sender)
        first = packet.number - packet.number % GROUP
        if packet.round < self._round or (packet.round == self._round and not self._frames):
            # We would not have gone on without it.
            if packet.echo or packet.kind is Kind.RECALL:
                self._answer(packet, first, ALL_OF_A_GROUP)
            return False
        if packet.round == self._round:
            return self._take_now(packet, first)
        if packet.round == self._round + 1:
            self._take_early(packet, first)
        else:
            self._tally.wrong += 1
        return False

    def _take_now(self, packet: Packet, first: int) -> bool:
        news = False
        if packet.kind is Kind.FEATURE:
            news = self._stage(packet.sender, packet.number, packet.tag, packet.body)
        elif packet.tag != self._mark:
            self._tally.foreign += 1
        if packet.tag != self._mark:
            return False
        bits = self._bits(packet.sender, first)
        if packet.echo or packet.kind is Kind.RECALL:
            self._answer(packet, first, bits)
        elif news and bits == self._whole(packet.sender, first):
            self._acknowledge(packet.sender, first, UNASKED, bits, packet.round)
        return news

    def _take_early(self, packet: Packet, first: int) -> None:
        if packet.kind is Kind.FEATURE and len(self._early) < _EARLY_AT_MOST:
            key = (packet.sender, packet.number)
            self._tally.early += key not in self._early
            self._early[key] = (packet.tag, bytes(packet.body))
        if packet.sender in self._one_way:
            return
        bits = sum(
            1 << place for place in range(GROUP) if (packet.sender, first + place) in self._early
        )
        if packet.echo or packet.kind is Kind.RECALL:
            self._answer(packet, first, bits)
        elif bits == ALL_OF_A_GROUP:
            self._acknowledge(packet.sender, first, UNASKED, bits, packet.round)

    def _stage(self, peer: int, number: int, mark: int, body: bytes | memoryview) -> bool:
        if mark != self._mark:
            self._tally.foreign += 1
            return False
        if number >= self._frames[peer]:
            self._tally.wrong += 1
            return False
        place = self._first[peer] + number
        if self._seen[place]:
            self._tally.repeated += 1
            return False
        self._seen[place] = 1
        self._view[place * FRAGMENT_BYTES : (place + 1) * FRAGMENT_BYTES] = body
        self._left -= 1
        self._tally.data_received += 1
        return True

    def _bits(self, peer: int, first: int) -> int:
        size = min(GROUP, self._frames[peer] - first)
        start = self._first[peer] + first
        return sum(1 << place for place in range(size) if self._seen[start + place])

    def _whole(self, peer: int, first: int) -> int:
        return (1 << max(0, min(GROUP, self._frames[peer] - first))) - 1

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
        self._link.send(self._envelopes.control(peer, header))
        self._tally.acks_sent += 1
