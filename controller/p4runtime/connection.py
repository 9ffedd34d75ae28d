"""Connections to a switch over gRPC, and what is wrong with addresses and certificates."""

import errno
import os
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc
from finsy.proto import p4r, p4r_grpc, rpc_code

from switchgnn.base.files import user_name
from switchgnn.controller.base.errors import ControllerError, SwitchUnreachableError
from switchgnn.controller.p4runtime.rpc_errors import explain, no_primary, not_primary

# For the switch to end the stream.
_PARTING_SECONDS = 2.0
_Reply = p4r.MasterArbitrationUpdate | ControllerError


class Arbitration:
    """An open stream, read by its own thread until ``close`` or until the switch goes away.

    When it ends, the switch makes another controller the primary.
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
        self._lost = threading.Event()  # the stream, or the place as the primary
        request = p4r.StreamMessageRequest()
        request.arbitration.device_id = device_id
        request.arbitration.election_id.CopyFrom(election_message(election_id))
        self._requests.put(request)
        self._call = open_stream(iter(self._requests.get, None))
        self._reader = threading.Thread(target=self._read, name=f"stream {address}", daemon=True)
        self._reader.start()

    def wait_primary(self, deadline: float) -> None:
        """Wait for the switch's answer, at most ``deadline`` seconds."""
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
        return not self._lost.is_set()

    def close(self) -> None:
        """End the stream, if possible so that the switch knows before this returns.

        After a mere cancellation the next controller would still find this one the primary.
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
                    self._lost.clear()
                else:
                    self._lost.set()
                self._replies.put(response.arbitration)
        except grpc.RpcError as error:
            self._replies.put(_explain(self._address, error))
        finally:
            self._lost.set()


def _explain(address: str, error: Any) -> ControllerError:  # noqa: ANN401
    # Some switches end the stream of a second controller instead of answering it.
    if error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.ALREADY_EXISTS):
        return not_primary(address, error.details() or error.code().name)
    return explain(address, "asking to be its primary controller", error)


def election_message(election_id: int) -> p4r.Uint128:
    """Return the 128 bits of an election id."""
    return p4r.Uint128(high=election_id >> 64, low=election_id & (1 << 64) - 1)


SCHEME = "unix:"
MOST_BYTES = 107  # of a socket's path: https://man7.org/linux/man-pages/man7/unix.7.html


def socket_path(address: str) -> Path | None:
    """Return the path of a Unix address, or None for any other address."""
    return Path(address.removeprefix(SCHEME)) if address.startswith(SCHEME) else None


def grpc_target(address: str) -> str:
    """Return gRPC's URI for an address, with its path quoted."""
    path = socket_path(address)
    if path is None:
        return address
    if not fits_socket(path):
        raise ControllerError(
            f"No switch can be at {address}: the path of a socket has at most {MOST_BYTES} bytes."
        )
    return f"{SCHEME}{quote(os.fspath(path))}"


def fits_socket(path: Path) -> bool:
    """Return whether a socket may have this path."""
    return len(os.fsencode(path)) <= MOST_BYTES


def check_owner(address: str) -> None:
    """Check that a socket belongs to this user or root, not to another in a shared folder."""
    path = socket_path(address)
    if path is None:
        return
    try:
        owner = path.stat().st_uid
    except OSError:
        return  # Connecting reports a missing socket.
    if owner not in (os.geteuid(), 0):
        raise ControllerError(
            f"The socket {path} is not connected to: it belongs to user {user_name(owner)}. Be "
            "that user, or give the address of your own switch."
        )


def advice(address: str) -> str:
    """Return the remedy for a switch that does not answer."""
    path = socket_path(address)
    usual = "start it, or give the address of its P4Runtime server (HOST:PORT or unix:PATH)"
    if path is None:
        return usual
    with socket.socket(socket.AF_UNIX) as sock:
        failed = sock.connect_ex(os.fspath(path))
    if failed in (errno.EACCES, errno.EPERM):
        return "its socket is for the user who started it; be that user"
    return usual if failed != errno.ENOENT else f"there is no socket {path}; {usual}"


_CLOSING_SECONDS = 2.0
_CHANNEL_OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # Find a restarted switch within a second.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # No channel shares the connection, or the backoff, of an earlier one.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
)


@dataclass(frozen=True)
class TlsOptions:
    """Files (PEM) for an encrypted connection."""

    root_certificate: Path | None = None  # whom to trust; None trusts the system's authorities
    certificate: Path | None = None  # the client's own, when the switch asks for one
    key: Path | None = None  # the private key of ``certificate``

    def check(self) -> None:
        """Check that the files are what they should be, as gRPC does not say what is wrong."""
        root, certificate, key = self.root_certificate, self.certificate, self.key
        if (certificate is None) != (key is None):
            raise ControllerError("A TLS client certificate needs its key: give both or neither.")
        context, tried = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), str(root)
        # gRPC decides on the strength of keys.
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        try:
            if root is not None:
                context.load_verify_locations(root)
            if certificate is not None:
                tried = f"{certificate} with the key {key}"
                # Without a password OpenSSL would ask at the terminal.
                context.load_cert_chain(certificate, key, password="")
        except OSError as error:
            why = error.reason if isinstance(error, ssl.SSLError) else error.strerror
            raise ControllerError(
                f"The TLS file {tried} cannot be used ({why}): give the paths of PEM files that "
                "belong together."
            ) from error

    def credentials(self) -> Any:  # noqa: ANN401
        """Return gRPC's credentials."""
        return grpc.ssl_channel_credentials(
            *(path and path.read_bytes() for path in (self.root_certificate, self.key)),
            certificate_chain=self.certificate and self.certificate.read_bytes(),
        )


class Connection:
    """A gRPC channel to one switch."""

    def __init__(self, address: str, tls: TlsOptions | None) -> None:
        self._address = address
        target, options = grpc_target(address), _CHANNEL_OPTIONS
        self._channel: Any = (
            grpc.insecure_channel(target, options)
            if tls is None
            else grpc.secure_channel(target, tls.credentials(), options)
        )
        self.stub: Any = p4r_grpc.P4RuntimeStub(self._channel)
        # Without serializers a call takes and gives bytes. `write` returns gRPC's future, and
        # `read` yields the answers as they come.
        self.write: Any = self._channel.unary_unary("/p4.v1.P4Runtime/Write").future
        self.read: Any = self._channel.unary_stream("/p4.v1.P4Runtime/Read")

    def stream(self, device_id: int, election_id: int) -> Arbitration:
        """Open the stream that makes a controller the primary."""
        return Arbitration(self.stub.StreamChannel, self._address, device_id, election_id)

    def close(self) -> None:
        """Disconnect within a time limit; otherwise the channel ends with the process.

        gRPC waits for all calls to end. A call that Ctrl-C interrupted at its beginning never ends,
        because nothing reads its events
        (https://github.com/grpc/grpc/blob/master/src/python/grpcio/grpc/_cython/_cygrpc/channel.pyx.pxi).
        """
        closing = threading.Thread(target=self._channel.close, daemon=True)
        closing.start()
        closing.join(_CLOSING_SECONDS)


Connect = Callable[[str, TlsOptions | None], Connection]
