# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Where the switches of a topology serve P4Runtime: a Unix socket each, unless TCP is asked for.

Any user of the machine can connect to a TCP port on loopback. A socket in a folder of the run's
own is for the user who started it. A switch in a network namespace of its own can be reached over
TCP only from there, but over such a socket from everywhere: a door leads to it from a TCP address.
"""

import asyncio
import os
import socket
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from switchgnn.base.files import private_folder
from switchgnn.base.full_disk import writing
from switchgnn.base.udp_socket import why_not_bound
from switchgnn.controller.p4runtime.connection import MOST_BYTES, SCHEME, fits_socket, socket_path
from switchgnn.topologies.errors import FabricError

_LONGEST_NAME = "spine-999.sock"
_SHORT_FOLDER = "/tmp"  # noqa: S108  a private folder is created in it
_ANSWER_SECONDS = 0.2
_CHUNK = 1 << 16
Result = TypeVar("Result")


def socket_address(folder: Path, name: str = "switch") -> str:
    """Return the address ``unix:PATH`` of a switch's socket in the private folder of a run.

    Raises:
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
        _require_room(path)
        return
    host, port = split_tcp(address)
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
        except OSError as error:
            raise taken(address, error) from error


def _require_room(path: Path) -> None:
    """Create a socket for a moment, as gRPC would not report why it cannot create the switch's."""
    trial = path.with_suffix(".try")
    with writing(trial), socket.socket(socket.AF_UNIX) as sock:
        sock.bind(os.fspath(trial))
        trial.unlink()


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


class TcpDoor:
    """Forwards TCP connections to a Unix socket, in a thread. A context manager."""

    def __init__(self, address: str, path: Path) -> None:
        self._address = address
        self._path = path
        self._loop = asyncio.new_event_loop()
        # A loop does not keep its tasks: https://docs.python.org/3/library/asyncio-task.html
        self._carrying: set[asyncio.Task[None] | None] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "TcpDoor":
        self._thread.start()
        host, port = split_tcp(self._address)
        try:
            self._server = self._wait_for(asyncio.start_server(self._carry, host, port))
        except OSError as error:
            self._end()
            raise taken(self._address, error) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._wait_for(self._close())
        self._end()

    def _wait_for(self, what: Coroutine[object, object, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        self._server.close()
        connections = asyncio.all_tasks() - {asyncio.current_task()}
        for each in connections:
            each.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._carrying.add(task)
        try:
            inner_reader, inner_writer = await asyncio.open_unix_connection(self._path)
            try:
                await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))
            finally:
                inner_writer.close()
        except OSError:
            pass  # The switch has ended; its client sees the connection end.
        except asyncio.CancelledError:
            pass  # Python 3.10 would report it as an error of the server.
        finally:
            writer.close()
            self._carrying.discard(task)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    # However one side ends, the other one is notified, unless it has ended itself.
    with suppress(OSError):
        writer.write_eof()
