# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Decides which controller is the primary one."""

import queue
import threading

from finsy.proto import U128, p4r, rpc_code, rpc_status

from switchgnn.softswitch.errors import RequestError
from switchgnn.softswitch.p4runtime.values import denied, invalid, not_found, unimplemented


class StreamClient:
    """One open stream: messages to send, and the election id that it asked for.

    The last item of ``outbox`` is None, or the error that ends the stream. ``has_asked`` says
    whether a message has come on it.
    """

    def __init__(self) -> None:
        self.outbox: queue.SimpleQueue[p4r.StreamMessageResponse | RequestError | None] = (
            queue.SimpleQueue()
        )
        self.election_id: int | None = None
        self.has_asked = False


class Arbiter:
    """Keeps the election ids of the connected controllers; the highest so far is the primary's."""

    def __init__(self, device_id: int) -> None:
        self.device_id = device_id
        self._lock = threading.Lock()
        self._clients: list[StreamClient] = []
        self._highest = 0

    def update(self, client: StreamClient, message: p4r.MasterArbitrationUpdate) -> None:
        """Register a client's election id and send the result to the clients that it affects.

        Raises:
            RequestError: another device, a role, or an election id in use.
        """
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
        """Forget a closed stream; the other clients are told if it was the primary."""
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
            if client is primary:
                status = rpc_status.Status(code=rpc_code.OK, message="is primary")
            elif primary is not None:
                status = rpc_status.Status(code=rpc_code.ALREADY_EXISTS, message="is backup")
            else:
                status = rpc_status.Status(code=rpc_code.NOT_FOUND, message="there is no primary")
            update = p4r.MasterArbitrationUpdate(
                device_id=self.device_id, election_id=U128.encode(self._highest), status=status
            )
            client.outbox.put(p4r.StreamMessageResponse(arbitration=update))

    def check_device(self, device_id: int) -> None:
        """Check that a request is for this device.

        Raises:
            RequestError: it is for another one.
        """
        if device_id != self.device_id:
            raise not_found(f"This is device {self.device_id}, not {device_id}.")

    def check_primary(self, device_id: int, election_id: p4r.Uint128) -> None:
        """Check that a request carries the primary's election id.

        Raises:
            RequestError: it does not, or it is for another device.
        """
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
