"""Serve P4Runtime on a Unix socket or a TCP address, with or without TLS."""

import os
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import grpc
from google.protobuf.message import Message

from switchgnn.base.files import read_regular
from switchgnn.base.udp_socket import why_not_bound
from switchgnn.softswitch.errors import GrpcAddressError
from switchgnn.softswitch.p4runtime.service import P4RuntimeService

_SCHEME = "unix:"
_OWNER_ONLY = 0o177  # umask of mode 0600
_MOST_BYTES = 107  # of a path: https://man7.org/linux/man-pages/man7/unix.7.html
# A call holds a thread while it lasts; the service leaves half of them to short calls.
_THREADS = 64
_MESSAGE_BYTES = 256 << 20
_LAST_PORT = 65_535
_GRACE, _LONGEST_STOP = 0.5, 4.0  # seconds until calls are cancelled, and then abandoned


def socket_path(address: str) -> Path | None:
    """Return the path of a Unix address, or None for any other address."""
    if not address.startswith(_SCHEME):
        return None
    path = address.removeprefix(_SCHEME)
    if not path or len(os.fsencode(path)) > _MOST_BYTES:
        raise GrpcAddressError(
            f"The gRPC address {address} cannot be used: choose a socket path of 1 to "
            f"{_MOST_BYTES} bytes."
        )
    return Path(path)


def _check_unused(path: Path) -> None:
    """Refuse a socket in use, which gRPC would replace."""
    with socket.socket(socket.AF_UNIX) as sock:
        if sock.connect_ex(os.fspath(path)) == 0:
            raise GrpcAddressError(
                f"The gRPC address {_SCHEME}{path} cannot be used: free it or choose another."
            )


@contextmanager
def _owner_only() -> Iterator[None]:
    before = os.umask(_OWNER_ONLY)
    try:
        yield
    finally:
        os.umask(before)


@dataclass(frozen=True)
class ServerTls:
    """PEM files: the server's certificate and key; with a client CA, clients need certificates."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


class P4RuntimeServer:
    """A gRPC server for one P4Runtime service."""

    def __init__(self, service: P4RuntimeService, address: str, tls: ServerTls | None) -> None:
        self._service = service
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="softswitch-grpc")
        self._server = grpc.server(
            self._threads,
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

    def stop(self) -> bool:
        """End all streams and stop serving; return whether all calls ended in time."""
        self._service.arbiter.close()
        end = threading.Thread(target=self._end, daemon=True)
        end.start()
        end.join(_GRACE + _LONGEST_STOP)
        return not end.is_alive()

    def _end(self) -> None:
        self._server.stop(_GRACE).wait()
        # A cancelled call has ended for gRPC, though its thread may still work.
        self._threads.shutdown()


def _handlers(service: P4RuntimeService) -> grpc.GenericRpcHandler:
    """Return the service for gRPC, which gets bytes, and returns them where they may be many.

    gRPC's own deserializers never release a request that they refuse, and its stream never ends.
    """
    load, get = service.SetForwardingPipelineConfig, service.GetForwardingPipelineConfig
    handlers = {
        method.__name__: grpc.unary_unary_rpc_method_handler(method, None, _serialized)
        for method in (service.Capabilities, load, get, service.Write)
    }
    handlers["Read"] = grpc.unary_stream_rpc_method_handler(service.Read)
    handlers["StreamChannel"] = grpc.stream_stream_rpc_method_handler(
        service.StreamChannel, None, _serialized
    )
    return grpc.method_handlers_generic_handler("p4.v1.P4Runtime", handlers)


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()


def _bind(server: grpc.Server, address: str, tls: ServerTls | None) -> str:
    path = socket_path(address)
    if path is None:
        _check_free(address)
    else:
        _check_unused(path)
    # gRPC expects a URI with a quoted path.
    target = address if path is None else f"unix:{quote(os.fspath(path))}"
    fix = "free it or choose another"
    try:
        with _owner_only() if path is not None else nullcontext():
            if tls is None:
                port = server.add_insecure_port(target)
            else:
                port = server.add_secure_port(target, _credentials(tls))
    except (RuntimeError, ValueError) as error:
        raise GrpcAddressError(
            f"The gRPC address {address} cannot be used: {fix} ({error})."
        ) from None
    if port == 0:
        raise GrpcAddressError(f"The gRPC address {address} cannot be used: {fix}.")
    return address if path is not None else f"{address.rpartition(':')[0]}:{port}"


def _check_free(address: str) -> None:
    """Bind to an address briefly, as gRPC logs more than one line about one in use."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _LAST_PORT:
        raise GrpcAddressError(
            f"Invalid gRPC address {address}: write unix:PATH or HOST:PORT, with a port from 0 "
            f"(any free one) to {_LAST_PORT}."
        )
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, place in found[:1]:
            with socket.socket(family, kind, protocol) as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind(place)
    except (OSError, UnicodeError) as error:
        why = why_not_bound(error, host, "choose another, such as 127.0.0.1:9559 or unix:PATH")
        raise GrpcAddressError(f"The gRPC address {address} cannot be used: {why}.") from None


def _credentials(tls: ServerTls) -> grpc.ServerCredentials:
    try:
        key, certificate = read_regular(tls.key), read_regular(tls.certificate)
        client_ca = None if tls.client_ca is None else read_regular(tls.client_ca)
        # gRPC would report an unusable address.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            tls.certificate, tls.key, password=""
        )
    except ssl.SSLError as error:
        raise GrpcAddressError(
            f"The TLS files {tls.certificate} and {tls.key} are not a certificate and its private "
            f"key ({error.reason}): give a matching pair of PEM files."
        ) from None
    except OSError as error:
        raise GrpcAddressError(f"A TLS file cannot be read: {error}.") from None
    return grpc.ssl_server_credentials(
        [(key, certificate)], root_certificates=client_ca, require_client_auth=client_ca is not None
    )
