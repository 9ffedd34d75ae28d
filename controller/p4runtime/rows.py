"""Table entries as a matrix of bytes, one row each, and the difference of two.

Also the plain path from rows, default actions and multicast groups to P4Runtime's messages and
back, one at a time; ``wire`` is tested against it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from finsy.proto import p4r
from numpy.typing import NDArray

from switchgnn.base.array_types import Bools, Integers, UInt8s
from switchgnn.controller.errors import PlanRefusedError
from switchgnn.controller.p4runtime.layout import ACTION_ID_BYTES, Action, Field, Layout, Table

# A matrix: the big-endian bytes of numbers wider than a machine word, one row each.
Value = int | list[int] | Integers
Column = NDArray[np.uint64] | list[int]

# A key is compared as one machine word.
_WORD_BYTES = 8


@dataclass(frozen=True)
class Rows:
    """Entries of one table."""

    table: Table  # whose entries they are
    data: UInt8s  # uint8[N, table.row_width]; see ``layout``

    def __len__(self) -> int:
        return len(self.data)

    @property
    def keys(self) -> NDArray[np.uint64]:
        """The keys as numbers, uint64[N]."""
        return _numbers(self.data[:, : self.table.key_width])

    @property
    def action_ids(self) -> NDArray[np.uint64]:
        """The P4Runtime id of each entry's action, uint64[N]."""
        start = self.table.key_width
        return _numbers(self.data[:, start : start + ACTION_ID_BYTES])

    def select(self, which: NDArray[np.intp] | Bools | slice) -> "Rows":
        """Return some of the rows."""
        return Rows(self.table, self.data[which])

    def key_columns(self) -> dict[str, Column]:
        """Return the key fields by name."""
        return {field.name: _column(self.data, 0, field) for field in self.table.keys}

    def param_columns(self, action: Action) -> dict[str, Column]:
        """Return the parameters by name, as if every entry had this action."""
        start = self.table.key_width + ACTION_ID_BYTES
        return {field.name: _column(self.data, start, field) for field in action.params}


def no_rows(table: Table) -> Rows:
    """Return no entries of ``table``."""
    return Rows(table, np.zeros((0, table.row_width), np.uint8))


def make_rows(table: Table, action_name: str, values: Mapping[str, Value], count: int) -> Rows:
    """Make ``count`` entries with one action.

    ``values`` has an array of ``count`` numbers, or one number for all, per key and parameter.
    """
    action = table.action(action_name)
    data = np.zeros((count, table.row_width), np.uint8)
    params_start = table.key_width + ACTION_ID_BYTES
    data[:, table.key_width : params_start] = np.frombuffer(
        action.id.to_bytes(ACTION_ID_BYTES, "big"), np.uint8
    )
    for start, fields in ((0, table.keys), (params_start, action.params)):
        for field in fields:
            at = start + field.offset
            data[:, at : at + field.width] = _big_endian(table, field, values[field.name])
    return Rows(table, data)


def encode_default(table: Table, action: str, values: Mapping[str, int]) -> bytes:
    """Return a default action, the bytes of its id and parameters as in a row of the table."""
    return make_rows(table, action, values, 1).data.tobytes()


def decode_default(table: Table, action: str, default: bytes) -> dict[str, int]:
    """Return the parameters by name in the bytes of ``encode_default``."""
    rows = Rows(table, np.frombuffer(default, np.uint8).reshape(1, -1))
    columns = rows.param_columns(table.action(action))
    return {name: int(column[0]) for name, column in columns.items()}


def concatenate(table: Table, *parts: Rows) -> Rows:
    """Return all entries of ``parts``."""
    return Rows(table, np.concatenate([part.data for part in parts]))


def describe_key(rows: Rows) -> str:
    """Return the key of the first row in words."""
    columns = rows.key_columns()
    return ", ".join(f"{name} {int(column[0])}" for name, column in columns.items())


@dataclass(frozen=True)
class RowsDifference:
    """The updates from one table's entries to others: delete, then modify, then insert."""

    delete: Rows
    modify: Rows
    insert: Rows

    def __len__(self) -> int:
        return len(self.delete) + len(self.modify) + len(self.insert)


def difference(present: Rows, desired: Rows) -> RowsDifference:
    """Return the updates from ``present`` to ``desired``; keys are unique in each."""
    _, here, there = np.intersect1d(
        present.keys, desired.keys, assume_unique=True, return_indices=True
    )
    changed = (present.data[here] != desired.data[there]).any(axis=1)
    gone = np.ones(len(present), np.bool_)
    gone[here] = False
    fresh = np.ones(len(desired), np.bool_)
    fresh[there] = False
    return RowsDifference(
        delete=present.select(gone),
        modify=desired.select(there[changed]),
        insert=desired.select(fresh),
    )


def _big_endian(table: Table, field: Field, value: Value) -> UInt8s:
    """Return the bytes of one number for all entries, or uint8[N, width] of one for each."""
    wide = field.width > _WORD_BYTES
    if wide and isinstance(value, np.ndarray) and value.ndim == 2:
        return value.astype(np.uint8, copy=False)
    numbers = np.atleast_1d(np.asarray(value, dtype=object if wide else None))
    for number in (int(numbers.min(initial=0)), int(numbers.max(initial=0))):
        if number < 0 or number >> field.bits:
            raise PlanRefusedError(
                f"{field.name} of table {table.name} has {field.bits} bits, too few for {number}."
            )
    if wide:
        joined = b"".join(int(number).to_bytes(field.width, "big") for number in numbers)
        return np.frombuffer(joined, np.uint8).reshape(-1, field.width)
    words = np.ascontiguousarray(numbers, dtype=">u8").view(np.uint8)
    return words.reshape(-1, _WORD_BYTES)[:, _WORD_BYTES - field.width :]


def _numbers(data: UInt8s) -> NDArray[np.uint64]:
    words = np.zeros((len(data), _WORD_BYTES), np.uint8)
    words[:, _WORD_BYTES - data.shape[1] :] = data
    return words.view(">u8").reshape(-1).astype(np.uint64)


def _column(data: UInt8s, start: int, field: Field) -> Column:
    part = data[:, start + field.offset : start + field.offset + field.width]
    if field.width <= _WORD_BYTES:
        return _numbers(part)
    return [int.from_bytes(row.tobytes(), "big") for row in part]


Record = dict[str, int | str]
INSERT = p4r.Update.INSERT
MODIFY = p4r.Update.MODIFY
DELETE = p4r.Update.DELETE


def row_update(kind: "p4r.Update.Type.ValueType", table: Table, row: UInt8s) -> p4r.Update:
    """Make the update for one row; a deletion carries the key only."""
    entry = p4r.TableEntry(table_id=table.id)
    raw = row.tobytes()
    for field in table.keys:
        match = entry.match.add(field_id=field.id)
        match.exact.value = raw[field.offset : field.offset + field.width]
    if kind != DELETE:
        _fill_action(entry, table, raw[table.key_width :])
    return p4r.Update(type=kind, entity=p4r.Entity(table_entry=entry))


def table_entity(table: Table) -> p4r.Entity:
    """Return the query for all entries of a table."""
    return p4r.Entity(table_entry=p4r.TableEntry(table_id=table.id))


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
