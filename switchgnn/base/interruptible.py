# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C that leaves no lock of a library taken, and no folder that nobody knows of."""

import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

# What must not be left in the middle: locks, calls under way, shells, and processes or folders
# just made, which nobody else knows of yet.
_LIBRARIES = frozenset({"grpc", "mininet", "subprocess", "tempfile", "threading"})
_LOOK_SECONDS = 0.01
# A thread that is found at the same place so often in a row waits there for something.
_LOOKS_AT_ONE_PLACE = 3
_MOST_LOOKS = 200
_WAIT_SECONDS = 1.0


class Interrupt:
    """Raises ``KeyboardInterrupt`` in the main thread. A handler of signals.

    Python lets a handler raise between any two steps. Within
    ``threading.Condition.__exit__`` that leaves the lock taken for ever, and
    what cleans up behind it waits for the lock: about one in fifty commands
    that were told to end while gRPC wrote to a switch never did. Within
    ``tempfile.mkdtemp`` it leaves a folder for ever. So the interrupt waits
    while such a library has been called and goes on; where it stands still it
    waits for something, and may be interrupted.
    """

    def __init__(self) -> None:
        self._looks = 0
        self._place = (0, 0)
        self._looks_here = 0
        self._alarm_before: Any = None
        self._timer_before = (0.0, 0.0)

    def __call__(self, _number: int, frame: FrameType | None) -> None:
        """Take a signal: raise now, or as soon as it does no harm.

        Raises:
            KeyboardInterrupt: it is harmless.
        """
        if self._looks == 0:
            self._look(frame)

    def cancel(self) -> None:
        """Forget a signal that has come and was not raised yet."""
        if self._looks:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, self._alarm_before)
            signal.setitimer(signal.ITIMER_REAL, *self._timer_before)
            self._looks = 0

    def _look(self, frame: FrameType | None) -> None:
        if not _in_library(frame) or self._stands_still(frame) or self._looks >= _MOST_LOOKS:
            self.cancel()
            raise KeyboardInterrupt
        if self._looks == 0:
            self._timer_before = signal.setitimer(signal.ITIMER_REAL, 0.0)
            self._alarm_before = signal.signal(signal.SIGALRM, self._look_again)
            # Again and again: a handler runs between two steps only, so one alarm that came just
            # before a wait would be seen behind it (https://github.com/python/cpython/issues/98140).
            signal.setitimer(signal.ITIMER_REAL, _LOOK_SECONDS, _LOOK_SECONDS)
        self._looks += 1

    def _look_again(self, _number: int, frame: FrameType | None) -> None:
        # One that was sent before it was forgotten may still come.
        if self._looks:
            self._look(frame)

    def _stands_still(self, frame: FrameType | None) -> bool:
        place = (id(frame), -1 if frame is None else frame.f_lasti)
        self._looks_here = self._looks_here + 1 if self._looks and place == self._place else 1
        self._place = place
        return self._looks_here >= _LOOKS_AT_ONE_PLACE


def _in_library(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _LIBRARIES:
            return True
        frame = frame.f_back
    return False


def wait_for_interrupt() -> NoReturn:
    """Wait, in the main thread, until a signal ends it.

    In pieces, for the reason above: a signal that comes just before a wait begins is heard when
    that wait ends.

    Raises:
        KeyboardInterrupt: it has come, if that is what its handler does.
    """
    while True:
        select.select([], [], [], _WAIT_SECONDS)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C in the block clean up, and then do what it did before.

    Where it is ignored it stays so. Outside the main thread nothing changes.
    """
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
        # None: a handler that Python does not know of.
        signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)
