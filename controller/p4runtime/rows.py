"""Table entries as a matrix of bytes, one row each, the difference of two, and their messages.

Rows, default actions and multicast groups become P4Runtime's messages, and the other way round, one
at a time on the plain path. Thousands of entries are written and read as bytes, which is tested
against that path: a fanout entry is a message of three match fields and nineteen parameters, which
Python builds more slowly than the switch stores it. But all entries of one action differ only in
the bytes of their values if each value keeps its full width, as P4Runtime allows. So protobuf makes
one message without values (the template), which is copied for all entries, with the columns of
values pasted over it. The offsets of the values are found by encoding the template once more with a
different number in each byte.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from finsy.proto import p4r
from numpy.typing import NDArray

from switchgnn.base.array_types import Bools, Integers, UInt8s
from switchgnn.controller.base.errors import PlanRefusedError
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
    data[:, table.key_width : params_start] = list(action.id.to_bytes(ACTION_ID_BYTES, "big"))
    for start, fields in ((0, table.keys), (params_start, action.params)):
        for field in fields:
            at = start + field.offset
            data[:, at : at + field.width] = _big_endian(table, field, values[field.name])
    return Rows(table, data)


def encode_default(table: Table, action: str, values: Mapping[str, int]) -> bytes:
    """Return a default action, the bytes of its id and parameters as in a row of the table."""
    key = dict.fromkeys((field.name for field in table.keys), 0)
    row = make_rows(table, action, {**key, **values}, 1).data[0]
    end = table.key_width + ACTION_ID_BYTES + table.action(action).width
    return bytes(row[table.key_width : end])


def decode_default(table: Table, action: str, default: bytes) -> dict[str, int]:
    """Return the parameters by name in the bytes of ``encode_default``."""
    row = bytes(table.key_width) + default.ljust(table.row_width - table.key_width, b"\0")
    rows = Rows(table, np.frombuffer(row, np.uint8).reshape(1, -1))
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
    return RowsDifference(
        delete=Rows(present.table, np.delete(present.data, here, axis=0)),
        modify=desired.select(there[changed]),
        insert=Rows(desired.table, np.delete(desired.data, there, axis=0)),
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


def group_update(kind: "p4r.Update.Type.ValueType", group: int, ports: Sequence[int]) -> p4r.Update:
    """Make the update for one multicast group; of several copies for a port, 0 is the last."""
    entity = p4r.Entity()
    entry = entity.packet_replication_engine_entry.multicast_group_entry
    entry.multicast_group_id = group
    if kind != DELETE:
        copies = Counter(ports)
        for port in ports:
            copies[port] -= 1
            entry.replicas.add(egress_port=port, instance=copies[port])
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
    number, tables = entity.table_entry.table_id, layout.tables.values() if layout else ()
    table = next((each for each in tables if each.id == number), None)
    if table is None:
        return f"table {number:#x}"
    if entity.table_entry.is_default_action:
        return f"table {table.name}, default action"
    names = {field.id: field.name for field in table.keys}
    key = ", ".join(
        f"{names.get(match.field_id, match.field_id)} {int.from_bytes(match.exact.value, 'big')}"
        for match in entity.table_entry.match
    )
    return f"table {table.name}, entry {key}"


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


# Requests stay far below gRPC's usual limit of 4 MB.
BATCH = 4000
# Distinct bytes other than 0.
_MARKS = 255


@dataclass(frozen=True)
class Request:
    """The updates of one write request, serialized."""

    # the field ``updates`` of a WriteRequest, without the fields that say which controller writes
    # to which switch
    updates: bytes
    count: int  # how many updates


@dataclass(frozen=True)
class _Template:
    """One update of a kind and action."""

    message: UInt8s  # the update as part of a WriteRequest, values zero; uint8[L]
    offsets: NDArray[np.intp]  # the bytes of the message that are values; int[V]
    columns: NDArray[np.intp]  # the bytes of a row that belong there; int[V]

    def encode(self, data: UInt8s) -> Request:
        """Return the updates of rows."""
        matrix = np.tile(self.message, (len(data), 1))
        matrix[:, self.offsets] = data[:, self.columns]
        return Request(matrix.tobytes(), len(data))


def encode_messages(updates: list[p4r.Update], batch: int = BATCH) -> Iterator[Request]:
    """Yield requests of at most ``batch`` updates each, from messages."""
    for start in range(0, len(updates), batch):
        part = updates[start : start + batch]
        yield Request(p4r.WriteRequest(updates=part).SerializeToString(), len(part))


def encode_rows(
    kind: "p4r.Update.Type.ValueType", rows: Rows, batch: int = BATCH
) -> Iterator[Request]:
    """Yield requests of at most ``batch`` updates of rows, by action."""
    ids = rows.action_ids
    for number in np.unique(ids):
        data = rows.data[ids == number]
        template = _template(kind, rows.table, data[0])
        for start in range(0, len(data), batch):
            yield template.encode(data[start : start + batch])


def encode_difference(change: RowsDifference) -> Iterator[Request]:
    """Yield the requests for one table: deletions make room before insertions need it."""
    yield from encode_rows(DELETE, change.delete)
    yield from encode_rows(MODIFY, change.modify)
    yield from encode_rows(INSERT, change.insert)


def _template(kind: "p4r.Update.Type.ValueType", table: Table, example: UInt8s) -> _Template:
    # The action's id chooses the template.
    values = np.delete(np.arange(table.row_width), np.arange(ACTION_ID_BYTES) + table.key_width)
    if len(values) > _MARKS:
        raise ValueError(f"Entries of table {table.name} have more than {_MARKS} bytes.")
    blank = example.copy()
    blank[values] = 0
    marked = blank.copy()
    marked[values] = np.arange(1, len(values) + 1)
    requests = (p4r.WriteRequest(updates=[row_update(kind, table, row)]) for row in (blank, marked))
    message, found = (np.frombuffer(each.SerializeToString(), np.uint8) for each in requests)
    # A deletion has no parameters, and a narrow action ends early.
    offsets = np.flatnonzero(found != message)
    return _Template(message, offsets, values[found[offsets].astype(np.intp) - 1])


# Tags of the protobuf wire format: the number of a field * 8 + its type
# (0 a number, 2 bytes or a message).
_ENTITIES = 1 * 8 + 2  # of ReadResponse
_TABLE_ENTRY = 2 * 8 + 2  # of Entity
_TABLE_ID = 1 * 8  # of TableEntry
_MATCH = 2 * 8 + 2
_ACTION = 3 * 8 + 2
_FIELD_ID = 1 * 8  # of FieldMatch
_EXACT = 2 * 8 + 2
_EXACT_VALUE = 1 * 8 + 2  # of FieldMatch.Exact
_TABLE_ACTION = 1 * 8 + 2  # of TableAction
_ACTION_ID = 1 * 8  # of Action
_PARAM = 4 * 8 + 2
_PARAM_ID = 2 * 8  # of Action.Param
_PARAM_VALUE = 3 * 8 + 2

# Lengths and ids below this take one byte.
_ONE_BYTE = 0x80
# The reach of one step outside the buffer.
_MARGIN = 256
_WORD = 8
# Up to this number, parsing single entries beats a walk.
_FEW = 16
# Words with all ones in their last n bytes, n the index.
_LAST_BYTES = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], np.uint64)


def count_entities(response: bytes) -> int:
    """Return the number of entities in a serialized ReadResponse."""
    return sum(1 for _ in _entities(response))


def decode_rows(table: Table, responses: Iterable[bytes]) -> Rows:
    """Return the entries in serialized ReadResponses to a read of one table."""
    # Protobuf joins messages by their bytes.
    response = b"".join(responses)
    spans = np.array(list(_entities(response)), np.intp).reshape(-1, 2)
    parts = []
    for action in table.actions:
        if len(spans) <= _FEW:
            break
        walk = _Walk(response, spans, table)
        walk.entry(action)
        parts.append(Rows(table, walk.rows[walk.sound]))
        spans = spans[~walk.sound]
    entities = (p4r.Entity.FromString(response[start:end]) for start, end in spans.tolist())
    return concatenate(table, *parts, parse_rows(table, (each.table_entry for each in entities)))


def _entities(response: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each entity starts and ends."""
    at, end = 0, len(response)
    while at < end:
        if response[at] != _ENTITIES:
            raise ValueError("A read response holds something that is not an entity.")
        size, shift, at = response[at + 1], 7, at + 2
        if size >= _ONE_BYTE:
            size &= 0x7F
            while True:
                more = response[at]
                at += 1
                size |= (more & 0x7F) << shift
                if more < _ONE_BYTE:
                    break
                shift += 7
        yield at, at + size
        at += size


