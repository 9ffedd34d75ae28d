# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Fills the table of source.p4: whose vertex it is."""

import numpy as np

from switchgnn.controller.layout import Layout, Table
from switchgnn.controller.plan import SwitchPlan
from switchgnn.controller.record import Record, records
from switchgnn.controller.rows import Rows, Value, make_rows

ACTION = "set_source"


class Source:
    """The source table."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("source")

    def rows(self, plan: SwitchPlan) -> Rows:
        """Return one entry for each vertex that is sent; its place is its register index."""
        switch = plan.switch
        values: dict[str, Value] = {
            "src_id": switch.source_vertex,
            "worker": switch.source_worker,
            "index": np.arange(len(switch.source_vertex)),
        }
        return make_rows(self.table, ACTION, values, len(switch.source_vertex))

    def records(self, rows: Rows) -> list[Record]:
        """Return vertex, worker and register index of each entry."""
        return records(rows.key_columns() | rows.param_columns(self.table.action(ACTION)))
