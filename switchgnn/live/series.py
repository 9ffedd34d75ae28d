# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Values over time in bounded memory."""

from typing import Generic, TypeVar

_Value = TypeVar("_Value")


class Series(Generic[_Value]):
    """The values of a whole run, evenly thinned out when they become many.

    Args:
        most: how many are kept, two or more; the newest always is.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[_Value] = []
        self._newest: _Value | None = None
        self._stride = 1
        self._count = 0

    def add(self, value: _Value) -> None:
        """Add the next value."""
        if self._count % self._stride == 0:
            self._kept.append(value)
            if len(self._kept) >= self._most:
                self._kept = self._kept[::2]
                self._stride *= 2
        self._count += 1
        self._newest = value

    def values(self) -> tuple[_Value, ...]:
        """Return what is kept, oldest first."""
        newest = self._newest
        if newest is None or self._kept[-1] is newest:
            return tuple(self._kept)
        return (*self._kept, newest)
