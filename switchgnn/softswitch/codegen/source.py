# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Collects lines of generated Python with their indentation."""

from collections.abc import Iterator
from contextlib import contextmanager


class SourceWriter:
    """A list of lines and the current block depth."""

    def __init__(self, depth: int = 0) -> None:
        self.lines: list[str] = []
        self._depth = depth

    def line(self, text: str) -> None:
        """Append one line at the current depth."""
        # One space per level is enough for Python, and keeps the source short.
        self.lines.append(" " * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Open a block such as ``if a:``; an empty block gets ``pass``."""
        self.line(header)
        self._depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self._depth -= 1

    def text(self) -> str:
        """Return all lines, each ended by a newline."""
        return "".join(line + "\n" for line in self.lines)
