# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a program's JSON is made of."""

import re
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

MOST_BITS = 1 << 16  # of a field, a parameter or a constant
MOST_CELLS = 1 << 26  # of an array
LONGEST_NAME = 1024
LONGEST_HEX = MOST_BITS // 4 + 3
HEX = re.compile(r"-?(0[xX])?[0-9a-fA-F]+")

Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
Number = Annotated[int, Meta(ge=0, lt=1 << 32)]
Bits = Annotated[int, Meta(ge=1, le=MOST_BITS)]
Bytes = Annotated[int, Meta(ge=1, le=MOST_BITS // 8)]
Cells = Annotated[int, Meta(ge=0, le=MOST_CELLS)]
Hex = Annotated[str, Meta(pattern=rf"^{HEX.pattern}$", max_length=LONGEST_HEX)]
FieldName = tuple[Name, Name]
Node = Any  # an expression; see check_node


class HeaderType(Struct):
    """A kind of header; a field is its name, its bits (or ``*``), and whether it is signed.

    The bytes of a header with a field of ``*`` bits are at most those of ``max_length``.
    """

    name: Name
    fields: list[list[Name | int | bool]]
    max_length: Bytes | None = None
    length_exp: Node | None = None


class Header(Struct):
    """An instance of a kind of header."""

    name: Name
    id: Number
    header_type: Name
    metadata: bool = False


class Stack(Struct):
    """A header stack."""

    name: Name
    header_ids: list[Number]


class UnionType(Struct):
    """A kind of header union: the names of its members, and their types."""

    name: Name
    headers: list[tuple[Name, Name]]


class Union(Struct):
    """A header union."""

    name: Name
    id: Number
    union_type: Name
    header_ids: list[Number]


class UnionStack(Struct):
    """A stack of header unions."""

    name: Name
    union_type: Name
    header_union_ids: list[Number]


class Operation(Struct):
    """An operation of an action or a parser state."""

    op: Name
    parameters: list[Node] | None = None


class Case(Struct):
    """A case of a parser state."""

    next_state: Name | None
    type: Name = "hexstr"
    value: Hex | None = None
    mask: Hex | None = None


class State(Struct):
    """A parser state."""

    name: Name
    parser_ops: list[Operation]
    transition_key: list[Node]
    transitions: list[Case]


class Parser(Struct):
    """A parser."""

    init_state: Name | None
    parse_states: list[State]


class Deparser(Struct):
    """The order in which headers are written."""

    order: list[Name]


class Parameter(Struct):
    """A parameter of an action."""

    name: Name
    bitwidth: Bits


class Action(Struct):
    """An action."""

    name: Name
    id: Number
    runtime_data: list[Parameter]
    primitives: list[Operation]


class Key(Struct):
    """A part of a table's key; the target is a field."""

    match_type: Name
    target: FieldName
    name: Name | None = None
    mask: Hex | None = None


class Default(Struct):
    """A table's default entry."""

    action_id: Number
    action_const: bool = False
    action_data: list[Hex] | None = None


class Match(Struct):
    """What an entry of the program wants of a part of the key."""

    match_type: Name
    key: Hex | bool | UnsetType = UNSET
    mask: Hex | UnsetType = UNSET
    start: Hex | UnsetType = UNSET
    end: Hex | UnsetType = UNSET
    prefix_length: Number | UnsetType = UNSET


class Entry(Struct):
    """An entry of the program."""

    match_key: list[Match]
    action_entry: Default
    priority: Number | None = None


class Table(Struct):
    """A table."""

    name: Name
    match_type: Name
    key: list[Key]
    actions: list[Name]
    action_ids: list[Number]
    next_tables: dict[Name, Name | None]
    max_size: Number
    base_default_next: Name | None = None
    default_entry: Default | None = None
    entries: list[Entry] | None = None
    with_counters: bool | None = None
    type: Name = "simple"
    support_timeout: bool | None = None


class Conditional(Struct):
    """A branch of a control."""

    name: Name
    expression: Node
    true_next: Name | None
    false_next: Name | None


class Call(Struct):
    """An action that a control calls without a table."""

    name: Name
    action_id: Number
    next_node: Name | None


class Pipeline(Struct):
    """A control."""

    name: Name
    init_table: Name | None
    tables: list[Table]
    conditionals: list[Conditional]
    action_calls: list[Call] = []
    action_profiles: list[dict[str, Any]] = []


class Register(Struct):
    """A register array."""

    name: Name
    size: Cells
    bitwidth: Bits


class Counter(Struct):
    """A counter array; a direct one has no size."""

    name: Name
    size: Cells | None = None
    is_direct: bool = False
    binding: Name | None = None


class Calculation(Struct):
    """A hash or checksum."""

    name: Name
    algo: Name
    input: list[Node]


class Checksum(Struct):
    """A checksum that is verified or updated."""

    name: Name
    target: FieldName
    calculation: Name
    verify: bool = True
    update: bool = True
    if_cond: Node | None = None


class FieldList(Struct):
    """Fields that a packet keeps when it is seen again."""

    id: Number
    elements: list[Node]
    name: Name | None = None


class Document(Struct):
    """A whole program."""

    header_types: list[HeaderType]
    headers: list[Header]
    pipelines: list[Pipeline]
    actions: list[Action]
    deparsers: list[Deparser]
    parsers: list[Parser] = []
    header_stacks: list[Stack] = []
    header_union_types: list[UnionType] = []
    header_unions: list[Union] = []
    header_union_stacks: list[UnionStack] = []
    register_arrays: list[Register] = []
    counter_arrays: list[Counter] = []
    calculations: list[Calculation] = []
    checksums: list[Checksum] = []
    field_lists: list[FieldList] = []
    errors: list[tuple[Name, Number]] = []
    field_aliases: list[tuple[Name, FieldName]] = []
    # What the switch refuses, by its name.
    meter_arrays: list[dict[str, Any]] = []
    learn_lists: list[dict[str, Any]] = []
    extern_instances: list[dict[str, Any]] = []
    parse_vsets: list[dict[str, Any]] = []
