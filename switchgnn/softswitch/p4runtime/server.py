# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the P4Runtime service on a Unix socket or a TCP address, with or without TLS."""

import os
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import grpc
from finsy.proto import p4r

from switchgnn.base.files import read_regular
from switchgnn.softswitch.errors import GrpcAddressError
from switchgnn.softswitch.p4runtime.service import P4RuntimeService

_SCHEME = "unix:"
# What a process makes under this mask has mode 0600.
_OWNER_ONLY = 0o177
_MOST_BYTES = 107  # of a path: https://man7.org/linux/man-pages/man7/unix.7.html


def socket_path(address: str) -> Path | None:
    """Return the path of a Unix address, or None for any other address.

    Raises:
        GrpcAddressError: the path is missing, or too long for a socket.
    """
    if not address.startswith(_SCHEME):
        return None
    path = address.removeprefix(_SCHEME)
    if not path or len(os.fsencode(path)) > _MOST_BYTES:
        raise GrpcAddressError(
            f"The gRPC address {address} cannot be used: the path of a socket has 1 to "
            f"{_MOST_BYTES} bytes; choose a shorter one."
        )
    return Path(path)


def check_unused(path: Path) -> None:
    """Check that nobody listens there: gRPC would take the path away.

    Raises:
        GrpcAddressError: somebody does.
    """
    with socket.socket(socket.AF_UNIX) as sock:
        if sock.connect_ex(os.fspath(path)) == 0:
            raise GrpcAddressError(
                f"The gRPC address {_SCHEME}{path} cannot be used: stop what uses it or choose "
                "another."
            )


def check_room(path: Path) -> None:
    """Make a socket beside the path for a moment: gRPC would not say why it cannot make one.

    Raises:
        GrpcAddressError: none can be made there.
    """
    trial = path.with_suffix(f".{os.getpid()}")
    if len(os.fsencode(trial)) > _MOST_BYTES:
        return
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(os.fspath(trial))
            trial.unlink()
    except OSError as error:
        raise GrpcAddressError(
            f"The gRPC address {_SCHEME}{path} cannot be used: {error.strerror}; make room there "
            "or choose another."
        ) from None


@contextmanager
def owner_only() -> Iterator[None]:
    """Let what is made inside be open to its owner alone, from its first moment."""
    before = os.umask(_OWNER_ONLY)
    try:
        yield
    finally:
        os.umask(before)


# Each call has one as long as it lasts; the service leaves half of them to short calls.
_THREADS = 64
_MESSAGE_BYTES = 256 << 20
_LAST_PORT = 65_535


@dataclass(frozen=True)
class TlsFiles:
    """PEM files: the server's certificate and key, and the CA its clients must have, if any."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


class P4RuntimeServer:
    """A gRPC server for one P4Runtime service.

    Args:
        service: what answers the requests.
        address: where to listen: unix:PATH, or HOST:PORT, of which port 0 means any free one.
        tls: the files for TLS, or None for plain connections.

    Raises:
        GrpcAddressError: the address cannot be used or a file cannot be read.
    """

    def __init__(self, service: P4RuntimeService, address: str, tls: TlsFiles | None) -> None:
        self._service = service
        self._server = grpc.server(
            ThreadPoolExecutor(_THREADS, thread_name_prefix="softswitch-grpc"),
            options=[
                # Without this a second server on the port would silently share it.
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", _MESSAGE_BYTES),
                ("grpc.max_send_message_length", _MESSAGE_BYTES),
            ],
        )
        self._server.add_generic_rpc_handlers((_handlers(service),))
        self.address = _bind(self._server, address, tls)

    def start(self) -> None:
        """Start serving."""
        self._server.start()

    def stop(self) -> None:
        """End every stream and wait until nothing is served."""
        self._service.arbiter.close()
        self._server.stop(grace=0.5).wait()


def _handlers(service: P4RuntimeService) -> grpc.GenericRpcHandler:
    """Return the service for gRPC. Writes and the answers to Reads are bytes: they may be large."""
    unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
    pipe = grpc.stream_stream_rpc_method_handler
    return grpc.method_handlers_generic_handler(
        "p4.v1.P4Runtime",
        {
            "Write": unary(service.Write, None, p4r.WriteResponse.SerializeToString),
            "Read": stream(service.Read, p4r.ReadRequest.FromString, None),
            "SetForwardingPipelineConfig": unary(
                service.SetForwardingPipelineConfig,
                p4r.SetForwardingPipelineConfigRequest.FromString,
                p4r.SetForwardingPipelineConfigResponse.SerializeToString,
            ),
            "GetForwardingPipelineConfig": unary(
                service.GetForwardingPipelineConfig,
                p4r.GetForwardingPipelineConfigRequest.FromString,
                p4r.GetForwardingPipelineConfigResponse.SerializeToString,
            ),
            "StreamChannel": pipe(
                service.StreamChannel,
                p4r.StreamMessageRequest.FromString,
                p4r.StreamMessageResponse.SerializeToString,
            ),
            "Capabilities": unary(
                service.Capabilities,
                p4r.CapabilitiesRequest.FromString,
                p4r.CapabilitiesResponse.SerializeToString,
            ),
        },
    )


def _bind(server: grpc.Server, address: str, tls: TlsFiles | None) -> str:
    path = socket_path(address)
    if path is None:
        _check_free(address)
    else:
        check_unused(path)
        check_room(path)
    # gRPC takes a URI, in which a path is quoted.
    target = address if path is None else f"unix:{quote(os.fspath(path))}"
    mend = "stop what uses it or choose another"
    try:
        with owner_only() if path is not None else nullcontext():
            if tls is None:
                port = server.add_insecure_port(target)
            else:
                port = server.add_secure_port(target, _credentials(tls))
    except (RuntimeError, ValueError) as error:
        raise GrpcAddressError(
            f"The gRPC address {address} cannot be used: {mend} ({error})."
        ) from None
    if port == 0:
        raise GrpcAddressError(f"The gRPC address {address} cannot be used: {mend}.")
    return address if path is not None else f"{address.rpartition(':')[0]}:{port}"


def _check_free(address: str) -> None:
    """Bind to an address for a moment: gRPC would write lines of its own about one that is taken.

    Raises:
        GrpcAddressError: it cannot be bound to.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _LAST_PORT:
        raise GrpcAddressError(
            f"The gRPC address {address} is not understood: write unix:PATH or HOST:PORT, with a "
            f"port from 0 (any that is free) to {_LAST_PORT}."
        )
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, place in found[:1]:
            with socket.socket(family, kind, protocol) as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind(place)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no such name"
        raise GrpcAddressError(
            f"The gRPC address {address} cannot be used: {why or error}; stop what uses it, or "
            "choose another, as 127.0.0.1:9559 or unix:PATH."
        ) from None


def _credentials(tls: TlsFiles) -> grpc.ServerCredentials:
    try:
        key, certificate = read_regular(tls.key), read_regular(tls.certificate)
        client_ca = None if tls.client_ca is None else read_regular(tls.client_ca)
        # gRPC would say that the address cannot be used.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            tls.certificate, tls.key, password=""
        )
    except ssl.SSLError as error:
        raise GrpcAddressError(
            f"The TLS files {tls.certificate} and {tls.key} are not a certificate and its private "
            f"key ({error.reason}): give the paths of PEM files that belong together."
        ) from None
    except OSError as error:
        raise GrpcAddressError(f"A TLS file cannot be read: {error}.") from None
    return grpc.ssl_server_credentials(
        [(key, certificate)],
        root_certificates=client_ca,
        require_client_auth=client_ca is not None,
    )
