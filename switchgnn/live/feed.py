# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A feed that gives each reader the newest event; slow readers miss the others."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress

MOST_READERS = 16


class Feed:
    """Events that threads publish and tasks of an event loop read."""

    def __init__(self, most_readers: int = MOST_READERS) -> None:
        self._most = most_readers
        self._lock = threading.Lock()
        self._event: tuple[int, bytes] = (0, b"")
        self._over = False
        self._readers: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    def publish(self, data: bytes, *, last: bool = False) -> None:
        """Replace the event by another line of JSON; after the last, readers end."""
        with self._lock:
            self._event = (self._event[0] + 1, data)
            self._over = last
            readers = list(self._readers.items())
        for reader, loop in readers:
            # The loop may be closed by now.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(reader.set)

    @contextmanager
    def reader(self) -> Iterator[asyncio.Event | None]:
        """Register a reader in the running event loop; yield None if there are too many."""
        woken = asyncio.Event()
        with self._lock:
            full = len(self._readers) >= self._most
            if not full:
                self._readers[woken] = asyncio.get_running_loop()
        try:
            yield None if full else woken
        finally:
            with self._lock:
                self._readers.pop(woken, None)

    async def follow(self, woken: asyncio.Event) -> AsyncIterator[tuple[int, bytes]]:
        """Yield number and line of the newest event until the last; `woken` is from `reader`."""
        seen = 0
        while True:
            woken.clear()
            with self._lock:
                (number, data), over = self._event, self._over
            if number > seen:
                seen = number
                yield number, data
            if over:
                return
            await woken.wait()
