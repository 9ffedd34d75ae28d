# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Who is there at each row."""

from collections.abc import Iterable, Iterator

from switchgnn.virtual.diagram.rows import BACK, GONE, NEW_WORKERS, Mark, Row


def gone_at(rows: Iterable[Row]) -> Iterator[tuple[Row, frozenset[str]]]:
    """Yield each row with those who are not there behind it."""
    gone: set[str] = set()
    for row in rows:
        if isinstance(row, Mark):
            if row.what.startswith(GONE):
                gone.add(row.party)
            elif row.what.startswith(BACK):
                gone.discard(row.party)
            elif row.what.startswith(NEW_WORKERS):
                gone = {name for name in gone if not name.startswith("w")}
        yield row, frozenset(gone)
