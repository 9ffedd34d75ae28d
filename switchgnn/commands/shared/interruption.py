# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, SIGTERM and a closed terminal end work at once, but never the cleaning up behind it."""

import signal
from types import FrameType
from typing import Any

from switchgnn.base.interruptible import Interrupt

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_like_interrupted() -> None:
    """Let SIGTERM and a closed terminal raise ``KeyboardInterrupt``, as Ctrl-C does.

    Under ``nohup`` a closed terminal stays ignored.
    """
    interrupt = Interrupt()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)


class Interruption:
    """Takes the signals that ask the program to end. A context manager.

    Attributes:
        came: whether one has come.
    """

    def __init__(self) -> None:
        self.came = False
        self._at_once = False
        self._interrupt = Interrupt()
        self._before: dict[signal.Signals, Any] = {}

    def at_once(self) -> None:
        """Let the first signal raise ``KeyboardInterrupt`` from now on."""
        self._at_once = True

    def later(self) -> None:
        """Only note signals from now on."""
        self._at_once = False
        self._interrupt.cancel()

    def __enter__(self) -> "Interruption":
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        self.later()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, frame: FrameType | None) -> None:
        first, self.came = not self.came, True
        # Impatient users press twice; the second time would stop the cleaning up.
        if first and self._at_once:
            self._interrupt(number, frame)
