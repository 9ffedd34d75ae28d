# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What the C++ of a program calls its tables and arrays, and how large their parts are."""

from collections.abc import Mapping
from dataclasses import dataclass

from switchgnn.softswitch.program import Program, Table, key_width


@dataclass(frozen=True)
class TableShape:
    """How a table is laid out.

    Attributes:
        table: the table.
        number: its number in the program.
        widths: the bits of each field of its key.
        key_words: the words of a key.
        parameter_widths: the bits of each parameter, by the action's number in the table.
    """

    table: Table
    number: int
    widths: tuple[int, ...]
    key_words: int
    parameter_widths: tuple[tuple[int, ...], ...]

    @property
    def kind(self) -> str:
        """``exact``, ``lpm`` or ``priority``."""
        if self.table.match_type in {"exact", "lpm"}:
            return self.table.match_type
        return "priority"

    def offsets(self, action: int) -> tuple[int, ...]:
        """Return where each parameter of an action begins, in bytes."""
        sizes = [byte_size(width) for width in self.parameter_widths[action]]
        return tuple(sum(sizes[:index]) for index in range(len(sizes)))

    @property
    def entry_bytes(self) -> int:
        """The bytes of the parameters of its longest action."""
        return max((sum(map(byte_size, widths)) for widths in self.parameter_widths), default=0)

    def shift(self, field: int) -> int:
        """Return how many bits of the key are behind a field."""
        return sum(self.widths[field + 1 :])


def byte_size(width: int) -> int:
    """Return the bytes of a number of a width in bits."""
    return (width + 7) // 8


def table_shapes(program: Program) -> Mapping[str, TableShape]:
    """Return the shapes of all tables by their names."""
    shapes = {}
    for number, (name, table) in enumerate(program.tables.items()):
        widths = tuple(key_width(program, field.target) for field in table.key)
        parameters = tuple(program.actions[i].parameter_widths for i in table.actions.values())
        words = max(1, -(-sum(widths) // 64))
        shapes[name] = TableShape(table, number, widths, words, parameters)
    return shapes


def cell_bytes(width: int) -> int:
    """Return the bytes of a register's cell: 1, 2, 4, or whole words."""
    return next((size for size in (1, 2, 4) if width <= 8 * size), -(-width // 64) * 8)
