# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A loaded program. Records that stand in BMv2's JSON as they are here are read by msgspec."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta, Struct

from switchgnn.softswitch.tables import Entry, Target

PORT_BITS = 9
DROP_PORT = 511  # the egress port of dropped packets
MOST_PRIORITY = 1 << 24  # of a constant entry
MOST_BITS = 1 << 16  # of a field, a parameter or a constant
MOST_CELLS = 1 << 26  # of an array

Json = Any  # an expression: its sizes are checked when it is read, its contents where it is used
Name = Annotated[str, Meta(min_length=1, max_length=1024)]
Number = Annotated[int, Meta(ge=0, lt=1 << 32)]
Bits = Annotated[int, Meta(ge=1, le=MOST_BITS)]
Cells = Annotated[int, Meta(ge=0, le=MOST_CELLS)]
FieldRef = tuple[Name, Name]


class Hex(int):
    """A number that is hexadecimal text in the JSON."""


@dataclass(frozen=True)
class FieldType:
    """One field of a header type."""

    name: str
    width: int  # bits; the maximum of a `varbit`
    signed: bool  # whether it is two's complement
    varbit: bool = False  # whether packets carry its length, a number of bytes


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


class Primitive(Struct, frozen=True):
    """One call inside an action or a parser state."""

    op: Name
    parameters: tuple[Json, ...] = ()


class Parameter(Struct, frozen=True, rename={"width": "bitwidth"}):
    """A parameter of an action."""

    name: Name
    width: Bits


class ActionSpec(Struct, frozen=True, rename={"ident": "id", "parameters": "runtime_data"}):
    """An action."""

    name: Name
    ident: Number
    parameters: tuple[Parameter, ...]
    primitives: tuple[Primitive, ...]

    @property
    def parameter_widths(self) -> tuple[int, ...]:
        """Bits of each parameter."""
        return tuple(parameter.width for parameter in self.parameters)


class Transition(Struct, frozen=True):
    """One case of a parser state; ``value`` is None for the default case."""

    value: Hex | None
    mask: Hex | None
    next_state: Name | None


class ParserState(
    Struct, frozen=True, rename={"operations": "parser_ops", "key": "transition_key"}
):
    """A parser state: operations, selection key and cases in order."""

    name: Name
    operations: tuple[Primitive, ...]
    key: tuple[Json, ...]
    transitions: tuple[Transition, ...]


class KeyField(Struct, frozen=True):
    """One field of a table key of ``width`` bits; ``mask`` is applied before the match."""

    match_type: Name
    target: FieldRef
    mask: Hex | None = None
    width: int = 0  # not from the JSON


@dataclass(frozen=True)
class TableSpec:
    """A match-action table and where each action leads.

    Entries name actions by their place in ``actions``; the default one is -1 if there is none.
    """

    name: str
    match_type: str
    key: tuple[KeyField, ...]
    actions: Mapping[str, int]
    next_tables: Mapping[str, str | None]
    base_default_next: str | None
    default: Target
    default_is_const: bool
    entries: tuple[Entry, ...]
    with_counters: bool


class Conditional(Struct, frozen=True):
    """A branch of the control flow."""

    name: Name
    expression: Json
    true_next: Name | None = None
    false_next: Name | None = None


class DirectCall(Struct, frozen=True, rename={"action": "action_id"}):
    """An action called by the control flow without a table."""

    name: Name
    action: Number
    next_node: Name | None = None


Node = TableSpec | Conditional | DirectCall


@dataclass(frozen=True)
class Control:
    """Ingress or egress: its nodes by name and the first one."""

    initial: str | None
    tables: Mapping[str, TableSpec]
    nodes: Mapping[str, Node]


class RegisterArray(Struct, frozen=True, rename={"width": "bitwidth"}):
    """A register array of ``size`` cells of ``width`` bits."""

    name: Name
    size: Cells
    width: Bits


class CounterArray(Struct, frozen=True):
    """A counter array; the counters of a direct one are in the entries of a table."""

    name: Name
    size: Cells = 0
    is_direct: bool = False


class Calculation(Struct, frozen=True, rename={"algorithm": "algo", "inputs": "input"}):
    """A named hash or checksum over fields, constants, headers and payload."""

    name: Name
    algorithm: Name
    inputs: tuple[Json, ...]


class Checksum(Struct, frozen=True, rename={"condition": "if_cond"}):
    """A checksum that is verified after parsing or written before deparsing."""

    name: Name
    target: FieldRef
    calculation: Name
    verify: bool = True
    update: bool = True
    condition: Json = None


@dataclass(frozen=True)
class LoadedProgram:
    """A program, as the code generators read it."""

    headers: Mapping[str, HeaderSpec]
    stacks: Mapping[str, tuple[str, ...]]  # the names of headers or unions, first to last
    unions: Mapping[str, Mapping[str, str]]  # the names of headers by member
    errors: Mapping[str, int]
    parser_start: str | None  # None: it extracts nothing
    parser_states: Mapping[str, ParserState]
    deparse_order: tuple[str, ...]
    actions: Mapping[int, ActionSpec]
    ingress: Control
    egress: Control
    registers: Mapping[str, RegisterArray]
    counters: Mapping[str, CounterArray]
    calculations: Mapping[str, Calculation]
    checksums: tuple[Checksum, ...]
    field_lists: Mapping[int, tuple[FieldRef, ...]]
    aliases: Mapping[str, FieldRef]

    @property
    def tables(self) -> dict[str, TableSpec]:
        """Tables of both controls by name."""
        return {**self.ingress.tables, **self.egress.tables}

    def standard_field(self, name: str) -> FieldRef | None:
        """Return the field with a name such as ``intrinsic_metadata.mcast_grp``, or None."""
        header, _, field = name.partition(".")
        reference = self.aliases.get(name, (header, field))
        instance = self.headers.get(reference[0])
        if instance is None or all(f.name != reference[1] for f in instance.fields):
            return None
        return reference
