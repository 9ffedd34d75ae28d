"""Load a BMv2 JSON document as a LoadedProgram and refuse unsupported features."""

from collections.abc import Mapping
from functools import cached_property

from msgspec.structs import replace

from switchgnn.softswitch.base import program as bmv2
from switchgnn.softswitch.base import tables as base
from switchgnn.softswitch.base.errors import (
    MalformedProgramError,
    UnsupportedProgramError,
    inconsistent,
)
from switchgnn.softswitch.lowering.program import LoweredProgram, lower_program

# The first parser of a program for another architecture, as p4c names it.
_ARCHITECTURES = {"ingress_parser": "PSA", "main_parser": "PNA"}
_KEY_KINDS = {"exact", "lpm", "ternary", "range"}
_KINDS = {"exact": {"exact"}, "lpm": {"exact", "lpm"}, "ternary": _KEY_KINDS, "range": _KEY_KINDS}


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


def _refuse_wide_ports(headers: Mapping[str, bmv2.HeaderSpec]) -> None:
    """Refuse other ports than v1model's, as each port has a queue and counters of its own."""
    metadata = headers.get("standard_metadata")
    for field in metadata.fields if metadata else ():
        if field.name == "egress_spec" and field.width != bmv2.PORT_BITS:
            raise UnsupportedProgramError(
                f"ports of {field.width} bits",
                "standard_metadata.egress_spec",
                f"compile it for v1model, whose ports have {bmv2.PORT_BITS}",
            )


def _refuse_unsupported_table(table: bmv2.JsonTable) -> None:
    kinds = [field.match_type for field in table.key if field.match_type not in _KEY_KINDS]
    other_type = table.type != "simple"
    for refused, feature, hint in (
        (other_type, f"tables of type {table.type}", "put the actions into the table itself"),
        (table.direct_meters, "direct meters", "remove the table's meters property"),
        (table.support_timeout, "idle timeouts", "remove the table's support_timeout property"),
        (kinds, f"match kind {''.join(kinds[:1])}", "use exact, lpm, ternary, range or optional"),
    ):
        if refused:
            raise UnsupportedProgramError(feature, f"table '{table.name}'", hint)


def load_program(config: bytes) -> bmv2.LoadedProgram:
    """Read a program from a BMv2 JSON document."""
    document = bmv2.read_document(config)
    _refuse_other_architectures(document)
    try:
        return _program(document)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise inconsistent(error) from error


def _program(document: bmv2.Document) -> bmv2.LoadedProgram:
    types = {item.name: _fields(item) for item in document.header_types}
    by_ident = {
        item.id: bmv2.HeaderSpec(
            item.name, item.metadata, types[item.header_type], item.header_type
        )
        for item in document.headers
    }
    headers = {header.name: header for header in by_ident.values()}
    _refuse_wide_ports(headers)
    parser = document.parsers[0] if document.parsers else bmv2.JsonParser(None, [])
    actions = {item.ident: item for item in document.actions}
    controls = {item.name: _control(item, actions, headers) for item in document.pipelines}
    return bmv2.LoadedProgram(
        headers=headers,
        stacks={
            item.name: tuple(by_ident[ident].name for ident in item.header_ids)
            for item in document.header_stacks
        },
        errors=dict(document.errors),
        parser_start=parser.init_state,
        parser_states={state.name: state for state in parser.parse_states},
        deparse_order=tuple(document.deparsers[0].order) if document.deparsers else (),
        actions=actions,
        ingress=controls["ingress"],
        egress=controls["egress"],
        registers={item.name: item for item in document.register_arrays},
        counters={item.name: item for item in document.counter_arrays},
        calculations={item.name: item for item in document.calculations},
        checksums=tuple(document.checksums),
        field_lists={item.id: _field_list(item) for item in document.field_lists},
        aliases=dict(document.field_aliases),
    )


def _fields(kind: bmv2.JsonHeaderType) -> tuple[bmv2.FieldType, ...]:
    where, fields = f"header type '{kind.name}'", []
    for field in kind.fields:
        if field.width == "*":
            raise UnsupportedProgramError(
                "fields of variable length (varbit)", where, "use a header for each length"
            )
        if field.saturates:
            raise UnsupportedProgramError(
                "fields that saturate", where, "use the operators |+| and |-| of P4_16"
            )
        fields.append(bmv2.FieldType(field.name, field.width, bool(field.signed)))
    return tuple(fields)


def _control(
    item: bmv2.JsonControl,
    actions: Mapping[int, bmv2.ActionSpec],
    headers: Mapping[str, bmv2.HeaderSpec],
) -> bmv2.Control:
    for profile in item.action_profiles:
        raise UnsupportedProgramError(
            "action profiles and selectors",
            f"'{profile.name}'",
            "put the actions into the table itself",
        )
    tables = {table.name: _Table(table, actions, headers).spec for table in item.tables}
    others: list[bmv2.Conditional | bmv2.DirectCall] = [*item.conditionals, *item.action_calls]
    return bmv2.Control(item.init_table, tables, {**tables, **{each.name: each for each in others}})


