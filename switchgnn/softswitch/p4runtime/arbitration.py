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

STREAMS_PER_HOST = 8
STREAMS = 16
READS = 16


class StreamClient:
    """An open stream; the last item of ``outbox`` is None or the error that ends it.

    ``has_asked`` is set by the first message received.
    """

    def __init__(self, peer: str = "") -> None:
        # All users of the owner's Unix socket are one host.
        self.host = peer.rpartition(":")[0] if peer.startswith(("ipv4:", "ipv6:")) else peer
        self.outbox: queue.SimpleQueue[p4r.StreamMessageResponse | RequestError | None] = (
            queue.SimpleQueue()
        )
        self.election_id: int | None = None
        self.has_asked = False


class Arbiter:
    """The open streams, oldest first; the highest election id ever seen is the primary's.

    At a limit of streams the oldest without any request ends, so that idle streams cannot keep a
    controller out.
    """

    def __init__(self, device_id: int) -> None:
        self.device_id = device_id
        self._lock = threading.Lock()
        self._streams: list[StreamClient] = []
        self._highest = 0

    def open(self, client: StreamClient) -> None:
        """Count a stream as open."""
        with self._lock:
            own = [each for each in self._streams if each.host == client.host]
            if len(own) >= STREAMS_PER_HOST:
                self._end_an_idle_one(own, f"This client has {len(own)} streams open")
            elif len(self._streams) >= STREAMS:
                why = f"All {STREAMS} streams of this switch are open"
                self._end_an_idle_one(self._streams, why)
            self._streams.append(client)

    def _end_an_idle_one(self, streams: list[StreamClient], why: str) -> None:
        idle = next((each for each in streams if not each.has_asked), None)
        if idle is None:
            raise exhausted(f"{why}: close one first.")
        idle.outbox.put(exhausted(f"{why}, and this one was idle: send a request."))
        self._streams.remove(idle)

    def update(self, client: StreamClient, message: p4r.MasterArbitrationUpdate) -> None:
        """Register a client's election id and notify the affected clients."""
        self.check_device(message.device_id)
        if message.role.name or message.role.id:
            raise unimplemented("Only the default role is supported: leave the role out.")
        election_id = U128.decode(message.election_id)
        with self._lock:
            others = [each for each in self._streams if each is not client]
            if election_id and any(each.election_id == election_id for each in others):
                raise invalid(f"Election id {election_id} is used by another controller.")
            before = self._primary()
            client.election_id = election_id
            self._highest = max(self._highest, election_id)
            changed = self._primary() is not before
            self._notify(self._streams if changed else [client])

    def remove(self, client: StreamClient) -> None:
        """Forget a closed stream; notify the others if it was the primary."""
        with self._lock:
            was_primary = self._primary() is client
            self._streams = [each for each in self._streams if each is not client]
            if was_primary:
                self._notify(self._streams)

    def _primary(self) -> StreamClient | None:
        if not self._highest:
            return None
        return next((each for each in self._streams if each.election_id == self._highest), None)

    def _notify(self, clients: list[StreamClient]) -> None:
        primary = self._primary()
        for client in clients:
            if client.election_id is None:
                continue
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
            for client in self._streams:
                client.outbox.put(None)


@contextmanager
def place(reads: threading.Semaphore) -> Iterator[None]:
    """Take a place for concurrent reads, which slow clients may keep, inside the block."""
    if not reads.acquire(blocking=False):
        raise exhausted(f"{READS} reads are in progress: fetch their responses first.")
    try:
        yield
    finally:
        reads.release()
