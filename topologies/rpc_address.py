"""Where the switches of a topology serve P4Runtime: a Unix socket each, unless TCP is asked for.

Any user of the machine can connect to a TCP port on loopback. A socket in a folder of the run's
own is for the user who started it. A switch in a network namespace of its own can be reached over
TCP only from there, but over such a socket from everywhere: a door leads to it from a TCP address.

A free port may be taken before the program that is to listen has started. All of 127.0.0.0/8 is
loopback on Linux, so the links of each caller get an address of their own.
"""

import os
import random
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from switchgnn.base.files import private_folder, writing
from switchgnn.base.udp_socket import why_not_bound
from switchgnn.controller.p4runtime.connection import MOST_BYTES, SCHEME, fits_socket, socket_path
from switchgnn.topologies.errors import FabricError

_LONGEST_NAME = "spine-999.sock"
_SHORT_FOLDER = "/tmp"  # noqa: S108  a private folder is created in it
_ANSWER_SECONDS = 0.2
_CHUNK = 1 << 16
_POLL_SECONDS = 0.02
_COMMON_HOST = "127.0.0.1"


def socket_address(folder: Path, name: str = "switch") -> str:
    """Return the address ``unix:PATH`` of a switch's socket in the private folder of a run.

    FabricError: the path is too long for a socket.
    """
    path = folder.absolute() / f"{name}.sock"
    if not fits_socket(path):
        raise FabricError(
            f"The path of a socket has at most {MOST_BYTES} bytes, and {path} is longer: choose a "
            "shorter folder for temporary files (TMPDIR)."
        )
    return f"{SCHEME}{path}"


@contextmanager
def folder_for_sockets(folder: Path) -> Iterator[Path]:
    """Yield the folder of a run, or a new one if its path is too long for sockets."""
    if fits_socket(folder.absolute() / _LONGEST_NAME):
        yield folder
        return
    with private_folder("switchgnn-", _SHORT_FOLDER) as short:
        yield short


def split_tcp(address: str) -> tuple[str, int]:
    """Return host and port of ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    return host, int(port)


def require_free(address: str) -> None:
    """Check that nothing listens on the address yet."""
    if (path := socket_path(address)) is not None:
        if answers(address):
            raise FabricError(f"A switch serves at {path} already: end it first.")
        # For a moment, as gRPC would not report why it cannot create the switch's socket.
        trial = path.with_suffix(".try")
        with writing(trial), socket.socket(socket.AF_UNIX) as sock:
            sock.bind(os.fspath(trial))
            trial.unlink()
        return
    host, port = split_tcp(address)
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
        except OSError as error:
            raise taken(address, error) from error


def taken(address: str, error: OSError) -> FabricError:
    """Return the error for a TCP address that cannot be used."""
    host, port = split_tcp(address)
    why = why_not_bound(error, host, "choose another with --grpc-port")
    return FabricError(f"Port {port} on {host} cannot be used: {why}.")


def answers(address: str) -> bool:
    """Return whether a server listens on the address."""
    path = socket_path(address)
    family, where = (
        (socket.AF_INET, split_tcp(address)) if path is None else (socket.AF_UNIX, os.fspath(path))
    )
    with socket.socket(family) as sock:
        sock.settimeout(_ANSWER_SECONDS)
        return sock.connect_ex(where) == 0


class TcpDoor(socketserver.ThreadingTCPServer):
    """Forwards TCP connections to a Unix socket, in threads. A context manager."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, address: str, path: Path) -> None:
        self.path = path
        self.open: set[socket.socket] = set()
        try:
            super().__init__(split_tcp(address), _Connection)
        except OSError as error:
            raise taken(address, error) from error

    def __enter__(self) -> "TcpDoor":
        threading.Thread(target=self.serve_forever, args=(_POLL_SECONDS,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
        for each in tuple(self.open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class _Connection(socketserver.BaseRequestHandler):
    server: TcpDoor

    def handle(self) -> None:
        # If the switch has ended, its client sees the connection end.
        with suppress(OSError), socket.socket(socket.AF_UNIX) as switch:
            switch.connect(os.fspath(self.server.path))
            ends = {self.request, switch}
            self.server.open |= ends
            back = threading.Thread(target=_copy, args=(switch, self.request), daemon=True)
            back.start()
            _copy(self.request, switch)
            back.join()
            self.server.open -= ends


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    # However one side ends, the other one is notified, unless it has ended itself.
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def free_udp_addresses(count: int) -> list[str]:
    """Return ``count`` different ``HOST:PORT`` for UDP, on a loopback address of their own."""
    # Not seeded: two processes with one seed must not choose the same.
    chosen = random.SystemRandom()
    host = f"127.{chosen.randint(1, 254)}.{chosen.randint(0, 255)}.{chosen.randint(1, 254)}"
    with ExitStack() as stack:
        sockets = [
            stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            for _ in range(count)
        ]
        for sock in sockets:
            _bind(sock, host)
        return [f"{host}:{sock.getsockname()[1]}" for sock in sockets]


def free_tcp_port() -> int:
    """Return a TCP port that is free now on 127.0.0.1, for programs that take no other address."""
    with socket.socket() as sock:
        _bind(sock, _COMMON_HOST)
        port: int = sock.getsockname()[1]
        return port


def _bind(sock: socket.socket, host: str) -> None:
    try:
        sock.bind((host, 0))
    except OSError as error:
        raise FabricError(f"{host} cannot be used: {why_not_bound(error, host)}.") from error
