# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A TCP address that leads to a Unix socket.

A switch in a network namespace of its own can be reached over TCP only from there, but over a
socket in a folder from everywhere.
"""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from switchgnn.topologies.rpc_address import split_tcp, taken

_CHUNK = 1 << 16
Result = TypeVar("Result")


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
