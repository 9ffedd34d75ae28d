# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What has happened, a line for each thing: equal seeds give equal lines."""

import hashlib

from switchgnn.host.wire.header import BODY_AT, HEADER_AT, Kind
from switchgnn.virtual.timing.scheduler import Scheduler

# Lines are hashed together, which is cheaper than one by one.
_TOGETHER = 512


class Trace:
    """Keeps the digest of all lines, and the lines themselves if they are wanted.

    A line has the time in nanoseconds, where, what, and for a frame the time at which it comes and
    its headers in hexadecimal; their checksum is over the body, too. A frame that was changed
    on its way has the headers that it was sent with, and what became of it says the bits.

    Args:
        scheduler: tells the time.
        keeps: whether the lines are wanted.

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


def described(header: str) -> str:
    """Return the kind and the place that the headers of a line speak of."""
    frame = _ENVELOPE + bytes.fromhex(header)
    if len(frame) < BODY_AT:
        return "another protocol"
    kind = frame[HEADER_AT + 12] & 0xF
    name = Kind(kind).name if kind in set(Kind) else f"kind {kind}"
    place = _place(frame)
    return f"{name} {place}"


_ENVELOPE = bytes(HEADER_AT)


def _place(frame: bytes) -> str:
    word = int.from_bytes
    source, target = word(frame[34:38], "big"), word(frame[38:42], "big")
    block, count = word(frame[42:44], "big"), word(frame[44:46], "big")
    fragment, group = word(frame[48:50], "big"), word(frame[50:52], "big")
    session, round_number = frame[52], word(frame[53:56], "big")
    others = {"source": source, "destination": target, "count": count, "group": group}
    told = "".join(f", {name} {value}" for name, value in others.items() if value)
    return f"session {session} round {round_number} block {block} fragment {fragment}{told}"
