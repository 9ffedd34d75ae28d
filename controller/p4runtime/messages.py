# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Rows, default actions and multicast groups as P4Runtime messages, one at a time.

The plain path for single entries; ``wire`` is tested against it.
"""

from collections.abc import Iterable

import numpy as np
from finsy.proto import p4r

from switchgnn.controller.p4runtime.layout import ACTION_ID_BYTES, Layout, Table
from switchgnn.controller.p4runtime.rows import Bytes, Rows, no_rows

INSERT = p4r.Update.INSERT
MODIFY = p4r.Update.MODIFY
DELETE = p4r.Update.DELETE


def row_update(kind: "p4r.Update.Type.ValueType", table: Table, row: Bytes) -> p4r.Update:
    """Make the update for one row; a deletion carries the key only."""
    entry = p4r.TableEntry(table_id=table.id)
    raw = row.tobytes()
    for field in table.keys:
        match = entry.match.add(field_id=field.id)
        match.exact.value = raw[field.offset : field.offset + field.width]
    if kind != DELETE:
        _fill_action(entry, table, raw[table.key_width :])
    return p4r.Update(type=kind, entity=p4r.Entity(table_entry=entry))


def default_update(table: Table, default: bytes) -> p4r.Update:
    """Return the update that sets a table's default action, or restores the program's own."""
    entry = p4r.TableEntry(table_id=table.id, is_default_action=True)
    if default != table.default:
        _fill_action(entry, table, default)
    return p4r.Update(type=MODIFY, entity=p4r.Entity(table_entry=entry))


def group_update(kind: "p4r.Update.Type.ValueType", group: int, ports: Iterable[int]) -> p4r.Update:
    """Make the update for one multicast group."""
    entity = p4r.Entity()
    entry = entity.packet_replication_engine_entry.multicast_group_entry
    entry.multicast_group_id = group
    if kind != DELETE:
        for port in ports:
            entry.replicas.add(egress_port=port)
    return p4r.Update(type=kind, entity=entity)


def parse_rows(table: Table, entries: Iterable[p4r.TableEntry]) -> Rows:
    """Return table entries as rows, with or without leading zeros in their numbers."""
    rows = [_row(table, entry) for entry in entries]
    if not rows:
        return no_rows(table)
    data = np.frombuffer(b"".join(rows), np.uint8).reshape(-1, table.row_width)
    return Rows(table, data)


def parse_default(table: Table, entry: p4r.TableEntry) -> bytes:
    """Return the id and parameters of the default action in an entry."""
    if not entry.HasField("action"):
        return table.default or b""
    return _action_bytes(table, entry.action.action)


def parse_group(entry: p4r.MulticastGroupEntry) -> tuple[int, tuple[int, ...]]:
    """Return the number and the sorted ports of a multicast group."""
    # P4Runtime 1.4 deprecates the number for bytes: a switch may answer with either.
    ports = (
        int.from_bytes(replica.port, "big") if replica.port else replica.egress_port
        for replica in entry.replicas
    )
    return entry.multicast_group_id, tuple(sorted(ports))


def describe_entity(entity: p4r.Entity, layout: Layout | None) -> str:
    """Name the table or group of a message, and its key."""
    if entity.HasField("packet_replication_engine_entry"):
        entry = entity.packet_replication_engine_entry
        return f"multicast group {entry.multicast_group_entry.multicast_group_id}"
    if not entity.HasField("table_entry"):
        return str(entity.WhichOneof("entity"))
    tables = {table.id: table for table in layout.tables.values()} if layout else {}
    table = tables.get(entity.table_entry.table_id)
    where = f"table {table.name}" if table else f"table {entity.table_entry.table_id:#x}"
    if entity.table_entry.is_default_action:
        return f"{where}, default action"
    names = {field.id: field.name for field in table.keys} if table else {}
    key = ", ".join(
        f"{names.get(match.field_id, match.field_id)} {int.from_bytes(match.exact.value, 'big')}"
        for match in entity.table_entry.match
    )
    return f"{where}, entry {key}"


def _fill_action(entry: p4r.TableEntry, table: Table, raw: bytes) -> None:
    action = table.action(int.from_bytes(raw[:ACTION_ID_BYTES], "big"))
    message = entry.action.action
    message.action_id = action.id
    for field in action.params:
        at = ACTION_ID_BYTES + field.offset
        message.params.add(param_id=field.id, value=raw[at : at + field.width])


def _row(table: Table, entry: p4r.TableEntry) -> bytes:
    matches = {match.field_id: match.exact.value for match in entry.match}
    key = b"".join(_padded(matches[field.id], field.width) for field in table.keys)
    return (key + _action_bytes(table, entry.action.action)).ljust(table.row_width, b"\0")


def _action_bytes(table: Table, message: p4r.Action) -> bytes:
    params = {param.param_id: param.value for param in message.params}
    fields = table.action(message.action_id).params
    values = (_padded(params[field.id], field.width) for field in fields)
    return message.action_id.to_bytes(ACTION_ID_BYTES, "big") + b"".join(values)


def _padded(value: bytes, width: int) -> bytes:
    return value.lstrip(b"\0").rjust(width, b"\0")
