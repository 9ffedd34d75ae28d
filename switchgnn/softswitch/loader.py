# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Load a BMv2 JSON document as a LoadedProgram and refuse unsupported features."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from msgspec import UNSET, UnsetType

from switchgnn.softswitch import document as bmv2
from switchgnn.softswitch.codegen.compiler import CompiledProgram, compile_program
from switchgnn.softswitch.errors import MalformedProgramError, UnsupportedProgramError, inconsistent
from switchgnn.softswitch.program import (
    MOST_PRIORITY,
    PORT_BITS,
    ActionCall,
    ActionSpec,
    Calculation,
    Checksum,
    Conditional,
    ConstEntry,
    CounterArray,
    DirectCall,
    FieldRef,
    FieldType,
    HeaderSpec,
    HeaderStack,
    HeaderUnion,
    KeyField,
    LoadedProgram,
    Parser,
    ParserState,
    Pipeline,
    Primitive,
    RegisterArray,
    TableSpec,
    Transition,
    UnionStack,
)
from switchgnn.softswitch.tables import Exact, Match, Prefix, Range, Ternary

# The first parser of a program for another architecture, as p4c names it.
_ARCHITECTURES = {"ingress_parser": "PSA", "main_parser": "PNA"}
_SECTIONS = {
    "meter_arrays": ("meters", "count packets or use registers instead"),
    "learn_lists": ("digests", "send a copy to the controller as a packet-in instead"),
    "extern_instances": ("extern instances", "use the externs of v1model"),
    "parse_vsets": ("parser value sets", "match constants instead"),
}
_KEY_KINDS = {"exact", "valid", "lpm", "ternary", "range"}
_KINDS = {
    "exact": {"exact", "valid"},
    "lpm": {"exact", "valid", "lpm"},
    "ternary": _KEY_KINDS,
    "range": _KEY_KINDS,
}


def _refuse_other_architectures(document: bmv2.Document) -> None:
    for parser in document.parsers:
        architecture = _ARCHITECTURES.get(parser.name)
        if architecture is not None:
            raise UnsupportedProgramError(
                f"the architecture {architecture}",
                f"parser '{parser.name}'",
                "write the program for v1model and compile it with p4c-bm2-ss",
            )
    missing = {"ingress", "egress"} - {pipeline.name for pipeline in document.pipelines}
    if missing:
        raise MalformedProgramError(
            f"The program has no control {' or '.join(sorted(missing))}: write it for v1model and "
            "compile it with p4c-bm2-ss."
        )


def _refuse_unsupported_sections(document: bmv2.Document) -> None:
    for section, (feature, hint) in _SECTIONS.items():
        for item in getattr(document, section):
            raise UnsupportedProgramError(feature, f"'{item.get('name', section)}'", hint)
    for header_type in document.header_types:
        _refuse_other_lengths(header_type)
    for pipeline in document.pipelines:
        for profile in pipeline.action_profiles:
            raise UnsupportedProgramError(
                "action profiles and selectors",
                f"'{profile.get('name')}'",
                "put the actions into the table itself",
            )


def _refuse_wide_ports(headers: Mapping[str, HeaderSpec]) -> None:
    """Refuse other ports than v1model's, as each port has a queue and counters of its own."""
    metadata = headers.get("standard_metadata")
    for field in metadata.fields if metadata else ():
        if field.name == "egress_spec" and field.width != PORT_BITS:
            raise UnsupportedProgramError(
                f"ports of {field.width} bits",
                "standard_metadata.egress_spec",
                f"compile it for v1model, whose ports have {PORT_BITS}",
            )


def _refuse_other_lengths(header_type: bmv2.JsonHeaderType) -> None:
    where = f"header type '{header_type.name}'"
    if header_type.length_exp is not None:
        raise UnsupportedProgramError(
            "header types with a length expression",
            where,
            "give the length to extract, as P4_16 does",
        )
    if any(field[3:] == [True] for field in header_type.fields):
        raise UnsupportedProgramError(
            "fields that saturate", where, "use the operators |+| and |-| of P4_16"
        )
    if header_type.max_length is None and any(f[1] == "*" for f in header_type.fields):
        raise UnsupportedProgramError(
            "fields of variable length without a maximum", where, "compile the program with p4c"
        )


