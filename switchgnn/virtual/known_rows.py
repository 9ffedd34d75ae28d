# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Table entries that a switch has answered before are not taken apart again."""

from collections.abc import Iterable

from switchgnn.controller.p4runtime.layout import Table
from switchgnn.controller.p4runtime.rows import Rows
from switchgnn.controller.p4runtime.wire import decode_rows


class KnownRows:
    """Takes answers apart as the controller does, equal ones once.

    The controller reads all back that it has written, and its watch looks once more, so most
    answers of runs with one plan are equal.
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[int, bytes], Rows] = {}

    def decode(self, table: Table, responses: Iterable[bytes]) -> Rows:
        """Return the entries in serialized ReadResponses to a read of one table."""
        answer = b"".join(responses)
        rows = self._rows.get((table.id, answer))
        # Another program may have another table of that number.
        if rows is None or rows.table != table:
            rows = self._rows[table.id, answer] = decode_rows(table, [answer])
        return rows
