# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C that leaves no lock of a library taken and no temporary folder behind."""

import _thread
import select
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_LIBRARIES = frozenset({"grpc", "mininet", "subprocess", "tempfile", "threading"})
_DELAY_SECONDS = 0.01
_MOST_DELAYS = 50
_WAIT_SECONDS = 1.0


class Interrupt:
    """A signal handler that raises ``KeyboardInterrupt``, up to half a second late.

    Raised within ``threading.Condition.__exit__`` it would leave a lock taken, on which gRPC
    then waits forever, and within ``tempfile.mkdtemp`` a folder. So it is delayed while the main
    thread is inside such a library.
    """

    def __init__(self) -> None:
        self._delays = 0
        self._delayed = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, now or later."""
        if self._delayed:
            return
        if self._delays == _MOST_DELAYS or not _in_library(frame):
            self._delays = 0
            raise KeyboardInterrupt
        self._delays += 1
        self._delayed = True
        # threading.Thread takes locks that the main thread may hold.
        _thread.start_new_thread(self._send_again, (number,))

    @property
    def owed(self) -> bool:
        """Whether a signal has come that has not been raised yet."""
        return self._delays > 0

    def cancel(self) -> None:
        """Forget a delayed signal."""
        self._delays = 0
        self._delayed = False

    def _send_again(self, number: int) -> None:
        time.sleep(_DELAY_SECONDS)
        if self._delayed:
            self._delayed = False
            signal.pthread_kill(threading.main_thread().ident or 0, number)


def _in_library(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _LIBRARIES:
            return True
        frame = frame.f_back
    return False


def wait_for_interrupt() -> NoReturn:
    """Wait until a signal handler raises.

    A signal that arrives just before one of the waits is handled after it.
    """
    while True:
        select.select([], [], [], _WAIT_SECONDS)


@contextmanager
def interruptible() -> Iterator[None]:
    """Use `Interrupt` for Ctrl-C in the block, unless it is ignored or this is another thread."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    interrupt = Interrupt()
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        interrupt.cancel()
        # None: a handler that Python did not install.
        signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)
