# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What has happened, a line for each thing: equal seeds give equal lines."""

import hashlib

from switchgnn.host.wire.header import BODY_AT, HEADER_AT
from switchgnn.lab.virtual.timing import Scheduler

# Lines are hashed together, which is cheaper than one by one.
_TOGETHER = 512


class Trace:
    """Keeps the digest of all lines, and the lines themselves if they are wanted.

    A line has the time in nanoseconds, where, what, and for a frame the time at which it comes and
    its headers in hexadecimal; their checksum is over the body, too. A frame that was changed
    on its way has the headers that it was sent with, and what became of it says the bits.

    Attributes:
        lines: the lines, if they are kept.
    """

    def __init__(self, scheduler: Scheduler, *, keeps: bool = False) -> None:
        self._scheduler = scheduler
        self._digest = hashlib.sha256()
        self._fresh: list[str] = []
        self._keeps = keeps
        self.lines: list[str] = []

    def frame(self, where: str, fate: str, arrives: int, frame: bytes) -> None:
        """Note what becomes of a frame on a line.

        Args:
            where: the line and the direction.
            fate: what becomes of it.
            arrives: when it arrives, in nanoseconds; 0 if it does not.
            frame: the whole frame.
        """
        self._fresh.append(
            f"{self._scheduler.now} {where} {fate} {arrives} {frame[HEADER_AT:BODY_AT].hex()}"
        )
        if len(self._fresh) >= _TOGETHER:
            self._take()

    def note(self, where: str, what: str) -> None:
        """Note something else."""
        self._fresh.append(f"{self._scheduler.now} {where} {what}")

    @property
    def digest(self) -> str:
        """SHA-256 of all lines so far."""
        self._take()
        return self._digest.hexdigest()

    def _take(self) -> None:
        if self._fresh:
            self._digest.update(("\n".join(self._fresh) + "\n").encode())
            if self._keeps:
                self.lines += self._fresh
            self._fresh.clear()
