# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The lines of a trace, taken apart."""

from collections.abc import Iterable
from dataclasses import dataclass

_FRAME_WORDS = 5


@dataclass(frozen=True)
class Crossing:
    """A frame on a line.

    Attributes:
        time: when it was sent, in nanoseconds.
        line: the line and the direction.
        fate: what became of it.
        arrives: when it comes; 0 if it does not.
        headers: its headers.
    """

    time: int
    line: str
    fate: str
    arrives: int
    headers: bytes


@dataclass(frozen=True)
class Note:
    """Something else.

    Attributes:
        time: when, in nanoseconds.
        where: a part, a line, or `check`.
        what: in words.
    """

    time: int
    where: str
    what: str


def read_trace(lines: Iterable[str]) -> list[Crossing | Note]:
    """Take apart the lines of a trace, as `switchgnn.virtual.trace.Trace` writes them."""
    return [_read(line) for line in lines]


def _read(line: str) -> Crossing | Note:
    words = line.split(" ")
    if len(words) == _FRAME_WORDS and words[1].endswith((".up", ".down")):
        time, where, fate, arrives, headers = words
        return Crossing(int(time), where, fate, int(arrives), bytes.fromhex(headers))
    time, where, what = line.split(" ", 2)
    return Note(int(time), where, what)
