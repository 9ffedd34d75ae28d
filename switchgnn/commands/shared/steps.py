# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Progress of work whose steps may spend minutes in a library."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

# Work that is shorter than this needs no words.
_QUIET_SECONDS = 2.0


class Steps:
    """Says each step on stderr once the work has taken a while. A context manager.

    Libraries such as METIS let no Python code run until they are done: no spinner turns, and
    Ctrl-C would wait for them. So the words stand before the step begins, and Ctrl-C ends
    the process at once. Nothing that this work leaves can break by that: plans are written
    aside and put into place in one step.
    """

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._before: Any = None
        self._pending: str | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(_QUIET_SECONDS, self._speak)
        self._timer.daemon = True

    def __enter__(self) -> "Steps":
        self._start = time.monotonic()
        self._timer.start()
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, signal.SIG_DFL)
        return self

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """Let Ctrl-C in the block clean up, as Python does."""
        if self._before is None:
            yield
            return
        signal.signal(signal.SIGINT, self._before)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.SIG_DFL)

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def tell(self, step: str) -> None:
        """Begin a step."""
        with self._lock:
            self._pending = step
        if time.monotonic() - self._start > _QUIET_SECONDS:
            self._speak()

    def _speak(self) -> None:
        """Say what is being done, once."""
        with self._lock:
            if self._pending is not None:
                seconds = time.monotonic() - self._start
                typer.echo(f"{seconds:7.1f} s  {self._pending}", err=True)
                self._pending = None
