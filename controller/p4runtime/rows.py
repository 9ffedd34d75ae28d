# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Table entries as a matrix of bytes, one row each, and the difference of two."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.controller.errors import PlanRefusedError
from switchgnn.controller.p4runtime.layout import ACTION_ID_BYTES, Action, Field, Table

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.integer]
# A matrix: the big-endian bytes of numbers wider than a machine word, one row each.
Value = int | list[int] | Numbers
Column = NDArray[np.uint64] | list[int]

# A key is compared as one machine word.
_WORD_BYTES = 8


@dataclass(frozen=True)
class Rows:
    """Entries of one table.

    Attributes:
        table: whose entries they are.
        data: uint8[N, table.row_width]; see ``layout``.
    """

    table: Table
    data: Bytes

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

    def select(self, which: NDArray[np.intp] | NDArray[np.bool_] | slice) -> "Rows":
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


def _big_endian(table: Table, field: Field, value: Value) -> Bytes:
    """Return the bytes of one number for all entries, or uint8[N, width] of one for each."""
    wide = field.width > _WORD_BYTES
    if wide and isinstance(value, np.ndarray) and value.ndim == 2:
        return value.astype(np.uint8, copy=False)
    numbers = np.atleast_1d(np.asarray(value, dtype=object if wide else None))
    for number in _range(numbers):
        if number < 0 or number >> field.bits:
            raise PlanRefusedError(
                f"{field.name} of table {table.name} has {field.bits} bits, too few for {number}."
            )
    if wide:
        joined = b"".join(int(number).to_bytes(field.width, "big") for number in numbers)
        return np.frombuffer(joined, np.uint8).reshape(-1, field.width)
    words = np.ascontiguousarray(numbers, dtype=">u8").view(np.uint8)
    return words.reshape(-1, _WORD_BYTES)[:, _WORD_BYTES - field.width :]


def _range(numbers: Numbers) -> tuple[int, int]:
    return (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)


def _numbers(data: Bytes) -> NDArray[np.uint64]:
    words = np.zeros((len(data), _WORD_BYTES), np.uint8)
    words[:, _WORD_BYTES - data.shape[1] :] = data
    return words.view(">u8").reshape(-1).astype(np.uint64)


def _column(data: Bytes, start: int, field: Field) -> Column:
    part = data[:, start + field.offset : start + field.offset + field.width]
    if field.width <= _WORD_BYTES:
        return _numbers(part)
    return [int.from_bytes(row.tobytes(), "big") for row in part]


Record = dict[str, int | str]


def records(columns: Mapping[str, Column]) -> list[Record]:
    """Return one record per entry from columns of equal length."""
    names = list(columns)
    values = zip(*columns.values(), strict=True)
    return [dict(zip(names, map(int, row), strict=True)) for row in values]
