# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Election of the primary controller, and limits on streams and reads."""

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from finsy.proto import U128, p4r, rpc_code, rpc_status

from switchgnn.softswitch.errors import RequestError
from switchgnn.softswitch.schema import denied, exhausted, invalid, not_found, unimplemented


class StreamClient:
    """An open stream; the last item of ``outbox`` is None or the error that ends it.

    ``has_asked`` is set by the first message received.
    """

    def __init__(self) -> None:
        self.outbox: queue.SimpleQueue[p4r.StreamMessageResponse | RequestError | None] = (
            queue.SimpleQueue()
        )
        self.election_id: int | None = None
        self.has_asked = False


class Arbiter:
    """Election ids of connected controllers; the highest ever seen is the primary's."""

    def __init__(self, device_id: int) -> None:
        self.device_id = device_id
        self._lock = threading.Lock()
        self._clients: list[StreamClient] = []
        self._highest = 0

    def update(self, client: StreamClient, message: p4r.MasterArbitrationUpdate) -> None:
        """Register a client's election id and notify the affected clients."""
        self.check_device(message.device_id)
        if message.role.name or message.role.id:
            raise unimplemented("Only the default role is supported: leave the role out.")
        election_id = U128.decode(message.election_id)
        with self._lock:
            others = [c for c in self._clients if c is not client]
            if election_id and any(c.election_id == election_id for c in others):
                raise invalid(f"Election id {election_id} is used by another controller.")
            before = self._primary()
            client.election_id = election_id
            if client not in self._clients:
                self._clients.append(client)
            self._highest = max(self._highest, election_id)
            changed = self._primary() is not before
            self._notify(self._clients if changed else [client])

    def remove(self, client: StreamClient) -> None:
        """Forget a closed stream; notify the others if it was the primary."""
        with self._lock:
            if client not in self._clients:
                return
            was_primary = self._primary() is client
            self._clients.remove(client)
            if was_primary:
                self._notify(self._clients)

    def _primary(self) -> StreamClient | None:
        if not self._highest:
            return None
        return next((c for c in self._clients if c.election_id == self._highest), None)

    def _notify(self, clients: list[StreamClient]) -> None:
        primary = self._primary()
        for client in clients:
            if primary is None:
                code, text = rpc_code.NOT_FOUND, "there is no primary"
            elif client is primary:
                code, text = rpc_code.OK, "is primary"
            else:
                code, text = rpc_code.ALREADY_EXISTS, "is backup"
            status = rpc_status.Status(code=code, message=text)
            update = p4r.MasterArbitrationUpdate(
                device_id=self.device_id, election_id=U128.encode(self._highest), status=status
            )
            client.outbox.put(p4r.StreamMessageResponse(arbitration=update))

    def check_device(self, device_id: int) -> None:
        """Refuse a request for another device."""
        if device_id != self.device_id:
            raise not_found(f"This is device {self.device_id}, not {device_id}.")

    def check_primary(self, device_id: int, election_id: p4r.Uint128) -> None:
        """Refuse a request without the primary's election id."""
        self.check_device(device_id)
        with self._lock:
            primary = self._primary()
            if primary is None or U128.decode(election_id) != primary.election_id:
                raise denied("Only the primary controller may change the switch.")

    def is_primary(self, client: StreamClient) -> bool:
        """Return whether a stream is the primary's."""
        with self._lock:
            return self._primary() is client

    def send_to_primary(self, message: p4r.StreamMessageResponse) -> bool:
        """Queue a message for the primary and return whether there is one."""
        with self._lock:
            primary = self._primary()
            if primary is None:
                return False
            primary.outbox.put(message)
            return True

    def close(self) -> None:
        """End every stream."""
        with self._lock:
            for client in self._clients:
                client.outbox.put(None)


STREAMS_PER_CLIENT = 8
STREAMS = 16
READS = 16


def client_of(peer: str) -> str:
    """Return the host of a gRPC peer; all users of the owner's Unix socket are one client."""
    return peer.rpartition(":")[0] if peer.startswith(("ipv4:", "ipv6:")) else peer


class StreamLimits:
    """Limits open streams, overall and per client.

    At a limit the oldest stream without any request ends, so that idle streams cannot keep a
    controller out.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[tuple[str, StreamClient]] = []

    @contextmanager
    def place_for(self, stream: StreamClient, peer: str) -> Iterator[None]:
        """Count a stream as open inside the block."""
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
        idle = next((each for each in streams if not each.has_asked), None)
        if idle is None:
            raise exhausted(f"{why}: close one first.")
        idle.outbox.put(exhausted(f"{why}, and this one was idle: send a request."))
        self._open = [(who, each) for who, each in self._open if each is not idle]


class ReadLimit:
    """Limits concurrent reads, which slow clients may keep open."""

    def __init__(self) -> None:
        self._places = threading.BoundedSemaphore(READS)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Count a read inside the block."""
        if not self._places.acquire(blocking=False):
            raise exhausted(f"{READS} reads are in progress: fetch their responses first.")
        try:
            yield
        finally:
            self._places.release()
