# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The stream that makes a controller the primary of a switch, and shows whether both live."""

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import grpc
from finsy.proto import p4r, rpc_code

from switchgnn.controller.errors import ControllerError, SwitchUnreachableError
from switchgnn.controller.p4runtime.rpc_errors import explain, no_primary, not_primary

# How long a switch may take to end the stream from its side.
_PARTING_SECONDS = 2.0

_Reply = p4r.MasterArbitrationUpdate | ControllerError


class Stream(Protocol):
    """The stream of a controller that is, or wants to be, the primary of a switch."""

    def wait_primary(self, deadline: float) -> None:
        """Wait for the switch's answer, no longer than ``deadline`` seconds.

        Raises:
            ControllerError: another controller is the primary, or nobody answers.
        """

    @property
    def alive(self) -> bool:
        """Whether the stream is still open, and its controller the primary."""

    def wait_ended(self, deadline: float) -> bool:
        """Wait at most ``deadline`` seconds for the stream to break; tell whether it did."""

    def close(self) -> None:
        """End the stream, if possible so that the switch knows before this returns."""


class Arbitration:
    """An open stream; a thread of its own reads it.

    The stream stays open until ``close`` or until the switch goes away: a
    switch makes another controller the primary when it ends.

    Args:
        open_stream: opens the stream of P4Runtime with an iterator of requests.
        address: of the switch, for errors.
        device_id: of the switch.
        election_id: the controller with the highest one is the primary.
    """

    def __init__(
        self,
        open_stream: Callable[[Iterator[p4r.StreamMessageRequest]], Any],
        address: str,
        device_id: int,
        election_id: int,
    ) -> None:
        self._address = address
        self._replies: queue.SimpleQueue[_Reply] = queue.SimpleQueue()
        self._requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._demoted = threading.Event()
        self._requests.put(_request(device_id, election_id))
        self._call = open_stream(iter(self._requests.get, None))
        self._reader = threading.Thread(target=self._read, name=f"stream {address}", daemon=True)
        self._reader.start()

    def wait_primary(self, deadline: float) -> None:
        """Wait for the switch's answer, at most ``deadline`` seconds.

        Raises:
            NotPrimaryError: another controller is the primary.
            NoPrimaryError: none is, because there was one with a higher election id.
            SwitchUnreachableError: no answer, or the stream broke.
        """
        try:
            reply = self._replies.get(timeout=deadline)
        except queue.Empty:
            raise SwitchUnreachableError(
                f"Switch {self._address} did not say within {deadline:g} s whether it accepts "
                "this controller: it hangs or is overloaded; restart it and try again."
            ) from None
        if isinstance(reply, ControllerError):
            raise reply
        if reply.status.code == rpc_code.NOT_FOUND:
            raise no_primary(self._address, reply.election_id.high << 64 | reply.election_id.low)
        if reply.status.code != rpc_code.OK:
            raise not_primary(self._address, reply.status.message or "no reason given")

    @property
    def alive(self) -> bool:
        """Whether the stream is open, and no other controller has become the primary."""
        return not self._ended.is_set() and not self._demoted.is_set()

    def wait_ended(self, deadline: float) -> bool:
        """Wait at most ``deadline`` seconds for the stream to break; tell whether it did."""
        return self._ended.wait(deadline)

    def close(self) -> None:
        """End the stream, if possible so that the switch knows before this returns.

        Cancelling alone would return at once, and the next controller would
        still find this one to be the primary.
        """
        self._requests.put(None)
        self._reader.join(_PARTING_SECONDS)
        self._call.cancel()
        self._reader.join(_PARTING_SECONDS)

    def _read(self) -> None:
        try:
            for response in self._call:
                if not response.HasField("arbitration"):
                    continue
                if response.arbitration.status.code == rpc_code.OK:
                    self._demoted.clear()
                else:
                    self._demoted.set()
                self._replies.put(response.arbitration)
        except grpc.RpcError as error:
            self._replies.put(_explain(self._address, error))
        finally:
            self._ended.set()


def _explain(address: str, error: Any) -> ControllerError:  # noqa: ANN401
    # Some switches end the stream of a second controller instead of answering it.
    if error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.ALREADY_EXISTS):
        return not_primary(address, error.details() or error.code().name)
    return explain(address, "asking to be its primary controller", error)


def _request(device_id: int, election_id: int) -> p4r.StreamMessageRequest:
    request = p4r.StreamMessageRequest()
    request.arbitration.device_id = device_id
    request.arbitration.election_id.CopyFrom(election_message(election_id))
    return request


def election_message(election_id: int) -> p4r.Uint128:
    """Return the 128 bits of an election id."""
    return p4r.Uint128(high=election_id >> 64, low=election_id & (1 << 64) - 1)
