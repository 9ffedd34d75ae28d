# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How a client reaches a switch: over gRPC, unless it is given another way."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import grpc
from finsy.proto import p4r_grpc

from switchgnn.base.files import read_regular
from switchgnn.controller.errors import ControllerError
from switchgnn.controller.p4runtime.address import grpc_target
from switchgnn.controller.p4runtime.arbitration import Arbitration, Stream

_CLOSING_SECONDS = 2.0
_CHANNEL_OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # A restarted switch is found within a second.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # No channel shares the connection, or the backoff, of an earlier one.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
)


@dataclass(frozen=True)
class TlsOptions:
    """Files (PEM) for an encrypted connection.

    Attributes:
        root_certificate: whom to trust; None trusts the system's authorities.
        certificate: the client's own, when the switch asks for one.
        key: the private key of ``certificate``.
    """

    root_certificate: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def credentials(self) -> Any:  # noqa: ANN401
        """Return gRPC's credentials.

        Raises:
            ControllerError: a file cannot be read, or a certificate lacks its key.
        """
        if (self.certificate is None) != (self.key is None):
            raise ControllerError("A TLS client certificate needs its key: give both or neither.")
        return grpc.ssl_channel_credentials(
            root_certificates=_read(self.root_certificate),
            private_key=_read(self.key),
            certificate_chain=_read(self.certificate),
        )


class Connection(Protocol):
    """A way to one switch."""

    @property
    def stub(self) -> Any:  # noqa: ANN401
        """The calls of P4Runtime, as gRPC's stub has them."""

    def write(self, request: bytes, timeout: float) -> Any:  # noqa: ANN401
        """Begin a Write with a serialized request; return what has ``result`` and ``exception``."""

    def read(self, request: bytes, timeout: float) -> Any:  # noqa: ANN401
        """Return the serialized answers to a serialized Read as they come."""

    def stream(self, device_id: int, election_id: int) -> Stream:
        """Open the stream that makes a controller the primary."""

    def close(self) -> None:
        """Disconnect."""


Connect = Callable[[str, TlsOptions | None], Connection]


class GrpcConnection:
    """A gRPC channel.

    Args:
        address: of the P4Runtime server, ``HOST:PORT`` or ``unix:PATH``.
        tls: None for an unencrypted connection.
    """

    def __init__(self, address: str, tls: TlsOptions | None) -> None:
        self._address = address
        target = grpc_target(address)
        if tls is not None:
            self._channel: Any = grpc.secure_channel(
                target, tls.credentials(), options=_CHANNEL_OPTIONS
            )
        else:
            self._channel = grpc.insecure_channel(target, options=_CHANNEL_OPTIONS)
        self._stub = p4r_grpc.P4RuntimeStub(self._channel)
        # Without serializers a call takes and gives bytes.
        self._write = self._channel.unary_unary("/p4.v1.P4Runtime/Write").future
        self._read = self._channel.unary_stream("/p4.v1.P4Runtime/Read")

    @property
    def stub(self) -> Any:  # noqa: ANN401
        """The calls of P4Runtime."""
        return self._stub

    def write(self, request: bytes, timeout: float) -> Any:  # noqa: ANN401
        """Begin a Write with a serialized request; return what has ``result`` and ``exception``."""
        return self._write(request, timeout=timeout)

    def read(self, request: bytes, timeout: float) -> Any:  # noqa: ANN401
        """Return the serialized answers to a serialized Read as they come."""
        return self._read(request, timeout=timeout)

    def stream(self, device_id: int, election_id: int) -> Stream:
        """Open the stream that makes a controller the primary."""
        return Arbitration(self._stub.StreamChannel, self._address, device_id, election_id)

    def close(self) -> None:
        """Disconnect."""
        _close(self._channel)


def _read(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return read_regular(path)
    except OSError as error:
        raise ControllerError(
            f"Cannot read the TLS file {path}: {error.strerror}: give the path of a PEM file."
        ) from error


def _close(channel: Any) -> None:  # noqa: ANN401
    """Close a channel, unless it cannot be: then it ends with the process.

    gRPC waits for all calls to end. One that Ctrl-C has interrupted at its very beginning never
    does, because nothing reads its events
    (https://github.com/grpc/grpc/blob/master/src/python/grpcio/grpc/_cython/_cygrpc/channel.pyx.pxi).
    """
    closing = threading.Thread(target=channel.close, name="closing a channel", daemon=True)
    closing.start()
    closing.join(_CLOSING_SECONDS)
