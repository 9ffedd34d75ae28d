# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How controllers write entries, for what reads and writes many of them at once."""

from finsy.proto import p4i

from switchgnn.softswitch.p4runtime.schema import Schema, TableSchema
from switchgnn.softswitch.tables import ActionFormat, EntryFormat


def entry_formats(schema: Schema) -> list[EntryFormat]:
    """Return the formats of the tables whose fields are all exact."""
    return [_format(table) for table in schema.tables.values() if _is_exact(table)]


def _is_exact(table: TableSchema) -> bool:
    return all(field.kind == p4i.MatchField.EXACT for field in table.fields)


def _format(table: TableSchema) -> EntryFormat:
    return EntryFormat(
        table.name,
        table.ident,
        table.size,
        not table.constant,
        tuple((field.ident, field.width) for field in table.fields),
        tuple(
            ActionFormat(
                action.ident,
                action.number,
                tuple((parameter.ident, parameter.width) for parameter in action.parameters),
            )
            for action in table.actions.values()
            if action.for_entries
        ),
    )
