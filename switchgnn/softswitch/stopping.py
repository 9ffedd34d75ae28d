# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Waits for the signals that end the process."""

import ctypes
import os
import signal
import socket
from types import TracebackType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_PR_SET_PDEATHSIG = 1


class StopSignals:
    """Notices SIGINT and SIGTERM while it is entered, in the main thread.

    A handler that sets a ``threading.Event`` is not reliable. It runs only between two
    steps of Python, so if it is due just before the main thread sleeps on the event, it is
    never run (https://github.com/python/cpython/issues/98140); and if it runs while the
    main thread has the event's lock, it waits for that lock forever. What the interpreter
    writes to a socket stays there until it is read, in whichever thread the signal arrived.
    """

    def __init__(self) -> None:
        self._notices, self._writer = socket.socketpair()
        self._writer.setblocking(False)

    def __enter__(self) -> "StopSignals":
        # One signal is enough, so it does not matter when the socket is full of them.
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in STOP_SIGNALS:
            # Without a handler the process would end at once, with nothing written.
            signal.signal(number, lambda _number, _frame: None)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        # The handlers stay, so that another signal does not disturb the end of the process.
        signal.set_wakeup_fd(-1)
        self._notices.close()
        self._writer.close()

    def wait(self) -> signal.Signals:
        """Return the signal that has come once there is one, also when it came before this call."""
        while (number := self._notices.recv(1)[0]) not in STOP_SIGNALS:
            pass
        return signal.Signals(number)


def stop_with_parent() -> None:
    """Let this process receive SIGTERM when the thread that started it ends."""
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    # The parent may have ended before the request above reached the kernel.
    if os.getppid() != parent or parent == 1:
        signal.raise_signal(signal.SIGTERM)
