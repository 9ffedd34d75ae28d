# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Register and counter arrays."""

from collections.abc import MutableSequence, Sequence


class RegisterCells:
    """Cells of a register array; ``cells`` stays the same list object."""

    def __init__(self, size: int, width: int) -> None:
        self.size = size
        self.width = width
        self.cells: MutableSequence[int] = [0] * size

    def image(self, number: int) -> Sequence[int]:
        """Return a copy of the first cells as they are kept: it is equal while they are."""
        return self.cells[:number]

    def reset(self) -> None:
        """Set every cell to zero."""
        self.cells[:] = [0] * self.size


class CounterCells:
    """Packet and byte counts of an indirect counter array."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.packets: MutableSequence[int] = [0] * size
        self.bytes: MutableSequence[int] = [0] * size

    def reset(self) -> None:
        """Set every count to zero."""
        self.packets[:] = [0] * self.size
        self.bytes[:] = [0] * self.size
