# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Read responses taken apart as bytes, all entries of a table at once.

The counterpart of ``wire``. A switch answers with numbers as short as they
will go, so entries differ in length and the values cannot be cut out by column.
But all of them have the same fields, so they can be walked in step: one
position per entry, moved over one field at a time, each step being a handful of
NumPy operations whatever the number of entries. An entry that is spelled in any
other way (fields in another order, a further field such as metadata, another
action) leaves the walk and is parsed by protobuf.
"""

from collections.abc import Iterator

import numpy as np
from finsy.proto import p4r
from numpy.typing import NDArray

from switchgnn.controller.p4runtime.layout import ACTION_ID_BYTES, Action, Field, Table
from switchgnn.controller.p4runtime.messages import parse_rows
from switchgnn.controller.p4runtime.rows import Bytes, Rows, concatenate, no_rows

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
# No position is looked at further behind the end than one step reaches.
_MARGIN = 64


def count_entities(response: bytes) -> int:
    """Return the number of entities in a serialized ReadResponse."""
    return sum(1 for _ in _entities(response))


def decode_rows(table: Table, responses: list[bytes]) -> Rows:
    """Return the entries in serialized ReadResponses to a read of one table."""
    parts = [_decode_response(table, response) for response in responses]
    return concatenate(table, no_rows(table), *parts)


def _decode_response(table: Table, response: bytes) -> Rows:
    places = np.array(list(_entities(response)), np.intp).reshape(-1, 2)
    parts = []
    for action in table.actions:
        walk = _Walk(response, places, table)
        walk.entry(action)
        parts.append(Rows(table, walk.rows[walk.sound]))
        places = places[~walk.sound]
    entities = (p4r.Entity.FromString(response[start:end]) for start, end in places.tolist())
    return concatenate(table, *parts, parse_rows(table, (each.table_entry for each in entities)))


def _entities(response: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each entity starts and ends."""
    at, end = 0, len(response)
    while at < end:
        if response[at] != _ENTITIES:
            raise ValueError("a read response holds something that is not an entity")
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
    """One position per entity, moved in step.

    Attributes:
        sound: bool[N], which entities have been as expected so far.
        rows: uint8[N, row_width], filled on the way.
    """

    def __init__(self, response: bytes, places: NDArray[np.intp], table: Table) -> None:
        self._buffer: Bytes = np.frombuffer(response + bytes(_MARGIN), np.uint8)
        self._at = places[:, 0].copy()
        self._end = places[:, 1]
        self._table = table
        self.sound = np.ones(len(places), np.bool_)
        self.rows: Bytes = np.zeros((len(places), table.row_width), np.uint8)

    def entry(self, action: Action) -> None:
        """Walk over a whole entry with this action."""
        table = self._table
        self._message(_TABLE_ENTRY)
        self._constant(bytes([_TABLE_ID]) + _varint(table.id))
        for field in table.keys:
            self._value(field, 0, (_MATCH, _FIELD_ID, _EXACT, _EXACT_VALUE))
        self._message(_ACTION)
        self._message(_TABLE_ACTION)
        self._constant(bytes([_ACTION_ID]) + _varint(action.id))
        start = table.key_width
        self.rows[:, start : start + ACTION_ID_BYTES] = np.frombuffer(
            action.id.to_bytes(ACTION_ID_BYTES, "big"), np.uint8
        )
        for field in action.params:
            self._value(field, start + ACTION_ID_BYTES, (_PARAM, _PARAM_ID, None, _PARAM_VALUE))
        self.sound &= self._at == self._end

    def _expect(self, byte: int) -> None:
        self.sound &= self._buffer[self._at] == byte
        self._advance(1)

    def _advance(self, by: int | NDArray[np.intp]) -> None:
        # Entities that have left the walk must not lead out of the buffer.
        self._at = np.minimum(self._at + by, len(self._buffer) - _MARGIN)

    def _constant(self, expected: bytes) -> None:
        for byte in expected:
            self._expect(byte)

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
        self._expect(tag)
        length = self._length()
        self.sound &= self._at + length == self._end

    def _value(self, field: Field, start: int, tags: tuple[int, int, int | None, int]) -> None:
        """Walk over a match field or a parameter, and keep its value."""
        outer, number, inner, value = tags
        self._expect(outer)
        outer_length = self._length()
        after = self._at + outer_length
        self._constant(bytes([number]) + _varint(field.id))
        if inner is not None:
            self._expect(inner)
            inner_length = self._length()
            self.sound &= self._at + inner_length == after
        self._expect(value)
        length = self._length()
        self.sound &= (self._at + length == after) & (length <= field.width)
        self._advance(np.minimum(length, field.width))
        # From the last byte to the first: values are right-aligned.
        column = start + field.offset + field.width - 1
        for back in range(field.width):
            byte = self._buffer[np.maximum(self._at - 1 - back, 0)]
            self.rows[:, column - back] = np.where(back < length, byte, 0)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= _ONE_BYTE:
        out.append(number & 0x7F | _ONE_BYTE)
        number >>= 7
    return bytes([*out, number])