def _refuse_unsupported_table(table: bmv2.JsonTable) -> None:
    where = f"table '{table.name}'"
    if table.type != "simple":
        raise UnsupportedProgramError(
            f"tables of type {table.type}", where, "put the actions into the table itself"
        )
    if table.direct_meters:
        raise UnsupportedProgramError("direct meters", where, "remove the table's meters property")
    if table.support_timeout:
        raise UnsupportedProgramError(
            "idle timeouts", where, "remove the table's support_timeout property"
        )
    for field in table.key:
        if field.match_type not in _KEY_KINDS:
            raise UnsupportedProgramError(
                f"match kind {field.match_type}",
                where,
                "use exact, lpm, ternary, range or optional",
            )


def load_program(config: bytes) -> LoadedProgram:
    """Read a program from a BMv2 JSON document."""
    document = bmv2.read_document(config)
    _refuse_other_architectures(document)
    _refuse_unsupported_sections(document)
    try:
        return _program(document)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise inconsistent(error) from error


def _program(document: bmv2.Document) -> LoadedProgram:
    by_ident = _headers(document)
    headers = {header.name: header for header in by_ident.values()}
    _refuse_wide_ports(headers)
    unions = _unions(document, by_ident)
    actions = {item.id: _action(item) for item in document.actions}
    pipelines = {item.name: _pipeline(item, actions, headers) for item in document.pipelines}
    return LoadedProgram(
        headers=headers,
        stacks=_stacks(document, by_ident),
        unions={union.name: union for union in unions.values()},
        union_stacks=_union_stacks(document, unions),
        errors=dict(document.errors),
        parser=_parser(document),
        deparse_order=tuple(document.deparsers[0].order) if document.deparsers else (),
        actions=actions,
        ingress=pipelines["ingress"],
        egress=pipelines["egress"],
        registers={
            a.name: RegisterArray(a.name, a.size, a.bitwidth) for a in document.register_arrays
        },
        counters={a.name: _counter(a) for a in document.counter_arrays},
        calculations={
            c.name: Calculation(c.name, c.algo, tuple(c.input)) for c in document.calculations
        },
        checksums=tuple(map(_checksum, document.checksums)),
        field_lists={item.id: _field_list(item) for item in document.field_lists},
        aliases=dict(document.field_aliases),
    )


def _headers(document: bmv2.Document) -> dict[int, HeaderSpec]:
    types = {item.name: item for item in document.header_types}
    return {
        item.id: HeaderSpec(
            item.name, item.metadata, _fields(types[item.header_type]), item.header_type
        )
        for item in document.headers
    }


def _fields(kind: bmv2.JsonHeaderType) -> tuple[FieldType, ...]:
    fixed = sum(field[1] for field in kind.fields if isinstance(field[1], int))
    return tuple(_field(field, kind, fixed) for field in kind.fields)


def _field(field: list[Any], kind: bmv2.JsonHeaderType, fixed: int) -> FieldType:
    signed = bool(len(field) > 2 and field[2])
    if field[1] == "*":
        return FieldType(field[0], 8 * (kind.max_length or 0) - fixed, signed=False, varbit=True)
    return FieldType(field[0], field[1], signed)


def _stacks(document: bmv2.Document, headers: dict[int, HeaderSpec]) -> dict[str, HeaderStack]:
    return {
        item.name: HeaderStack(item.name, tuple(headers[ident].name for ident in item.header_ids))
        for item in document.header_stacks
    }


def _unions(document: bmv2.Document, headers: dict[int, HeaderSpec]) -> dict[int, HeaderUnion]:
    types = {item.name: item for item in document.header_union_types}
    unions = {}
    seen: set[int] = set()
    for item in document.header_unions:
        members = {}
        wanted = types[item.union_type].headers
        for (name, kind), ident in zip(wanted, item.header_ids, strict=True):
            header = headers[ident]
            if header.type_name != kind or ident in seen:
                raise MalformedProgramError(
                    f"Header '{header.name}' cannot be a member of union '{item.name}': it has "
                    "another type or is in another union."
                )
            seen.add(ident)
            members[name] = header.name
        unions[item.id] = HeaderUnion(item.name, item.union_type, members)
    return unions


