# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Fills the table of partial.p4: who may send partial sums for a destination."""

import numpy as np

from switchgnn.controller.p4runtime.layout import Layout, Table
from switchgnn.controller.p4runtime.rows import Record, Rows, Value, make_rows, records
from switchgnn.controller.plan import SwitchPlan
from switchgnn.planner.plan.partial_sums import partial_senders

ACTION = "set_senders"
# Of a set of workers, one bit each.
_SET_BYTES = 16


class Partial:
    """The table of who sends partial sums."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("partial")

    def count(self, plan: SwitchPlan) -> int:
        """Return the number of entries."""
        return len(np.unique(partial_senders(plan.switch).result))

    def rows(self, plan: SwitchPlan) -> Rows:
        """Return one entry for each destination of each block that awaits partial sums.

        It has a bit for each worker that sends one; at a spine for each that is behind a leaf
        that does.
        """
        switch, pairs = plan.switch, partial_senders(plan.switch)
        awaiting, first = np.unique(pairs.result, return_index=True)
        members = b"".join(each.to_bytes(_SET_BYTES, "big") for each in plan.members)
        sets = np.frombuffer(members, np.uint8).reshape(-1, _SET_BYTES)[pairs.neighbour]
        values: dict[str, Value] = {
            "block_id": switch.result_block[awaiting],
            "dst_id": switch.result_vertex[awaiting],
            "senders": np.bitwise_or.reduceat(sets, first, axis=0) if len(first) else sets,
        }
        return make_rows(self.table, ACTION, values, len(awaiting))

    def records(self, rows: Rows) -> list[Record]:
        """Return vertex and senders, as hexadecimal digits, of each entry."""
        plain = records(rows.key_columns() | rows.param_columns(self.table.action(ACTION)))
        return [each | {"senders": f"{each['senders']:x}"} for each in plain]
