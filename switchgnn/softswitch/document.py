# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The schema of BMv2 JSON documents, which may come from anybody."""

import re
from typing import Annotated, Literal

from msgspec import Meta, MsgspecError, Struct, convert, defstruct, json

from switchgnn.softswitch.errors import MalformedProgramError, UnsupportedProgramError
from switchgnn.softswitch.program import (
    MOST_BITS,
    MOST_CELLS,
    ActionSpec,
    Bits,
    Calculation,
    Checksum,
    Conditional,
    CounterArray,
    DirectCall,
    FieldRef,
    Hex,
    Json,
    KeyField,
    Name,
    Number,
    ParserState,
    RegisterArray,
)

_HEX = re.compile(r"-?(0[xX])?[0-9a-fA-F]+")
_LONGEST_TEXT = MOST_BITS // 4 + 3  # of a constant
_DEEPEST = 270  # a concatenation of 32 fields is nested 256 deep
_GZIP = b"\x1f\x8b"
_FLAG = bool | Literal[0, 1]  # p4c writes 0 for a bool
_SECTIONS = {
    "meter_arrays": ("meters", "count packets or use registers instead"),
    "learn_lists": ("digests", "send a copy to the controller as a packet-in instead"),
    "extern_instances": ("extern instances", "use the externs of v1model"),
    "parse_vsets": ("parser value sets", "match constants instead"),
}


class JsonNamed(Struct):
    """An object that is refused by its name."""

    name: str = ""


class JsonField(Struct, array_like=True, forbid_unknown_fields=True):
    """A field of a header type; the width ``*`` is variable."""

    name: Name
    width: Bits | Literal["*"]
    signed: _FLAG = False
    saturates: _FLAG = False


class JsonHeaderType(Struct):
    """A header type; ``max_length`` bounds the bytes of a header with a ``*`` field."""

    name: Name
    fields: list[JsonField]
    max_length: Annotated[int, Meta(ge=1, le=MOST_BITS // 8)] | None = None
    length_exp: Json = None


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


class JsonParser(Struct):
    """A parser."""

    init_state: Name | None
    parse_states: list[ParserState]
    name: str = ""


class JsonDeparser(Struct):
    """The order in which headers are written."""

    order: list[Name]


class JsonDefault(Struct):
    """A table's default entry, or what a constant entry calls."""

    action_id: Number
    action_const: bool = False
    action_data: list[Hex] = []


class JsonMatch(Struct):
    """One match field of a constant entry."""

    match_type: Name
    key: Hex | None = None
    mask: Hex | None = None
    start: Hex | None = None
    end: Hex | None = None
    prefix_length: Number | None = None


class JsonEntry(Struct):
    """A constant entry."""

    match_key: list[JsonMatch]
    action_entry: JsonDefault
    priority: Number = 0


class JsonTable(Struct):
    """A table."""

    name: Name
    match_type: Name
    key: list[KeyField]
    actions: list[Name]
    action_ids: list[Number]
    next_tables: dict[Name, Name | None]
    base_default_next: Name | None = None
    default_entry: JsonDefault | None = None
    entries: list[JsonEntry] = []
    with_counters: bool = False
    type: Name = "simple"
    support_timeout: bool = False
    direct_meters: Json = None


class JsonControl(Struct):
    """A control."""

    name: Name
    init_table: Name | None
    tables: list[JsonTable]
    conditionals: list[Conditional]
    action_calls: list[DirectCall] = []
    action_profiles: list[JsonNamed] = []


class JsonFieldList(Struct):
    """Fields preserved on recirculation, resubmission or cloning."""

    id: Number
    elements: list[Json]
    name: Name | None = None


_Refused = defstruct("_Refused", [(section, list[JsonNamed], []) for section in _SECTIONS])


class Document(Struct):
    """A whole program."""

    header_types: list[JsonHeaderType]
    headers: list[JsonHeader]
    pipelines: list[JsonControl]
    actions: list[ActionSpec]
    deparsers: list[JsonDeparser]
    parsers: list[JsonParser] = []
    header_stacks: list[JsonStack] = []
    header_union_types: list[JsonUnionType] = []
    header_unions: list[JsonUnion] = []
    header_union_stacks: list[JsonUnionStack] = []
    register_arrays: list[RegisterArray] = []
    counter_arrays: list[CounterArray] = []
    calculations: list[Calculation] = []
    checksums: list[Checksum] = []
    field_lists: list[JsonFieldList] = []
    errors: list[tuple[Name, Number]] = []
    field_aliases: list[tuple[Name, FieldRef]] = []


def read_document(config: bytes) -> Document:
    """Parse and validate a document."""
    if config.startswith(_GZIP):
        raise MalformedProgramError("The program is compressed by gzip: decompress it first.")
    try:
        decoded = json.decode(config)
        _check_sizes(decoded)
    except (MsgspecError, UnicodeDecodeError) as error:
        raise MalformedProgramError(f"The program is not a JSON document: {error}.") from None
    except RecursionError:
        raise MalformedProgramError("The program's JSON is nested too deeply.") from None
    if not isinstance(decoded, dict) or not {"headers", "pipelines"} <= decoded.keys():
        raise MalformedProgramError(
            "The program lacks 'headers' and 'pipelines': compile it for the v1model architecture."
        )
    try:
        refused = convert(decoded, _Refused)
        for section, (feature, hint) in _SECTIONS.items():
            for item in getattr(refused, section):
                raise UnsupportedProgramError(feature, f"'{item.name}'", hint)
        document = convert(decoded, Document, strict=True, dec_hook=_number)
    except MsgspecError as error:
        raise MalformedProgramError(f"The program's JSON is invalid: {error}.") from error
    cells = sum(array.size * -(-array.width // 64) for array in document.register_arrays)
    cells += sum(array.size for array in document.counter_arrays)
    if cells > MOST_CELLS:
        raise MalformedProgramError(
            f"The program's arrays have {cells:,} cells of 64 bits; the maximum is {MOST_CELLS:,}."
        )
    return document


def _check_sizes(node: object, depth: int = 0) -> None:
    """Bound the values of a document, of which expressions are not checked before their use."""
    if depth > _DEEPEST:
        raise RecursionError
    if isinstance(node, dict):
        for name, inner in node.items():
            if name != "source_info":
                _check_sizes(inner, depth + 1)
    elif isinstance(node, list):
        for inner in node:
            _check_sizes(inner, depth + 1)
    elif isinstance(node, float) or (isinstance(node, str) and len(node) > _LONGEST_TEXT):
        raise MalformedProgramError(f"The program has an invalid value: {str(node)[:80]}.")


def _number(_kind: type, text: object) -> Hex:
    if not isinstance(text, str) or not _HEX.fullmatch(text):
        raise ValueError("Expected a hexadecimal number")
    return Hex(text, 16)
