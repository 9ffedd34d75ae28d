# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""All that a controller can put into a switch, as one value."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from finsy.proto import p4r

from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.p4runtime.layout import Layout, Table
from switchgnn.controller.p4runtime.messages import parse_default, parse_group
from switchgnn.controller.p4runtime.rows import Rows, no_rows

Groups = Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class SwitchContents:
    """The contents of one switch."""

    rows: Mapping[str, Rows]  # the entries of every table that has a key, by the table's name
    defaults: Mapping[str, bytes]  # the default action of every table whose program lets it change
    groups: Groups  # the sorted ports of every multicast group


def empty_state(layout: Layout) -> SwitchContents:
    """Return the contents of a switch that has just loaded its program."""
    return SwitchContents(
        rows={table.name: no_rows(table) for table in keyed_tables(layout)},
        defaults={
            table.name: table.default
            for table in layout.tables.values()
            if table.default is not None
        },
        groups={},
    )


def keyed_tables(layout: Layout) -> list[Table]:
    """Return the tables that have entries."""
    return [table for table in layout.tables.values() if table.keys]


def read_state(client: P4RuntimeClient, layout: Layout) -> SwitchContents:
    """Return the contents of a switch."""
    return SwitchContents(
        rows={table.name: read_rows(client, table) for table in keyed_tables(layout)},
        defaults={
            name: read_default(client, layout.table(name)) for name in empty_state(layout).defaults
        },
        groups=read_groups(client),
    )


def read_rows(client: P4RuntimeClient, table: Table) -> Rows:
    """Return the entries of one table, sorted by key."""
    rows = client.decode(table, client.read_responses([table_entity(table)]))
    return rows.select(np.argsort(rows.keys, kind="stable"))


def table_entity(table: Table) -> p4r.Entity:
    """Return the query for all entries of a table."""
    return p4r.Entity(table_entry=p4r.TableEntry(table_id=table.id))


def read_default(client: P4RuntimeClient, table: Table) -> bytes:
    """Return the default action of one table."""
    query = p4r.TableEntry(table_id=table.id, is_default_action=True)
    for entity in client.read([p4r.Entity(table_entry=query)]):
        return parse_default(table, entity.table_entry)
    return table.default or b""


def read_groups(client: P4RuntimeClient) -> dict[int, tuple[int, ...]]:
    """Return the sorted ports of every multicast group."""
    query = p4r.Entity()
    # Group 0 stands for all groups.
    query.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = 0
    entries = (entity.packet_replication_engine_entry for entity in client.read([query]))
    return dict(parse_group(entry.multicast_group_entry) for entry in entries)
