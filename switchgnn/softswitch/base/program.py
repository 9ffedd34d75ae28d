"""A program: the BMv2 JSON document, which may come from anybody, and what is made of it.

Structs are read from the JSON by msgspec; some are parts of the loaded program as they are.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta, MsgspecError, Struct, convert, defstruct, json

from switchgnn.softswitch.base.errors import MalformedProgramError, UnsupportedProgramError
from switchgnn.softswitch.base.tables import Entry, Target

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
_FLAG = bool | Literal[0, 1]  # p4c writes 0 for a bool


class Hex(int):
    """A number that is hexadecimal text in the JSON."""


@dataclass(frozen=True)
class FieldType:
    """One field of a header type."""

    name: str
    width: int  # bits
    signed: bool  # whether it is two's complement


@dataclass(frozen=True)
class HeaderSpec:
    """A header instance with its fields in wire order."""

    name: str
    metadata: bool
    fields: tuple[FieldType, ...]
    type_name: str

    @property
    def width(self) -> int:
        """Bits of all fields."""
        return sum(field.width for field in self.fields)


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
    stacks: Mapping[str, tuple[str, ...]]  # the names of headers, first to last
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
    """A header type."""

    name: Name
    fields: list[JsonField]


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


_HEX = re.compile(r"-?(0[xX])?[0-9a-fA-F]+")
_LONGEST_TEXT = MOST_BITS // 4 + 3  # of a constant
_DEEPEST = 270  # a concatenation of 32 fields is nested 256 deep
_GZIP = b"\x1f\x8b"
_SECTIONS = {
    "meter_arrays": ("meters", "count packets or use registers instead"),
    "learn_lists": ("digests", "send a copy to the controller as a packet-in instead"),
    "extern_instances": ("extern instances", "use the externs of v1model"),
    "header_unions": ("header unions", "use a header for each member"),
    "parse_vsets": ("parser value sets", "match constants instead"),
}
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
