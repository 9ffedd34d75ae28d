# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Drives an exchange in a thread of its own, while others compute."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from switchgnn.host.direct.exchange import DirectExchange

# Rows that are given while the thread waits for a frame leave after this number of seconds at
# most. A caller that waits for the thread gives none.
_GLANCE = 0.001
_FOREVER = float("inf")
_JOIN = 5.0
# What takes less time is over before anybody misses an answer.
_LONG = 0.05


class Driver:
    """A thread that steps while a round is under way. A context manager.

    Args:
        exchange: the exchange; no other thread steps it meanwhile.
    """

    def __init__(self, exchange: DirectExchange) -> None:
        self._exchange = exchange
        self._changed = threading.Condition()
        self._error: BaseException | None = None
        self._stopping = False
        self._waited_for = False
        # Set: nobody is to be answered.
        self._attended = threading.Event()
        self._attended.set()
        self._seconds = 0.0
        self._since: float | None = None
        self._thread = threading.Thread(target=self._run, name="exchange", daemon=True)

    def __enter__(self) -> "Driver":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping = True
        self._exchange.wake()
        self._thread.join(_JOIN)

    @property
    def seconds(self) -> float:
        """How long a round was under way so far."""
        since = self._since
        return self._seconds + (0.0 if since is None else time.perf_counter() - since)

    @contextmanager
    def attending(self) -> Iterator[None]:
        """Answer other workers during the block, if it takes long: ``DirectTransport.attend``."""
        over = threading.Event()
        later = threading.Timer(_LONG, self._attend, args=(over,))
        later.daemon = True
        later.start()
        try:
            yield
        finally:
            over.set()
            later.cancel()

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Wait until something is there, or the exchange has stopped.

        Raises:
            SwitchGNNError: what stopped it; see ``DirectExchange.step``.
        """
        with self._changed:
            try:
                while not ready():
                    if self._error is not None:
                        raise self._error
                    self._waited_for = True
                    self._changed.wait()
            finally:
                self._waited_for = False

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._exchange.sleep()
                self._since = time.perf_counter()
                while self._busy and not self._stopping:
                    if self._exchange.step(_FOREVER if self._waited_for else _GLANCE):
                        self._tell()
                self._seconds += time.perf_counter() - self._since
                self._since = None
        except BaseException as error:
            # It is raised in the thread that waits.
            self._error = error
            self._tell()

    @property
    def _busy(self) -> bool:
        return self._exchange.under_way or not self._attended.is_set()

    def _attend(self, over: threading.Event) -> None:
        self._attended = over
        self._exchange.wake()

    def _tell(self) -> None:
        with self._changed:
            self._waited_for = False
            self._changed.notify_all()
