# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What arrives at a worker: served at once, handed on, or kept for later.

A fetch is answered, and a sign of congestion obeyed, whatever the worker waits for. When
the `advance` for this worker is late or lost, the others have moved on and the first sums
of the next block may overtake it. They come only once: a worker that waits at the barrier
keeps them for the block that follows.
"""

from collections import deque

from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.notice import Notifier
from switchgnn.host.innetwork.responder import Responder
from switchgnn.host.wire.batches import FrameBatch
from switchgnn.host.wire.header import SESSION_MASK, Header, Kind, unpack_header

_KEPT_AT_MOST = 1 << 17

Packet = tuple[Header, memoryview]


class Inbox:
    """Receives sound packets from a link and keeps early ones.

    Args:
        endpoint: whose packets.
        responder: answers fetches.
        notifier: tells the others of marks, and hears of theirs.
    """

    def __init__(self, endpoint: Endpoint, responder: Responder, notifier: Notifier) -> None:
        self._link = endpoint.link
        self._session = endpoint.session & SESSION_MASK
        self._tally = endpoint.tally
        self._responder = responder
        self._notifier = notifier
        self._kept: deque[tuple[Header, bytes]] = deque(maxlen=_KEPT_AT_MOST)

    def receive(self, seconds: float) -> Packet | None:
        """Return the next packet, valid until the next call, or None after ``seconds``.

        Of another session only WAITING is returned, which may say that there is a newer one.
        """
        while (frame := self._link.receive(seconds)) is not None:
            packet = self.open(frame)
            if packet is not None:
                return packet
            seconds = 0.0
        return None

    def receive_batch(self, seconds: float) -> FrameBatch | None:
        """Return the next frames, valid until the next call, or None after ``seconds``.

        What is not known to be a sound packet of this session is to be opened.
        """
        return self._link.receive_batch(seconds)

    def open(self, frame: memoryview) -> Packet | None:
        """Return the packet in a frame; None if there is none, or it is served already."""
        header = unpack_header(frame)
        if header is None:
            self._tally.malformed += 1
            return None
        if header.session != self._session and header.kind is not Kind.WAITING:
            self._tally.foreign += 1
            return None
        if header.ecn or header.kind is Kind.NOTICE:
            self._heed(header)
        if header.kind is Kind.FETCH:
            self._responder.answer(header)
            return None
        return None if header.kind is Kind.NOTICE else (header, frame)

    def _heed(self, header: Header) -> None:
        if header.kind is Kind.NOTICE:
            self._tally.noticed += 1
            self._notifier.take(header)
        if header.ecn:
            self._tally.marked += 1
            self._notifier.notify(header)

    def keep(self, packet: Packet) -> None:
        """Keep a packet that is not for now."""
        self._kept.append((packet[0], bytes(packet[1])))

    def take_kept(self) -> list[Packet]:
        """Return the kept packets in the order of arrival, and forget them."""
        packets = [(header, memoryview(frame)) for header, frame in self._kept]
        self._kept.clear()
        return packets
