# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Load a BMv2 JSON document as a LoadedProgram and refuse unsupported features."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from switchgnn.softswitch.codegen.compiler import CompiledProgram, compile_program
from switchgnn.softswitch.document import read_document
from switchgnn.softswitch.errors import MalformedProgramError, UnsupportedProgramError
from switchgnn.softswitch.program import (
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
    Json,
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

# The first parser of a program for another architecture, as p4c names it.
_ARCHITECTURES = {"ingress_parser": "PSA", "main_parser": "PNA"}
_SECTIONS = {
    "meter_arrays": ("meters", "count packets or use registers instead"),
    "learn_lists": ("digests", "send a copy to the controller as a packet-in instead"),
    "extern_instances": ("extern instances", "use the externs of v1model"),
    "parse_vsets": ("parser value sets", "match constants instead"),
}


def _refuse_other_architectures(document: dict[str, Json]) -> None:
    for parser in document.get("parsers", ()):
        architecture = _ARCHITECTURES.get(parser.get("name"))
        if architecture is not None:
            raise UnsupportedProgramError(
                f"the architecture {architecture}",
                f"parser '{parser['name']}'",
                "write the program for v1model and compile it with p4c-bm2-ss",
            )
    missing = {"ingress", "egress"} - {pipeline["name"] for pipeline in document["pipelines"]}
    if missing:
        raise MalformedProgramError(
            f"The program has no control {' or '.join(sorted(missing))}: write it for v1model and "
            "compile it with p4c-bm2-ss."
        )


def _refuse_unsupported_sections(document: dict[str, Json]) -> None:
    for section, (feature, hint) in _SECTIONS.items():
        for item in document.get(section) or ():
            raise UnsupportedProgramError(feature, f"'{item.get('name', section)}'", hint)
    for header_type in document.get("header_types", ()):
        _refuse_other_lengths(header_type)
    for pipeline in document["pipelines"]:
        for profile in pipeline.get("action_profiles") or ():
            raise UnsupportedProgramError(
                "action profiles and selectors",
                f"'{profile.get('name')}'",
                "put the actions into the table itself",
            )


def _refuse_wide_ports(headers: Mapping[str, HeaderSpec]) -> None:
    """Refuse wider ports than v1model's, as each port has a queue and counters of its own."""
    metadata = headers.get("standard_metadata")
    for field in metadata.fields if metadata else ():
        if field.name == "egress_spec" and field.width > PORT_BITS:
            raise UnsupportedProgramError(
                f"ports of {field.width} bits",
                "standard_metadata.egress_spec",
                f"compile it for v1model, whose ports have {PORT_BITS}",
            )


def _refuse_other_lengths(header_type: Json) -> None:
    where = f"header type '{header_type['name']}'"
    if header_type.get("length_exp") is not None:
        raise UnsupportedProgramError(
            "header types with a length expression",
            where,
            "give the length to extract, as P4_16 does",
        )
    if any(field[3:] == [True] for field in header_type["fields"]):
        raise UnsupportedProgramError(
            "fields that saturate", where, "use the operators |+| and |-| of P4_16"
        )
    if header_type.get("max_length") is None and any(f[1] == "*" for f in header_type["fields"]):
        raise UnsupportedProgramError(
            "fields of variable length without a maximum", where, "compile the program with p4c"
        )


def _refuse_unsupported_table(table: Json) -> None:
    where = f"table '{table['name']}'"
    if table.get("type", "simple") != "simple":
        raise UnsupportedProgramError(
            f"tables of type {table['type']}", where, "put the actions into the table itself"
        )
    if table.get("direct_meters"):
        raise UnsupportedProgramError("direct meters", where, "remove the table's meters property")
    if table.get("support_timeout"):
        raise UnsupportedProgramError(
            "idle timeouts", where, "remove the table's support_timeout property"
        )
    for field in table["key"]:
        if field["match_type"] not in {"exact", "lpm", "ternary", "range", "valid"}:
            raise UnsupportedProgramError(
                f"match kind {field['match_type']}",
                where,
                "use exact, lpm, ternary, range or optional",
            )


def load_program(config: bytes) -> LoadedProgram:
    """Read a program from a BMv2 JSON document."""
    document = read_document(config)
    _refuse_other_architectures(document)
    _refuse_unsupported_sections(document)
    try:
        return _program(document)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise MalformedProgramError(
            f"The program's JSON is incomplete: {type(error).__name__} {error}."
        ) from error


def _program(document: dict[str, Json]) -> LoadedProgram:
    headers = _headers(document)
    _refuse_wide_ports({header.name: header for header in headers.values()})
    unions = _unions(document, headers)
    actions = {item["name"]: item["id"] for item in reversed(document["actions"])}
    pipelines = {item["name"]: _pipeline(item, actions) for item in document["pipelines"]}
    return LoadedProgram(
        headers={header.name: header for header in headers.values()},
        stacks=_stacks(document, headers),
        unions={union.name: union for union in unions.values()},
        union_stacks=_union_stacks(document, unions),
        errors=dict(document.get("errors", [])),
        parser=_parser(document),
        deparse_order=tuple(document["deparsers"][0]["order"]) if document["deparsers"] else (),
        actions={item["id"]: _action(item) for item in document["actions"]},
        ingress=pipelines["ingress"],
        egress=pipelines["egress"],
        registers=_registers(document),
        counters=_counters(document),
        calculations={c["name"]: _calculation(c) for c in document.get("calculations", [])},
        checksums=tuple(_checksum(item) for item in document.get("checksums", [])),
        field_lists={item["id"]: _field_list(item) for item in document.get("field_lists", [])},
        aliases={name: (ref[0], ref[1]) for name, ref in document.get("field_aliases", [])},
    )


def _headers(document: dict[str, Json]) -> dict[int, HeaderSpec]:
    types = {item["name"]: item for item in document["header_types"]}
    return {
        item["id"]: HeaderSpec(
            item["name"],
            bool(item.get("metadata")),
            _fields(types[item["header_type"]]),
            item["header_type"],
        )
        for item in document["headers"]
    }


def _fields(kind: Json) -> tuple[FieldType, ...]:
    fixed = sum(field[1] for field in kind["fields"] if field[1] != "*")
    return tuple(_field(field, kind, fixed) for field in kind["fields"])


def _field(field: list[Any], kind: Json, fixed: int) -> FieldType:
    signed = bool(len(field) > 2 and field[2])
    if field[1] == "*":
        return FieldType(field[0], 8 * kind["max_length"] - fixed, signed=False, varbit=True)
    return FieldType(field[0], field[1], signed)


def _stacks(document: dict[str, Json], headers: dict[int, HeaderSpec]) -> dict[str, HeaderStack]:
    return {
        item["name"]: HeaderStack(
            item["name"], tuple(headers[ident].name for ident in item["header_ids"])
        )
        for item in document.get("header_stacks", [])
    }


def _unions(document: dict[str, Json], headers: dict[int, HeaderSpec]) -> dict[int, HeaderUnion]:
    types = {item["name"]: item for item in document.get("header_union_types", [])}
    unions = {}
    seen: set[int] = set()
    for item in document.get("header_unions", []):
        members = {}
        wanted = types[item["union_type"]]["headers"]
        for (name, kind), ident in zip(wanted, item["header_ids"], strict=True):
            header = headers[ident]
            if header.type_name != kind or ident in seen:
                raise MalformedProgramError(
                    f"Header '{header.name}' cannot be a member of union '{item['name']}': it has "
                    "another type or is in another union."
                )
            seen.add(ident)
            members[name] = header.name
        unions[item["id"]] = HeaderUnion(item["name"], item["union_type"], members)
    return unions


def _union_stacks(
    document: dict[str, Json], unions: dict[int, HeaderUnion]
) -> dict[str, UnionStack]:
    stacks = {}
    for item in document.get("header_union_stacks", []):
        elements = [unions[ident] for ident in item["header_union_ids"]]
        if any(union.type_name != item["union_type"] for union in elements):
            raise MalformedProgramError(f"Stack '{item['name']}' has unions of several types.")
        stacks[item["name"]] = UnionStack(item["name"], tuple(u.name for u in elements))
    return stacks


def _parser(document: dict[str, Json]) -> Parser:
    if not document.get("parsers"):
        return Parser(None, {})
    parser = document["parsers"][0]
    states = {item["name"]: _state(item) for item in parser["parse_states"]}
    return Parser(parser["init_state"], states)


def _state(item: Json) -> ParserState:
    return ParserState(
        item["name"],
        tuple(Primitive(op["op"], tuple(op["parameters"])) for op in item["parser_ops"]),
        tuple(item["transition_key"]),
        tuple(_transition(case, item["name"]) for case in item["transitions"]),
    )


def _transition(case: Json, state: str) -> Transition:
    kind = case.get("type", "hexstr")
    if kind == "parse_vset":
        raise UnsupportedProgramError(
            "parser value sets", f"parser state '{state}'", "match constants instead"
        )
    if kind == "default" or case["value"] == "default":
        return Transition(None, None, case["next_state"])
    mask = case.get("mask")
    return Transition(
        int(case["value"], 16), None if mask is None else int(mask, 16), case["next_state"]
    )


def _action(item: Json) -> ActionSpec:
    return ActionSpec(
        item["name"],
        item["id"],
        tuple(data["name"] for data in item["runtime_data"]),
        tuple(data["bitwidth"] for data in item["runtime_data"]),
        tuple(Primitive(p["op"], tuple(p.get("parameters") or ())) for p in item["primitives"]),
    )


def _pipeline(item: Json, actions: Mapping[str, int]) -> Pipeline:
    return Pipeline(
        item["name"],
        item["init_table"],
        {table["name"]: _table(table, actions) for table in item["tables"]},
        {
            c["name"]: Conditional(
                c["name"], c["expression"], c.get("true_next"), c.get("false_next")
            )
            for c in item["conditionals"]
        },
        {
            c["name"]: DirectCall(c["name"], c["action_id"], c.get("next_node"))
            for c in item.get("action_calls", [])
        },
    )


def _table(item: Json, actions: Mapping[str, int]) -> TableSpec:
    _refuse_unsupported_table(item)
    default = item.get("default_entry")
    # Compilers for P4_14 wrote no ids.
    idents = item.get("action_ids") or [actions[name] for name in item["actions"]]
    return TableSpec(
        name=item["name"],
        match_type=item["match_type"],
        key=tuple(_key_field(field) for field in item["key"]),
        actions=dict(zip(item["actions"], idents, strict=True)),
        next_tables=dict(item["next_tables"]),
        base_default_next=item.get("base_default_next"),
        default=None if default is None else _call(default),
        default_is_const=bool(default and default.get("action_const")),
        entries=tuple(_const_entry(entry) for entry in item.get("entries") or ()),
        with_counters=bool(item.get("with_counters")),
        max_size=item.get("max_size") or len(item.get("entries") or ()),
    )


def _key_field(field: Json) -> KeyField:
    mask = field.get("mask")
    target = field["target"]
    return KeyField(
        field["match_type"],
        field.get("name") or (target if isinstance(target, str) else ".".join(target)),
        field["target"],
        None if mask is None else int(mask, 16),
    )


def _call(item: Json) -> ActionCall:
    return ActionCall(item["action_id"], tuple(int(v, 16) for v in item.get("action_data") or ()))


def _const_entry(item: Json) -> ConstEntry:
    return ConstEntry(
        tuple(item["match_key"]), _call(item["action_entry"]), int(item.get("priority") or 0)
    )


def _registers(document: dict[str, Json]) -> dict[str, RegisterArray]:
    return {
        item["name"]: RegisterArray(item["name"], item["size"], item["bitwidth"])
        for item in document.get("register_arrays", [])
    }


def _counters(document: dict[str, Json]) -> dict[str, CounterArray]:
    return {
        item["name"]: CounterArray(
            item["name"],
            item.get("size") or 0,
            item["binding"] if item.get("is_direct") else None,
        )
        for item in document.get("counter_arrays", [])
    }


def _calculation(item: Json) -> Calculation:
    return Calculation(item["name"], item["algo"], tuple(item["input"]))


def _checksum(item: Json) -> Checksum:
    return Checksum(
        item["name"],
        (item["target"][0], item["target"][1]),
        item["calculation"],
        bool(item.get("verify", True)),
        bool(item.get("update", True)),
        item.get("if_cond"),
    )


def _field_list(item: Json) -> tuple[FieldRef, ...]:
    for element in item["elements"]:
        if element["type"] not in {"field", "hexstr"}:
            raise UnsupportedProgramError(
                f"an element of type {element['type']}",
                f"field list {item.get('name', item['id'])}",
                "preserve metadata fields only",
            )
    # As in BMv2, constants are not preserved.
    fields = [element["value"] for element in item["elements"] if element["type"] == "field"]
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