class _Walk:
    """One position per entity, moved in step."""

    def __init__(self, response: bytes, spans: NDArray[np.intp], table: Table) -> None:
        padded = bytes(_MARGIN) + response + bytes(_MARGIN)
        self._buffer: UInt8s = np.frombuffer(padded, np.uint8)
        # The words that begin at each byte, by their first byte and by their last.
        words = len(padded) - _WORD + 1
        self._little = np.ndarray((words,), "<u8", padded, strides=(1,))
        self._big = np.ndarray((words,), ">u8", padded, strides=(1,))
        self._at = spans[:, 0] + _MARGIN
        self._end = spans[:, 1] + _MARGIN
        self._table = table
        # bool[N], which entities have been as expected so far
        self.sound = np.ones(len(spans), np.bool_)
        # uint8[N, row_width], filled on the way
        self.rows: UInt8s = np.zeros((len(spans), table.row_width), np.uint8)

    def entry(self, action: Action) -> None:
        """Walk over a whole entry with this action."""
        table = self._table
        self._message(_TABLE_ENTRY)
        self._constant(bytes([_TABLE_ID]) + _varint(table.id))
        for field in table.keys:
            header: tuple[int, ...] = (_MATCH, 6, _FIELD_ID, field.id, _EXACT, 2, _EXACT_VALUE, 0)
            self._value(field, 0, header, (1, 5, 7))
        self._message(_ACTION)
        self._message(_TABLE_ACTION)
        self._constant(bytes([_ACTION_ID]) + _varint(action.id))
        start = table.key_width
        self.rows[:, start : start + ACTION_ID_BYTES] = np.frombuffer(
            action.id.to_bytes(ACTION_ID_BYTES, "big"), np.uint8
        )
        for field in action.params:
            header = (_PARAM, 4, _PARAM_ID, field.id, _PARAM_VALUE, 0)
            self._value(field, start + ACTION_ID_BYTES, header, (1, 5))
        self.sound &= self._at == self._end

    def _advance(self, by: int | NDArray[np.intp]) -> None:
        # Unsound entities must not leave the buffer.
        self._at = np.minimum(self._at + by, len(self._buffer) - _MARGIN)

    def _constant(self, expected: bytes) -> None:
        for byte in expected:
            self.sound &= self._buffer[self._at] == byte
            self._advance(1)

    def _length(self) -> NDArray[np.intp]:
        low = self._buffer[self._at].astype(np.intp)
        high = self._buffer[self._at + 1].astype(np.intp)
        two = low >= _ONE_BYTE
        self.sound &= ~two | (high < _ONE_BYTE)
        self._advance(1 + two.astype(np.intp))
        length: NDArray[np.intp] = np.where(two, (low & 0x7F) | (high << 7), low)
        return length

    def _message(self, tag: int) -> None:
        """Enter a message that ends where the entity ends."""
        self._constant(bytes([tag]))
        length = self._length()
        self.sound &= self._at + length == self._end

    def _value(
        self, field: Field, start: int, header: tuple[int, ...], lengths: tuple[int, ...]
    ) -> None:
        """Walk over a match field or a parameter, and keep its value.

        The bytes at `lengths` of the header count the rest of it, and the value.
        """
        if max(header) + field.width >= _ONE_BYTE:
            self.sound[:] = False
            return
        word = int.from_bytes(bytes(header), "little")
        once = sum(1 << 8 * offset for offset in lengths)
        found = self._little[self._at] & _LAST_BYTES[len(header)]
        length = found >> np.uint64(8 * (len(header) - 1))
        self.sound &= length <= field.width
        length = np.minimum(length, np.uint64(field.width))
        self.sound &= found == np.uint64(word) + length * np.uint64(once)
        taken = length.astype(np.intp)
        self._advance(len(header) + taken)
        self._keep(field, start, taken)

    def _keep(self, field: Field, start: int, length: NDArray[np.intp]) -> None:
        """Copy right-aligned values that end here."""
        after = start + field.offset + field.width
        for back in range(0, field.width, _WORD):
            count = min(_WORD, field.width - back)
            words = (
                self._big[self._at - back - _WORD] & _LAST_BYTES[np.clip(length - back, 0, _WORD)]
            )
            column = words.astype(">u8").view(np.uint8).reshape(-1, _WORD)[:, _WORD - count :]
            self.rows[:, after - back - count : after - back] = column


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= _ONE_BYTE:
        out.append(number & 0x7F | _ONE_BYTE)
        number >>= 7
    return bytes([*out, number])
