# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Limits on the calls that last as long as the client likes; each holds a thread of the server.

P4Runtime lets a server refuse streams beyond its limit with RESOURCE_EXHAUSTED:
https://p4.org/p4-spec/docs/p4runtime-spec-working-draft-html-version.html#sec-client-arbitration
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from finsy.proto import rpc_code

from switchgnn.softswitch.errors import RequestError
from switchgnn.softswitch.p4runtime.arbitration import StreamClient

STREAMS_PER_CLIENT = 8
STREAMS = 16
READS = 16


def client_of(peer: str) -> str:
    """Return who a peer is, as gRPC names it: its host, by any connection.

    Only its owner reaches a Unix socket: all who do are one client.
    """
    return peer.rpartition(":")[0] if peer.startswith(("ipv4:", "ipv6:")) else peer


class StreamLimits:
    """Bounds the open streams, and the share of them that one client has.

    Where there is no room, the oldest stream ends on which the client, or for want of its own
    anybody, has not asked for anything yet: idle streams cannot keep a controller out.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[tuple[str, StreamClient]] = []

    @contextmanager
    def place_for(self, stream: StreamClient, peer: str) -> Iterator[None]:
        """Count a stream as open inside the block.

        Args:
            stream: the new stream.
            peer: its other end, as gRPC names it.

        Yields:
            Once there is room.

        Raises:
            RequestError: there is no room, and no idle stream to end for it.
        """
        self._enter(stream, client_of(peer))
        try:
            yield
        finally:
            with self._lock:
                self._open = [(who, each) for who, each in self._open if each is not stream]

    def _enter(self, stream: StreamClient, client: str) -> None:
        with self._lock:
            own = [each for who, each in self._open if who == client]
            if len(own) >= STREAMS_PER_CLIENT:
                self._end_an_idle_one(own, f"This client has {len(own)} streams open")
            elif len(self._open) >= STREAMS:
                every = [each for _, each in self._open]
                self._end_an_idle_one(every, f"All {STREAMS} streams of this switch are open")
            self._open.append((client, stream))

    def _end_an_idle_one(self, streams: list[StreamClient], why: str) -> None:
        for idle in streams:
            if not idle.has_asked:
                idle.outbox.put(_exhausted(f"{why}, and this one was idle: ask for something."))
                self._open = [(who, each) for who, each in self._open if each is not idle]
                return
        raise _exhausted(f"{why}: end one of them first.")


class ReadLimit:
    """Bounds the reads under way: a client may take its time to fetch the answer."""

    def __init__(self) -> None:
        self._places = threading.BoundedSemaphore(READS)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Count a read as under way inside the block.

        Yields:
            At once.

        Raises:
            RequestError: as many reads as there may be are under way.
        """
        if not self._places.acquire(blocking=False):
            raise _exhausted(f"{READS} reads are under way: fetch their answers first.")
        try:
            yield
        finally:
            self._places.release()


def _exhausted(message: str) -> RequestError:
    return RequestError(rpc_code.RESOURCE_EXHAUSTED, message)
