# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The schema of BMv2 JSON documents, which may come from anybody."""

import re
from collections.abc import Callable, Iterator
from json import detect_encoding
from typing import Annotated, Any

from msgspec import UNSET, Meta, MsgspecError, Struct, UnsetType, convert, json

from switchgnn.softswitch.errors import MalformedProgramError

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
Text = Annotated[str, Meta(max_length=LONGEST_HEX)]
FieldName = tuple[Name, Name]
# msgspec reads past the constraints of a tuple in a union with a string.
TwoNames = Annotated[list[Name], Meta(min_length=2, max_length=2)]
Node = Any  # an expression, checked by _check_node


class JsonHeaderType(Struct):
    """A header type; each field is a name, a width in bits (or ``*``) and optionally two flags.

    The flags are for a sign and for arithmetic that saturates.
    ``max_length`` bounds the bytes of a header with a ``*`` field.
    """

    name: Name
    fields: list[list[Name | int | bool]]
    max_length: Bytes | None = None
    length_exp: Node | None = None


class JsonHeader(Struct):
    """A header instance."""

    name: Name
    id: Number
    header_type: Name
    metadata: bool = False


class JsonStack(Struct):
    """A header stack."""

    name: Name
    header_ids: list[Number]


class JsonUnionType(Struct):
    """A header union type: names and types of its members."""

    name: Name
    headers: list[tuple[Name, Name]]


class JsonUnion(Struct):
    """A header union."""

    name: Name
    id: Number
    union_type: Name
    header_ids: list[Number]


class JsonUnionStack(Struct):
    """A stack of header unions."""

    name: Name
    union_type: Name
    header_union_ids: list[Number]


class JsonOperation(Struct):
    """An operation of an action or a parser state."""

    op: Name
    parameters: list[Node] | None = None


class JsonCase(Struct):
    """A case of a parser state; p4c before May 2020 wrote ``default`` as a value, not as a type."""

    next_state: Name | None
    type: Name = "hexstr"
    value: Text | None = None
    mask: Hex | None = None


class JsonState(Struct):
    """A parser state."""

    name: Name
    parser_ops: list[JsonOperation]
    transition_key: list[Node]
    transitions: list[JsonCase]


class JsonParser(Struct):
    """A parser."""

    init_state: Name | None
    parse_states: list[JsonState]
    name: str = ""


class JsonDeparser(Struct):
    """The order in which headers are written."""

    order: list[Name]


class JsonParameter(Struct):
    """A parameter of an action."""

    name: Name
    bitwidth: Bits


class JsonAction(Struct):
    """An action."""

    name: Name
    id: Number
    runtime_data: list[JsonParameter]
    primitives: list[JsonOperation]


class JsonKey(Struct):
    """A field of a table's key; the match type ``valid`` has a header as its target."""

    match_type: Name
    target: TwoNames | Name
    name: Name | None = None
    mask: Hex | None = None


class JsonDefault(Struct):
    """A table's default entry."""

    action_id: Number
    action_const: bool = False
    action_data: list[Hex] | None = None


class JsonMatch(Struct):
    """One match field of a constant entry."""

    match_type: Name
    key: Hex | bool | UnsetType = UNSET
    mask: Hex | UnsetType = UNSET
    start: Hex | UnsetType = UNSET
    end: Hex | UnsetType = UNSET
    prefix_length: Number | UnsetType = UNSET


class JsonEntry(Struct):
    """A constant entry."""

    match_key: list[JsonMatch]
    action_entry: JsonDefault
    priority: Number | None = None


class JsonTable(Struct):
    """A table; without ``action_ids`` its actions are found by name."""

    name: Name
    match_type: Name
    key: list[JsonKey]
    actions: list[Name]
    next_tables: dict[Name, Name | None]
    action_ids: list[Number] | None = None
    max_size: Number = 0
    base_default_next: Name | None = None
    default_entry: JsonDefault | None = None
    entries: list[JsonEntry] | None = None
    with_counters: bool | None = None
    type: Name = "simple"
    support_timeout: bool | None = None
    direct_meters: Node | None = None


class JsonConditional(Struct):
    """A branch of a control."""

    name: Name
    expression: Node
    true_next: Name | None = None
    false_next: Name | None = None


class JsonCall(Struct):
    """A direct action call in a control."""

    name: Name
    action_id: Number
    next_node: Name | None = None


class JsonPipeline(Struct):
    """A control."""

    name: Name
    init_table: Name | None
    tables: list[JsonTable]
    conditionals: list[JsonConditional]
    action_calls: list[JsonCall] = []
    action_profiles: list[dict[str, Any]] = []