class _Table:
    def __init__(
        self,
        item: bmv2.JsonTable,
        actions: Mapping[int, bmv2.ActionSpec],
        headers: Mapping[str, bmv2.HeaderSpec],
    ) -> None:
        _refuse_unsupported_table(item)
        self._item = item
        kinds = [field.match_type for field in item.key]
        if not set(kinds) <= _KINDS.get(item.match_type, set()) or (
            item.match_type == "lpm" and kinds.count("lpm") != 1
        ):
            raise self._malformed(f"has the match type {item.match_type}, but other keys")
        self._key = tuple(_with_width(field, headers[field.target[0]]) for field in item.key)
        self._actions = {ident: actions[ident] for ident in item.action_ids}
        default = item.default_entry
        self.spec = bmv2.TableSpec(
            name=item.name,
            match_type=item.match_type,
            key=self._key,
            actions=dict(zip(item.actions, item.action_ids, strict=True)),
            next_tables=item.next_tables,
            base_default_next=item.base_default_next,
            default=(-1, (), None) if default is None else self._target(default),
            default_is_const=default is not None and default.action_const,
            entries=tuple(map(self._entry, item.entries)),
            with_counters=item.with_counters,
        )

    def _malformed(self, what: str) -> MalformedProgramError:
        return MalformedProgramError(
            f"Table '{self._item.name}' {what}: compile the program again."
        )

    def _target(self, item: bmv2.JsonDefault) -> base.Target:
        action, data = self._actions.get(item.action_id), item.action_data
        if action is None or len(data) != len(action.parameters):
            called = f"action {item.action_id} with {len(data)} parameters"
            raise self._malformed(f"has no {called}, which an entry calls")
        values = tuple(map(self._number, data, action.parameter_widths))
        return self._item.action_ids.index(item.action_id), values, None

    def _entry(self, item: bmv2.JsonEntry) -> base.Entry:
        kinds = [match.match_type for match in item.match_key]
        if item.priority > bmv2.MOST_PRIORITY or kinds != [field.match_type for field in self._key]:
            raise self._malformed(f"has an entry of priority {item.priority} with the key {kinds}")
        matches = tuple(map(self._match, item.match_key, self._key))
        prioritised = self._item.match_type in {"ternary", "range"}
        # The smallest priority wins in the JSON, the largest in P4Runtime.
        priority = bmv2.MOST_PRIORITY - item.priority if prioritised else 0
        return base.Entry(matches, priority, self._target(item.action_entry), constant=True)

    def _match(self, item: bmv2.JsonMatch, field: bmv2.KeyField) -> base.Match:
        kind, width = field.match_type, field.width
        if kind == "range":
            return base.Range(self._number(item.start, width), self._number(item.end, width))
        value = self._number(item.key, width)
        if kind == "exact":
            return base.Ternary(value, base.EVERY_BIT)
        if kind == "ternary":
            mask = self._number(item.mask, width)
        elif item.prefix_length is None or item.prefix_length > width:
            raise self._malformed("has an entry without a prefix")
        else:
            mask = base.prefix_mask(item.prefix_length, width)
        return base.Ternary(value & mask, mask)

    def _number(self, value: int | None, width: int) -> int:
        if value is None:
            raise self._malformed("has an entry without all of its key")
        if not -(1 << width - 1) <= value < 1 << width:
            raise self._malformed(f"has an entry with {value}, not of {width} bits")
        return value & ((1 << width) - 1)


def _with_width(field: bmv2.KeyField, header: bmv2.HeaderSpec) -> bmv2.KeyField:
    widths = {each.name: each.width for each in header.fields} | {"$valid$": 1}
    return replace(field, width=widths[field.target[1]])


def _field_list(item: bmv2.JsonFieldList) -> tuple[bmv2.FieldRef, ...]:
    for element in item.elements:
        if element["type"] != "field":
            raise UnsupportedProgramError(
                f"an element of type {element['type']}",
                f"field list {item.name or item.id}",
                "preserve metadata fields only",
            )
    return tuple((header, name) for header, name in (each["value"] for each in item.elements))


class GivenProgram:
    """A program document, loaded and lowered only on demand.

    Cached native code needs neither.
    """

    def __init__(self, document: bytes) -> None:
        self.document = document

    @cached_property
    def program(self) -> bmv2.LoadedProgram:
        """The parsed program."""
        return load_program(self.document)

    @cached_property
    def lowered(self) -> LoweredProgram:
        """The program in the intermediate representation."""
        return lower_program(self.program)
