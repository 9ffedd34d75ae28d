# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The BMv2 JSON document as frozen dataclasses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from switchgnn.softswitch.tables import Match

Json = Any
FieldRef = tuple[str, str]

PORT_BITS = 9
DROP_PORT = 511  # the egress port of dropped packets
MOST_PRIORITY = 1 << 24  # of a constant entry


@dataclass(frozen=True)
class FieldType:
    """One field of a header type.

    Attributes:
        width: bits; the maximum of a ``varbit``.
        signed: whether it is two's complement.
        varbit: whether packets carry its length, a number of bytes.
    """

    name: str
    width: int
    signed: bool
    varbit: bool = False


@dataclass(frozen=True)
class HeaderSpec:
    """A header instance with its fields in wire order."""

    name: str
    metadata: bool
    fields: tuple[FieldType, ...]
    type_name: str

    @property
    def width(self) -> int:
        """Bits of all fields, at most."""
        return sum(field.width for field in self.fields)

    @property
    def fixed_width(self) -> int:
        """Bits of all fields but the ``varbit``."""
        return sum(field.width for field in self.fields if not field.varbit)


@dataclass(frozen=True)
class HeaderStack:
    """A header stack: the names of its elements, first to last."""

    name: str
    elements: tuple[str, ...]


@dataclass(frozen=True)
class HeaderUnion:
    """A header union: header names by member."""

    name: str
    type_name: str
    members: Mapping[str, str]


@dataclass(frozen=True)
class UnionStack:
    """A stack of header unions: the names of its elements, first to last."""

    name: str
    elements: tuple[str, ...]


@dataclass(frozen=True)
class Primitive:
    """One call inside an action or a parser state."""

    op: str
    parameters: tuple[Json, ...]


@dataclass(frozen=True)
class ActionSpec:
    """An action; ``parameter_widths`` are the bits of its runtime data."""

    name: str
    ident: int
    parameter_names: tuple[str, ...]
    parameter_widths: tuple[int, ...]
    primitives: tuple[Primitive, ...]


@dataclass(frozen=True)
class Transition:
    """One case of a parser state; ``value`` is None for the default case."""

    value: int | None
    mask: int | None
    next_state: str | None


@dataclass(frozen=True)
class ParserState:
    """A parser state: operations, selection key and cases in order."""

    name: str
    operations: tuple[Primitive, ...]
    key: tuple[Json, ...]
    transitions: tuple[Transition, ...]


@dataclass(frozen=True)
class Parser:
    """A parser; ``initial`` is None when it extracts nothing."""

    initial: str | None
    states: Mapping[str, ParserState]


@dataclass(frozen=True)
class KeyField:
    """One field of a table key; ``mask`` is applied before the match when present.

    ``width`` is in bits; a header as the target stands for its validity.
    """

    match_type: str
    name: str
    target: Json
    mask: int | None
    width: int


@dataclass(frozen=True)
class ActionCall:
    """An action with the values of its parameters."""

    action: int
    data: tuple[int, ...]


@dataclass(frozen=True)
class ConstEntry:
    """An entry fixed by the program; smaller ``priority`` wins, as in the JSON."""

    match: tuple[Match, ...]
    call: ActionCall
    priority: int


@dataclass(frozen=True)
class TableSpec:
    """A match-action table and where each action leads."""

    name: str
    match_type: str
    key: tuple[KeyField, ...]
    actions: Mapping[str, int]
    next_tables: Mapping[str, str | None]
    base_default_next: str | None
    default: ActionCall | None
    default_is_const: bool
    entries: tuple[ConstEntry, ...]
    with_counters: bool
    max_size: int


@dataclass(frozen=True)
class Conditional:
    """A branch of the control flow."""

    name: str
    expression: Json
    true_next: str | None
    false_next: str | None


@dataclass(frozen=True)
class DirectCall:
    """An action called by the control flow without a table."""

    name: str
    action: int
    next_node: str | None


@dataclass(frozen=True)
class Pipeline:
    """A control: its nodes by name and the first one."""

    name: str
    initial: str | None
    tables: Mapping[str, TableSpec]
    conditionals: Mapping[str, Conditional]
    calls: Mapping[str, DirectCall]


@dataclass(frozen=True)
class RegisterArray:
    """A register array of ``size`` cells of ``width`` bits."""

    name: str
    size: int
    width: int


@dataclass(frozen=True)
class CounterArray:
    """A counter array; a direct one is bound to a table."""

    name: str
    size: int
    table: str | None


@dataclass(frozen=True)
class Calculation:
    """A named hash or checksum over fields, constants, headers and payload."""

    name: str
    algorithm: str
    inputs: tuple[Json, ...]


@dataclass(frozen=True)
class Checksum:
    """A checksum that is verified after parsing or written before deparsing."""

    name: str
    target: FieldRef
    calculation: str
    verify: bool
    update: bool
    condition: Json


@dataclass(frozen=True)
class LoadedProgram:
    """A program, as the code generators read it."""

    headers: Mapping[str, HeaderSpec]
    stacks: Mapping[str, HeaderStack]
    unions: Mapping[str, HeaderUnion]
    union_stacks: Mapping[str, UnionStack]
    errors: Mapping[str, int]
    parser: Parser
    deparse_order: tuple[str, ...]
    actions: Mapping[int, ActionSpec]
    ingress: Pipeline
    egress: Pipeline
    registers: Mapping[str, RegisterArray]
    counters: Mapping[str, CounterArray]
    calculations: Mapping[str, Calculation]
    checksums: tuple[Checksum, ...]
    field_lists: Mapping[int, tuple[FieldRef, ...]]
    aliases: Mapping[str, FieldRef]

    @property
    def tables(self) -> dict[str, TableSpec]:
        """Tables of both pipelines by name."""
        return {**self.ingress.tables, **self.egress.tables}

    def stack_size(self, name: str) -> int:
        """Return the number of elements of a stack of headers or unions."""
        stack = self.stacks.get(name) or self.union_stacks[name]
        return len(stack.elements)

    def standard_field(self, name: str) -> FieldRef | None:
        """Return the field with a name such as ``intrinsic_metadata.mcast_grp``, or None."""
        header, _, field = name.partition(".")
        reference = self.aliases.get(name, (header, field))
        instance = self.headers.get(reference[0])
        if instance is None or all(f.name != reference[1] for f in instance.fields):
            return None
        return reference