class JsonRegister(Struct):
    """A register array."""

    name: Name
    size: Cells
    bitwidth: Bits


class JsonCounter(Struct):
    """A counter array; a direct one has no size."""

    name: Name
    size: Cells | None = None
    is_direct: bool = False
    binding: Name | None = None


class JsonCalculation(Struct):
    """A hash or checksum."""

    name: Name
    algo: Name
    input: list[Node]


class JsonChecksum(Struct):
    """A checksum to verify or update."""

    name: Name
    target: FieldName
    calculation: Name
    verify: bool = True
    update: bool = True
    if_cond: Node | None = None


class JsonFieldList(Struct):
    """Fields preserved on recirculation, resubmission or cloning."""

    id: Number
    elements: list[Node]
    name: Name | None = None


class Document(Struct):
    """A whole program."""

    header_types: list[JsonHeaderType]
    headers: list[JsonHeader]
    pipelines: list[JsonPipeline]
    actions: list[JsonAction]
    deparsers: list[JsonDeparser]
    parsers: list[JsonParser] = []
    header_stacks: list[JsonStack] = []
    header_union_types: list[JsonUnionType] = []
    header_unions: list[JsonUnion] = []
    header_union_stacks: list[JsonUnionStack] = []
    register_arrays: list[JsonRegister] = []
    counter_arrays: list[JsonCounter] = []
    calculations: list[JsonCalculation] = []
    checksums: list[JsonChecksum] = []
    field_lists: list[JsonFieldList] = []
    errors: list[tuple[Name, Number]] = []
    field_aliases: list[tuple[Name, FieldName]] = []
    # Refused by the loader, by name.
    meter_arrays: list[dict[str, Any]] = []
    learn_lists: list[dict[str, Any]] = []
    extern_instances: list[dict[str, Any]] = []
    parse_vsets: list[dict[str, Any]] = []


_GZIP = b"\x1f\x8b"
_DEEPEST = 260  # a concatenation of 32 fields is nested 256 deep
_LONGEST_TEXT = 1 << 12  # of a message to the log
_LONGEST_SHOWN = 80


def _check_node(node: object, where: str, depth: int = 0) -> None:
    """Check a value or an expression recursively."""
    if depth > _DEEPEST:
        raise MalformedProgramError(f"An expression of {where} is nested too deeply.")
    if not isinstance(node, dict):
        raise _malformed(node, where)
    if "type" not in node:
        _check_operation(node, where, depth)
        return
    kind = node["type"]
    if not isinstance(kind, str):
        raise _malformed(node, where)
    # The code generators refuse types without a rule.
    rule = _RULES.get(kind)
    if rule is not None and not rule(node.get("value"), where, depth):
        raise _malformed(node, where)
    if "bitwidth" in node and not _is_number(node["bitwidth"], MOST_BITS):
        raise _malformed(node, where)


def _check_operation(node: dict[str, object], where: str, depth: int) -> None:
    """Check an operator and its operands, or a call and its parameters."""
    if not _is_name(node.get("op")):
        raise _malformed(node, where)
    parameters = node.get("parameters") or []
    if not isinstance(parameters, list):
        raise _malformed(node, where)
    operands = [node.get(name) for name in ("left", "right", "cond")]
    for part in (*operands, *parameters):
        # Field numbers are plain integers.
        if part is not None and not _is_number(part, MOST_BITS):
            _check_node(part, where, depth + 1)


def _malformed(node: object, where: str) -> MalformedProgramError:
    shown = repr(node)
    shown = shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}..."
    return MalformedProgramError(f"Invalid value {shown} in {where}.")


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME


def _is_number(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _is_hex(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_HEX and bool(HEX.fullmatch(value))


def _is_reference(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_name, value))


def _is_member_field(value: object) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(map(_is_name, value))


def _is_window(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and _is_number(value[0], MOST_BITS)
        and _is_number(value[1], MOST_BITS)
    )


def _is_inner(value: object, where: str, depth: int) -> bool:
    _check_node(value, where, depth + 1)
    return True


def _are_inner(value: object, where: str, depth: int) -> bool:
    if not isinstance(value, list):
        return False
    for node in value:
        _check_node(node, where, depth + 1)
    return True


def _plain(test: Callable[[object], bool]) -> Callable[[object, str, int], bool]:
    return lambda value, _where, _depth: test(value)


_NAMED = ("header", "header_stack", "register_array", "counter_array", "calculation", "regular")
_RULES: dict[str, Callable[[object, str, int], bool]] = {
    **{kind: _plain(_is_name) for kind in (*_NAMED, "stack", "header_union")},
    "header_union_stack": _plain(_is_name),
    "union_stack": _plain(_is_reference),
    "union_stack_field": _plain(_is_member_field),
    "string": _plain(lambda value: isinstance(value, str) and len(value) <= _LONGEST_TEXT),
    "field": _plain(_is_reference),
    "stack_field": _plain(_is_reference),
    "hexstr": _plain(_is_hex),
    "bool": _plain(lambda value: isinstance(value, bool)),
    "local": _plain(lambda value: _is_number(value, MOST_BITS)),
    "runtime_data": _plain(lambda value: _is_number(value, MOST_BITS)),
    "lookahead": _plain(_is_window),
    "payload": _plain(lambda value: value is None),
    "expression": _is_inner,
    # p4c writes an empty object for a message without parameters.
    "parameters_vector": lambda value, *place: value == {} or _are_inner(value, *place),
}


def read_document(config: bytes) -> Document:
    """Parse and validate a document."""
    if config.startswith(_GZIP):
        raise MalformedProgramError("The program is compressed by gzip: decompress it first.")
    try:
        # Some editors and shells write UTF-16 or a byte order mark.
        decoded = json.decode(config.decode(detect_encoding(config)))
    except (MsgspecError, UnicodeDecodeError) as error:
        raise MalformedProgramError(f"The program is not a JSON document: {error}.") from None
    except RecursionError:
        raise MalformedProgramError("The program's JSON is nested too deeply.") from None
    if not isinstance(decoded, dict) or not {"headers", "pipelines"} <= decoded.keys():
        raise MalformedProgramError(
            "The program lacks 'headers' and 'pipelines': compile it for the v1model architecture."
        )
    try:
        document = convert(decoded, Document, strict=True)
    except MsgspecError as error:
        raise MalformedProgramError(f"The program's JSON is invalid: {error}.") from error
    for kind in document.header_types:
        _check_fields(kind)
    cells = sum(array.size * -(-array.bitwidth // 64) for array in document.register_arrays)
    cells += sum(array.size or 0 for array in document.counter_arrays)
    if cells > MOST_CELLS:
        raise MalformedProgramError(
            f"The program's arrays have {cells:,} cells of 64 bits; the maximum is {MOST_CELLS:,}."
        )
    for nodes, where in _nodes(document):
        for node in nodes:
            _check_node(node, where)
    return document


def _check_fields(kind: JsonHeaderType) -> None:
    for field in kind.fields:
        _check_field(field, kind.name)
    if sum(field[1] == "*" for field in kind.fields) > 1:
        raise MalformedProgramError(f"Header type '{kind.name}' has two fields of variable length.")
    fixed = sum(field[1] for field in kind.fields if isinstance(field[1], int))
    if kind.max_length is not None and 8 * kind.max_length < fixed:
        raise MalformedProgramError(f"Header type '{kind.name}' is longer than its max_length.")


def _check_field(field: list[Name | int | bool], kind: str) -> None:
    if (
        len(field) not in {2, 3, 4}
        or not _is_name(field[0])
        or not (field[1] == "*" or _is_number(field[1], MOST_BITS))
        or field[1] == 0
        # p4c writes 0 for a bool.
        or not all(isinstance(flag, int) and flag in {0, 1} for flag in field[2:])
    ):
        raise _malformed(field, f"header type '{kind}'")


def _nodes(document: Document) -> Iterator[tuple[list[Node], str]]:
    """Yield all expressions, with the objects that contain them."""
    for parser in document.parsers:
        for state in parser.parse_states:
            where = f"parser state '{state.name}'"
            yield state.transition_key, where
            for operation in state.parser_ops:
                # Older compilers wrote errors and lengths as plain numbers.
                nodes = operation.parameters or []
                yield [node for node in nodes if not _is_number(node, MOST_BITS)], where
    for action in document.actions:
        for primitive in action.primitives:
            yield primitive.parameters or [], f"action '{action.name}'"
    for pipeline in document.pipelines:
        for branch in pipeline.conditionals:
            yield [branch.expression], f"condition '{branch.name}'"
    for calculation in document.calculations:
        yield calculation.input, f"calculation '{calculation.name}'"
    for checksum in document.checksums:
        yield [] if checksum.if_cond is None else [checksum.if_cond], f"checksum '{checksum.name}'"
    for fields in document.field_lists:
        yield fields.elements, f"field list {fields.id}"
