# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the parts of a program that the switch refuses, before any code is generated."""

from collections.abc import Mapping

from switchgnn.softswitch.errors import UnsupportedProgramError
from switchgnn.softswitch.program import PORT_BITS, Header, Json

_SECTIONS = {
    "meter_arrays": ("meters", "count packets or use registers instead"),
    "learn_lists": ("digests", "send a copy to the controller as a packet-in instead"),
    "extern_instances": ("extern instances", "use the externs of v1model"),
    "parse_vsets": ("parser value sets", "match constants instead"),
}


def refuse_unsupported_sections(document: dict[str, Json]) -> None:
    """Refuse a program with a section or a field type that the switch does not support.

    Raises:
        UnsupportedProgramError: the program has one.
    """
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


def refuse_wide_ports(headers: Mapping[str, Header]) -> None:
    """Refuse a program whose ports have more bits than those of v1model.

    Such numbers come from packets, and each would have a queue and counters of its own.

    Raises:
        UnsupportedProgramError: its ports are wider.
    """
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
            "header types with an expression for their length",
            where,
            "give the length to extract, as P4_16 does",
        )
    if header_type.get("max_length") is None and any(f[1] == "*" for f in header_type["fields"]):
        raise UnsupportedProgramError(
            "fields of any length without a longest one", where, "compile the program with p4c"
        )


def refuse_unsupported_table(table: Json) -> None:
    """Refuse a table with a property or a match kind that the switch does not support.

    Raises:
        UnsupportedProgramError: the table has one.
    """
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