def _union_stacks(document: bmv2.Document, unions: dict[int, HeaderUnion]) -> dict[str, UnionStack]:
    stacks = {}
    for item in document.header_union_stacks:
        elements = [unions[ident] for ident in item.header_union_ids]
        if any(union.type_name != item.union_type for union in elements):
            raise MalformedProgramError(f"Stack '{item.name}' has unions of several types.")
        stacks[item.name] = UnionStack(item.name, tuple(u.name for u in elements))
    return stacks


def _parser(document: bmv2.Document) -> Parser:
    if not document.parsers:
        return Parser(None, {})
    parser = document.parsers[0]
    return Parser(parser.init_state, {item.name: _state(item) for item in parser.parse_states})


def _state(item: bmv2.JsonState) -> ParserState:
    return ParserState(
        item.name,
        tuple(map(_primitive, item.parser_ops)),
        tuple(item.transition_key),
        tuple(_transition(case, item.name) for case in item.transitions),
    )


def _primitive(item: bmv2.JsonOperation) -> Primitive:
    return Primitive(item.op, tuple(item.parameters or ()))


def _transition(case: bmv2.JsonCase, state: str) -> Transition:
    if case.type == "parse_vset":
        raise UnsupportedProgramError(
            "parser value sets", f"parser state '{state}'", "match constants instead"
        )
    if case.type == "default" or case.value == "default":
        return Transition(None, None, case.next_state)
    mask = None if case.mask is None else int(case.mask, 16)
    return Transition(int(case.value or "", 16), mask, case.next_state)


def _action(item: bmv2.JsonAction) -> ActionSpec:
    return ActionSpec(
        item.name,
        item.id,
        tuple(data.name for data in item.runtime_data),
        tuple(data.bitwidth for data in item.runtime_data),
        tuple(map(_primitive, item.primitives)),
    )


def _pipeline(
    item: bmv2.JsonPipeline, actions: Mapping[int, ActionSpec], headers: Mapping[str, HeaderSpec]
) -> Pipeline:
    return Pipeline(
        item.name,
        item.init_table,
        {table.name: _Table(table, actions, headers).spec for table in item.tables},
        {
            c.name: Conditional(c.name, c.expression, c.true_next, c.false_next)
            for c in item.conditionals
        },
        {c.name: DirectCall(c.name, c.action_id, c.next_node) for c in item.action_calls},
    )


