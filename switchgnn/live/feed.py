# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Hands the newest event to all who read; nothing is kept for those that are slow."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress

# Each reader is a page that is open.
MOST_READERS = 16


class Feed:
    """What a thread publishes, and the tasks of a server's event loop read.

    Args:
        most_readers: how many may read at the same time.
    """

    def __init__(self, most_readers: int = MOST_READERS) -> None:
        self._most = most_readers
        self._lock = threading.Lock()
        self._event: tuple[int, bytes] = (0, b"")
        self._over = False
        # Each reader waits in a loop of its own server.
        self._readers: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    def publish(self, data: bytes, *, last: bool = False) -> None:
        """Put an event in the place of the one before."""
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
        """Take part as a reader; None: there are too many already. In an event loop."""
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
        """Yield the newest event, again and again, until the last."""
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
