# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The run-time state of a loaded program: tables, registers and counters."""

import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, MutableSequence, Sequence

from switchgnn.softswitch.codegen.compiler import CompiledProgram, Functions
from switchgnn.softswitch.hashing import ALGORITHMS
from switchgnn.softswitch.program import (
    ConstEntry,
    CounterArray,
    Json,
    Program,
    RegisterArray,
    Table,
    key_widths,
)
from switchgnn.softswitch.tables import (
    Batches,
    Entry,
    EntryFormat,
    EntryTable,
    Exact,
    ExactMatcher,
    Match,
    Matcher,
    MatchTable,
    Prefix,
    PrefixMatcher,
    PriorityMatcher,
    Range,
    Target,
    Ternary,
)


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


_LOG = logging.getLogger("softswitch.program")


class ProgramState(ABC):
    """Tables, registers and counters of one program, by their names in the JSON."""

    def __init__(self, program: Program) -> None:
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
            if array.table is None
        }

    @abstractmethod
    def _table(self, table: Table) -> EntryTable: ...

    @abstractmethod
    def _register(self, array: RegisterArray) -> RegisterCells: ...

    @abstractmethod
    def _counter(self, array: CounterArray) -> CounterCells: ...

    @abstractmethod
    def batches(self, formats: Sequence[EntryFormat]) -> Batches | None:
        """Return what takes entries of these formats in batches, if there is something."""

    def reset(self) -> None:
        """Restore everything to what the program starts with."""
        for table in self.tables.values():
            table.reset()
        for register in self.registers.values():
            register.reset()
        for counter in self.counters.values():
            counter.reset()


class PythonState(ProgramState):
    """The state of a program whose generated Python code runs."""

    tables: Mapping[str, MatchTable]

    def _table(self, table: Table) -> MatchTable:
        widths = key_widths(self.program, table)
        return MatchTable(
            _matcher(table, widths), default_target(table), constant_entries(table, widths)
        )

    def _register(self, array: RegisterArray) -> RegisterCells:
        return RegisterCells(array.size, array.width)

    def _counter(self, array: CounterArray) -> CounterCells:
        return CounterCells(array.size)

    def batches(self, _formats: Sequence[EntryFormat]) -> None:
        """Return nothing: entries come one by one."""


def bind(compiled: CompiledProgram, state: PythonState) -> Functions:
    """Execute the generated module with a state and return its functions."""
    namespace: dict[str, object] = {
        "randint": random.SystemRandom().randint,
        "from_bytes": int.from_bytes,
        "log_message": log_message,
        **ALGORITHMS,
    }
    for codec in compiled.codecs.values():
        for part in codec.parts:
            namespace[part.unpack_name] = part.struct.unpack_from
            namespace[part.pack_name] = part.struct.pack
    _bind_state(namespace, compiled, state)
    # The source was generated from the program by this package, and codegen/guard.py has looked
    # at every node of it.
    exec(compiled.code, namespace)  # noqa: S102
    lists = compiled.program.field_lists
    return Functions(
        ingress=namespace["ingress"],  # type: ignore[arg-type]
        egress=namespace["egress"],  # type: ignore[arg-type]
        reparse=namespace.get("reparse"),  # type: ignore[arg-type]
        keepers={ident: namespace[compiled.names.keeper(ident)] for ident in lists},  # type: ignore[misc]
        cloners={ident: namespace[compiled.names.cloner(ident)] for ident in lists},  # type: ignore[misc]
    )


def _bind_state(
    namespace: dict[str, object], compiled: CompiledProgram, state: PythonState
) -> None:
    names = compiled.names
    for name, table in state.tables.items():
        namespace[names.lookup(name)] = table.matcher.lookup
        namespace[names.default(name)] = table.default
    for name, register in state.registers.items():
        namespace[names.register(name)] = register.cells
    for name, counter in state.counters.items():
        namespace[names.packet_counts(name)] = counter.packets
        namespace[names.byte_counts(name)] = counter.bytes


def log_message(template: str, values: tuple[int, ...]) -> None:
    """Log a program's log_msg with one value in place of each ``{}``."""
    text = template
    for value in values:
        text = text.replace("{}", str(int(value)), 1)
    _LOG.info("%s", text)


def action_target(table: Table, action: int, data: tuple[int, ...]) -> Target:
    """Return the target for an action of a table, with fresh direct counters if it has any.

    Args:
        table: the table.
        action: the action's id in the program.
        data: the values of the action's parameters.

    Returns:
        What the generated code reads when an entry with this target matches.
    """
    number = list(table.actions.values()).index(action)
    return number, data, [0, 0] if table.with_counters else None


def default_target(table: Table) -> Target:
    """Return the target of the program's default entry; its action is -1 without one."""
    if table.default is not None and table.default.action in table.actions.values():
        return action_target(table, table.default.action, table.default.data)
    return -1, (), None


def constant_entries(table: Table, widths: tuple[int, ...]) -> tuple[Entry, ...]:
    """Return the entries that the program declares; ``widths`` are those of the key's fields."""
    return tuple(_constant_entry(table, entry, widths) for entry in table.entries)


def _matcher(table: Table, widths: tuple[int, ...]) -> Matcher:
    if table.match_type == "exact":
        return ExactMatcher()
    if table.match_type == "lpm":
        kinds = [field.match_type for field in table.key]
        position = kinds.index("lpm")
        return PrefixMatcher(position, widths[position], len(kinds) == 1)
    return PriorityMatcher()


def _constant_entry(table: Table, entry: ConstEntry, widths: tuple[int, ...]) -> Entry:
    matched = tuple(_constant_match(m, w) for m, w in zip(entry.match, widths, strict=True))
    target = action_target(table, entry.call.action, entry.call.data)
    prioritised = table.match_type in {"ternary", "range"}
    # In the JSON the smallest priority wins; here, as in P4Runtime, the largest one does.
    priority = (1 << 24) - entry.priority if prioritised else 0
    return Entry(matched, priority, target, constant=True)


def _constant_match(match: Json, width: int) -> Match:
    kind = match["match_type"]
    if kind == "valid":
        return Exact(int(match["key"]))
    if kind == "range":
        return Range(int(match["start"], 16), int(match["end"], 16))
    value = int(match["key"], 16)
    if kind == "lpm":
        prefix = Prefix(value, match["prefix_length"], width)
        return Prefix(value & prefix.mask, prefix.length, width)
    if kind == "ternary":
        mask = int(match["mask"], 16)
        return Ternary(value & mask, mask)
    return Exact(value)