class _Table:
    """Checks a table with its default entry and its constant entries."""

    def __init__(
        self,
        item: bmv2.JsonTable,
        actions: Mapping[int, ActionSpec],
        headers: Mapping[str, HeaderSpec],
    ) -> None:
        _refuse_unsupported_table(item)
        self._name = item.name
        kinds = [field.match_type for field in item.key]
        if not set(kinds) <= _KINDS.get(item.match_type, set()) or (
            item.match_type == "lpm" and kinds.count("lpm") != 1
        ):
            raise self._malformed(f"has the match type {item.match_type}, but other keys")
        # Compilers for P4_14 wrote no ids.
        names = {action.name: ident for ident, action in reversed(list(actions.items()))}
        idents = item.action_ids or [names[name] for name in item.actions]
        self._key = tuple(_key_field(field, headers) for field in item.key)
        self._actions = {ident: actions[ident] for ident in idents}
        self.spec = TableSpec(
            name=item.name,
            match_type=item.match_type,
            key=self._key,
            actions=dict(zip(item.actions, idents, strict=True)),
            next_tables=item.next_tables,
            base_default_next=item.base_default_next,
            default=None if item.default_entry is None else self._call(item.default_entry),
            default_is_const=bool(item.default_entry and item.default_entry.action_const),
            entries=tuple(map(self._entry, item.entries or ())),
            with_counters=bool(item.with_counters),
            max_size=item.max_size or len(item.entries or ()),
        )

    def _malformed(self, what: str) -> MalformedProgramError:
        return MalformedProgramError(f"Table '{self._name}' {what}: compile the program again.")

    def _call(self, item: bmv2.JsonDefault) -> ActionCall:
        action, data = self._actions.get(item.action_id), item.action_data or []
        if action is None or len(data) != len(action.parameter_widths):
            called = f"action {item.action_id} with {len(data)} parameters"
            raise self._malformed(f"has no {called}, which an entry calls")
        return ActionCall(action.ident, tuple(map(self._number, data, action.parameter_widths)))

    def _entry(self, item: bmv2.JsonEntry) -> ConstEntry:
        priority = item.priority or 0
        kinds = [match.match_type for match in item.match_key]
        if priority > MOST_PRIORITY or kinds != [field.match_type for field in self._key]:
            raise self._malformed(f"has an entry of priority {priority} with the key {kinds}")
        matches = tuple(map(self._match, item.match_key, self._key))
        return ConstEntry(matches, self._call(item.action_entry), priority)

    def _match(self, item: bmv2.JsonMatch, field: KeyField) -> Match:
        kind, width = field.match_type, field.width
        if kind == "range":
            return Range(self._number(item.start, width), self._number(item.end, width))
        value = self._number(item.key, width)
        if kind == "lpm":
            if item.prefix_length is UNSET or item.prefix_length > width:
                raise self._malformed("has an entry without a prefix")
            prefix = Prefix(value, item.prefix_length, width)
            return Prefix(value & prefix.mask, prefix.length, width)
        if kind == "ternary":
            mask = self._number(item.mask, width)
            return Ternary(value & mask, mask)
        return Exact(value)

    def _number(self, value: str | bool | UnsetType, width: int) -> int:
        if value is UNSET:
            raise self._malformed("has an entry without all of its key")
        number = int(value, 16) if isinstance(value, str) else int(value)
        if not -(1 << width - 1) <= number < 1 << width:
            raise self._malformed(f"has an entry with {value}, not of {width} bits")
        return number & ((1 << width) - 1)


def _key_field(field: bmv2.JsonKey, headers: Mapping[str, HeaderSpec]) -> KeyField:
    target = field.target
    named = target if isinstance(target, str) else ".".join(target)
    return KeyField(
        field.match_type,
        field.name or named,
        target,
        None if field.mask is None else int(field.mask, 16),
        _key_width(target, headers),
    )


def _key_width(target: list[str] | str, headers: Mapping[str, HeaderSpec]) -> int:
    if isinstance(target, str) or target[1] == "$valid$":
        return 1  # a header stands for its validity
    return {field.name: field.width for field in headers[target[0]].fields}[target[1]]


def _counter(item: bmv2.JsonCounter) -> CounterArray:
    return CounterArray(item.name, item.size or 0, item.binding if item.is_direct else None)


def _checksum(item: bmv2.JsonChecksum) -> Checksum:
    return Checksum(
        item.name, item.target, item.calculation, item.verify, item.update, item.if_cond
    )


def _field_list(item: bmv2.JsonFieldList) -> tuple[FieldRef, ...]:
    for element in item.elements:
        if element["type"] not in {"field", "hexstr"}:
            raise UnsupportedProgramError(
                f"an element of type {element['type']}",
                f"field list {item.name or item.id}",
                "preserve metadata fields only",
            )
    # As in BMv2, constants are not preserved.
    fields = [element["value"] for element in item.elements if element["type"] == "field"]
    return tuple((header, name) for header, name in fields)


class GivenProgram:
    """A program document, parsed and compiled to Python only on demand.

    Cached native code needs neither.
    """

    def __init__(self, document: bytes) -> None:
        self.document = document

    @cached_property
    def program(self) -> LoadedProgram:
        """The parsed program."""
        return load_program(self.document)

    @cached_property
    def compiled(self) -> CompiledProgram:
        """The program compiled to Python."""
        return compile_program(self.program)

    def check(self) -> None:
        """Raise SoftSwitchError if the switch cannot run the program."""
        _ = self.compiled
