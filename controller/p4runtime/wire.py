"""Write requests made as bytes, thousands of entries at a time.

A fanout entry is a message of three match fields and nineteen parameters, which Python builds
more slowly than the switch stores it. But all entries of one action differ only in the bytes
of their values if each value keeps its full width, as P4Runtime allows. So protobuf makes one
message without values (the template), which is copied for all entries, with the columns of
values pasted over it. The offsets of the values are found by encoding the template once more
with a different number in each byte.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from finsy.proto import p4r
from numpy.typing import NDArray

from switchgnn.base.array_types import UInt8s
from switchgnn.controller.p4runtime.layout import ACTION_ID_BYTES, Action, Field, Table
from switchgnn.controller.p4runtime.rows import (
    DELETE,
    INSERT,
    MODIFY,
    Rows,
    RowsDifference,
    concatenate,
    parse_rows,
    row_update,
)

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
    message, found = (
        np.frombuffer(
            p4r.WriteRequest(updates=[row_update(kind, table, row)]).SerializeToString(), np.uint8
        )
        for row in (blank, marked)
    )
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
