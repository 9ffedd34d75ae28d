# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Write requests made as bytes, thousands of entries at a time.

A fanout entry is a message of three match fields and nineteen parameters:
building it attribute by attribute takes Python longer than the switch needs to
store it. But all entries of one action look the same on the wire as long as
each value keeps its full width, which P4Runtime allows: only the bytes of the
values differ. So the message of an entry without values is made once, by
protobuf itself (the template), and then copied for all entries, with the
columns of values pasted over it.

Where the values are in the template is not computed but found: the template is
made once more, in which each byte of a value is another number.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from finsy.proto import p4r
from numpy.typing import NDArray

from switchgnn.controller.p4runtime.layout import ACTION_ID_BYTES
from switchgnn.controller.p4runtime.messages import DELETE, INSERT, MODIFY, row_update
from switchgnn.controller.p4runtime.rows import Bytes, Rows, RowsDifference

# Requests stay far below gRPC's usual limit of 4 MB.
BATCH = 4000
# The number of bytes that differ from each other and from 0.
_MARKS = 255


@dataclass(frozen=True)
class Request:
    """The updates of one write request, serialized.

    Attributes:
        updates: the field ``updates`` of a WriteRequest, without the fields
            that say which controller writes to which switch.
        count: how many updates.
    """

    updates: bytes
    count: int


@dataclass(frozen=True)
class _Template:
    """One update of a kind and action.

    Attributes:
        message: the update as part of a WriteRequest, values zero; uint8[L].
        places: the bytes of the message that are values; int[V].
        columns: the bytes of a row that belong there; int[V].
    """

    message: Bytes
    places: NDArray[np.intp]
    columns: NDArray[np.intp]


def encode_messages(updates: list[p4r.Update], batch: int = BATCH) -> Iterator[Request]:
    """Yield requests of at most ``batch`` updates each, from messages."""
    for start in range(0, len(updates), batch):
        part = updates[start : start + batch]
        yield Request(p4r.WriteRequest(updates=part).SerializeToString(), len(part))


def encode_rows(
    kind: "p4r.Update.Type.ValueType", rows: Rows, batch: int = BATCH
) -> Iterator[Request]:
    """Encode updates of rows as requests.

    Args:
        kind: insert, modify or delete.
        rows: of one table.
        batch: the most updates of a request.

    Yields:
        Requests, by action.
    """
    for part in _by_action(rows):
        template: _Template | None = None
        for start in range(0, len(part), batch):
            data = part.data[start : start + batch]
            template = template or _template(kind, rows, data[0])
            yield _encode(template, data)


def encode_difference(change: RowsDifference, batch: int = BATCH) -> Iterator[Request]:
    """Yield the requests for one table: deletions make room before insertions need it."""
    yield from encode_rows(DELETE, change.delete, batch)
    yield from encode_rows(MODIFY, change.modify, batch)
    yield from encode_rows(INSERT, change.insert, batch)


def _by_action(rows: Rows) -> Iterator[Rows]:
    ids = rows.action_ids
    for number in np.unique(ids):
        yield rows.select(ids == number)


def _encode(template: _Template, data: Bytes) -> Request:
    matrix = np.tile(template.message, (len(data), 1))
    matrix[:, template.places] = data[:, template.columns]
    return Request(matrix.tobytes(), len(data))


def _template(kind: "p4r.Update.Type.ValueType", rows: Rows, example: Bytes) -> _Template:
    table = rows.table
    # The action's id is not a value: it chooses the template.
    action_start, action_end = table.key_width, table.key_width + ACTION_ID_BYTES
    blank = example.copy()
    blank[:action_start] = 0
    blank[action_end:] = 0
    message = _update_bytes(kind, rows, blank)
    values = np.r_[:action_start, action_end : table.row_width]
    found = [
        _find(kind, rows, blank, message, values[first : first + _MARKS])
        for first in range(0, len(values), _MARKS)
    ]
    return _Template(
        message,
        np.concatenate([places for places, _ in found]),
        np.concatenate([columns for _, columns in found]),
    )


def _find(
    kind: "p4r.Update.Type.ValueType",
    rows: Rows,
    blank: Bytes,
    message: Bytes,
    columns: NDArray[np.intp],
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return where columns of a row are in its message, and which of them are there.

    A deletion has no parameters, and a narrow action ends early.
    """
    marked = blank.copy()
    marked[columns] = np.arange(1, len(columns) + 1)
    found = _update_bytes(kind, rows, marked)
    places = np.flatnonzero(found != message)
    return places, columns[found[places].astype(np.intp) - 1]


def _update_bytes(kind: "p4r.Update.Type.ValueType", rows: Rows, row: Bytes) -> Bytes:
    request = p4r.WriteRequest(updates=[row_update(kind, rows.table, row)])
    return np.frombuffer(request.SerializeToString(), np.uint8)
