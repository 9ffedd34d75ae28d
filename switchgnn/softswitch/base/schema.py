"""Join a P4Info and a program's JSON by name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from finsy.proto import p4i, rpc_code
from google.protobuf.message import DecodeError, Message

from switchgnn.softswitch.base.errors import RequestError
from switchgnn.softswitch.base.program import LoadedProgram, TableSpec

# Counts in messages are int64; larger ones wrap.
COUNT_MASK = 2**63 - 1
_KIND_NAMES = {number: name.lower() for name, number in p4i.MatchField.MatchType.items()}
_Named = p4i.Table | p4i.Register | p4i.Counter


def encode(value: int) -> bytes:
    """Return the shortest big-endian byte string of a value; zero is one byte."""
    return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")


def decode(data: bytes, width: int, what: str) -> int:
    """Return the value of a big-endian byte string; leading zeros are allowed."""
    value = int.from_bytes(data, "big")
    if not data or value >> width:
        raise invalid(f"{what} needs a value of {width} bits, not {data.hex() or 'nothing'}.")
    return value


invalid = partial(RequestError, rpc_code.INVALID_ARGUMENT)
not_found = partial(RequestError, rpc_code.NOT_FOUND)
exists = partial(RequestError, rpc_code.ALREADY_EXISTS)
denied = partial(RequestError, rpc_code.PERMISSION_DENIED)
exhausted = partial(RequestError, rpc_code.RESOURCE_EXHAUSTED)
precondition = partial(RequestError, rpc_code.FAILED_PRECONDITION)
unimplemented = partial(RequestError, rpc_code.UNIMPLEMENTED)


Request = TypeVar("Request", bound=Message)


def decoded(kind: type[Request], data: bytes) -> Request:
    """Return a serialized request; raise RequestError."""
    try:
        return kind.FromString(data)
    except DecodeError:
        name = kind.DESCRIPTOR.full_name
        raise invalid(
            f"The request is not a {name}: send one that is serialized as protobuf."
        ) from None


@dataclass(frozen=True)
class ActionSchema:
    """An action as one table refers to it; ``number`` is its place in the table."""

    ident: int
    name: str
    number: int
    parameters: tuple[p4i.Action.Param, ...]
    for_entries: bool
    for_default: bool


@dataclass(frozen=True)
class TableSchema:
    """A table; ``actions`` is by id and ``by_number`` by place."""

    ident: int
    name: str
    table: TableSpec
    fields: tuple[p4i.MatchField, ...]
    actions: Mapping[int, ActionSchema]
    by_number: Mapping[int, ActionSchema]
    size: int
    constant: bool
    constant_default: bool
    prioritised: bool

    @property
    def entry_actions(self) -> list[ActionSchema]:
        """The actions that entries may have."""
        return [action for action in self.actions.values() if action.for_entries]


@dataclass(frozen=True)
class Schema:
    """The objects of P4Runtime ids; arrays are given by their JSON names.

    ``removed`` are objects of the P4Info that p4c's optimiser removed from the program, by id.
    """

    tables: Mapping[int, TableSchema]
    registers: Mapping[int, str]
    counters: Mapping[int, str]
    direct_counters: Mapping[int, int]
    packet_in: p4i.ControllerPacketMetadata
    packet_out: p4i.ControllerPacketMetadata
    removed: Mapping[int, str]


def kind_of(field: p4i.MatchField) -> str:
    """Return the kind of match of a field: exact, lpm, ternary, range or optional."""
    return _KIND_NAMES.get(field.match_type, "")


def build_schema(p4info: p4i.P4Info, program: LoadedProgram) -> Schema:
    """Build the schema of a program."""
    removed: dict[int, str] = {}

    def present(infos: Iterable[_Named], names: Mapping[str, object]) -> dict[int, str]:
        given = {info.preamble.id: info.preamble.name for info in infos}
        removed.update({ident: name for ident, name in given.items() if name not in names})
        return {ident: name for ident, name in given.items() if name in names}

    tables = present(p4info.tables, program.tables)
    # Tables that p4c adds have no key or constant entries.
    filled = {name for name, table in program.tables.items() if table.key and not table.entries}
    if filled and filled.isdisjoint(tables.values()):
        raise invalid(
            "None of the program's tables is in the P4Info: give the P4Info and the JSON of one "
            "compilation."
        )
    actions = {action.preamble.id: action for action in p4info.actions}
    headers = {header.preamble.name: header for header in p4info.controller_packet_metadata}
    counters = {each.preamble.id: each.direct_table_id for each in p4info.direct_counters}
    infos = [table for table in p4info.tables if table.preamble.id in tables]
    return Schema(
        {info.preamble.id: _table(info, actions, program) for info in infos},
        present(p4info.registers, program.registers),
        present(p4info.counters, program.counters),
        {ident: table for ident, table in counters.items() if table in tables},
        headers.get("packet_in", p4i.ControllerPacketMetadata()),
        headers.get("packet_out", p4i.ControllerPacketMetadata()),
        removed,
    )


def _table(
    info: p4i.Table, actions: Mapping[int, p4i.Action], program: LoadedProgram
) -> TableSchema:
    name = info.preamble.name
    table = program.tables[name]
    # Other widths are allowed: P4Runtime may translate values.
    if len(table.key) != len(info.match_fields) or any(
        # In the JSON, optional matches are ternary.
        kind_of(given).replace("optional", "ternary") != field.match_type
        for given, field in zip(info.match_fields, table.key, strict=True)
    ):
        raise invalid(f"The P4Info's table '{name}' has another key than the program's.")
    numbers = {action: number for number, action in enumerate(table.actions)}
    references = []
    for ref in info.action_refs:
        called = actions.get(ref.id, p4i.Action()).preamble.name
        if called not in numbers:
            continue
        parameters = tuple(actions[ref.id].params)
        if len(parameters) != len(program.actions[table.actions[called]].parameters):
            raise invalid(f"The P4Info's action '{called}' has other parameters.")
        for_entries = ref.scope != p4i.ActionRef.DEFAULT_ONLY
        for_default = ref.scope != p4i.ActionRef.TABLE_ONLY
        references.append(
            ActionSchema(ref.id, called, numbers[called], parameters, for_entries, for_default)
        )
    if info.action_refs and not references:
        raise invalid(f"The P4Info's table '{name}' has other actions than the program's.")
    return TableSchema(
        info.preamble.id,
        name,
        table,
        tuple(info.match_fields),
        {ref.ident: ref for ref in references},
        {ref.number: ref for ref in references},
        info.size,
        info.is_const_table or bool(table.entries),
        info.const_default_action_id != 0 or table.default_is_const,
        any(kind_of(field) not in {"exact", "lpm"} for field in info.match_fields),
    )
