# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Run-time state of a loaded program: tables, registers and counters."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, MutableSequence, Sequence

from switchgnn.softswitch.program import (
    MOST_PRIORITY,
    ConstEntry,
    CounterArray,
    LoadedProgram,
    RegisterArray,
    TableSpec,
)
from switchgnn.softswitch.tables import (
    Entry,
    EntryTable,
    MatchTable,
    Target,
)


class RegisterCells:
    """Cells of a register array; ``cells`` stays the same list object."""

    def __init__(self, size: int, width: int) -> None:
        self.size = size
        self.width = width
        self.cells: MutableSequence[int] = [0] * size

    def image(self, number: int) -> Sequence[int]:
        """Return a comparable copy of the first cells."""
        return self.cells[:number]


class CounterCells:
    """Packet and byte counts of an indirect counter array."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.packets: MutableSequence[int] = [0] * size
        self.bytes: MutableSequence[int] = [0] * size


_LOG = logging.getLogger("softswitch.program")


class ProgramState(ABC):
    """Tables, registers and counters of one program, by their names in the JSON."""

    def __init__(self, program: LoadedProgram) -> None:
        self.program = program
        self.tables: Mapping[str, EntryTable] = {
            name: self._table(table) for name, table in program.tables.items()
        }
        self.registers: Mapping[str, RegisterCells] = {
            name: self._register(array) for name, array in program.registers.items()
        }
        self.counters: Mapping[str, CounterCells] = {
            name: self._counter(array)
            for name, array in program.counters.items()
            if not array.is_direct
        }

    @abstractmethod
    def _table(self, table: TableSpec) -> EntryTable: ...

    @abstractmethod
    def _register(self, array: RegisterArray) -> RegisterCells: ...

    @abstractmethod
    def _counter(self, array: CounterArray) -> CounterCells: ...


class PythonState(ProgramState):
    """The state of an interpreted program."""

    tables: Mapping[str, MatchTable]

    def _table(self, table: TableSpec) -> MatchTable:
        return MatchTable(
            table.match_type == "exact", default_target(table), constant_entries(table)
        )

    def _register(self, array: RegisterArray) -> RegisterCells:
        return RegisterCells(array.size, array.width)

    def _counter(self, array: CounterArray) -> CounterCells:
        return CounterCells(array.size)


def log_message(template: str, values: tuple[int, ...]) -> None:
    """Log a program's log_msg with one value in place of each ``{}``."""
    text = template
    for value in values:
        text = text.replace("{}", str(int(value)), 1)
    _LOG.info("%s", text)


def action_target(table: TableSpec, action: int, data: tuple[int, ...]) -> Target:
    """Return the target for an action of a table, with fresh direct counters if it has any."""
    number = list(table.actions.values()).index(action)
    return number, data, [0, 0] if table.with_counters else None


def default_target(table: TableSpec) -> Target:
    """Return the target of the program's default entry; its action is -1 without one."""
    if table.default is not None:
        return action_target(table, table.default.action, table.default.data)
    return -1, (), None


def constant_entries(table: TableSpec) -> tuple[Entry, ...]:
    """Return the constant entries."""
    return tuple(_constant_entry(table, entry) for entry in table.entries)


def _constant_entry(table: TableSpec, entry: ConstEntry) -> Entry:
    target = action_target(table, entry.call.action, entry.call.data)
    prioritised = table.match_type in {"ternary", "range"}
    # The smallest priority wins in the JSON, the largest in P4Runtime.
    priority = MOST_PRIORITY - entry.priority if prioritised else 0
    return Entry(entry.match, priority, target, constant=True)
