# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Fills the table of source.p4: behind which port a source vertex is."""

import numpy as np

from switchgnn.base.network import Network
from switchgnn.controller.controls.worker import neighbour_ports
from switchgnn.controller.p4runtime.layout import Layout, Table
from switchgnn.controller.p4runtime.rows import Record, Rows, Value, make_rows, records
from switchgnn.controller.plan import SwitchPlan

ACTION = "set_source"
# One cell for each source.
LAST_TAGS_REGISTER = "last_tag"


class Source:
    """The source table."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("source")

    def count(self, plan: SwitchPlan) -> int:
        """Return the number of entries."""
        return len(plan.switch.source_vertex)

    def rows(self, plan: SwitchPlan, network: Network) -> Rows:
        """Return one entry per vertex and partial sum; its place is its register index."""
        switch = plan.switch
        ports = np.array(neighbour_ports(plan, network), np.int64)
        values: dict[str, Value] = {
            "src_id": switch.source_vertex,
            "port": ports[switch.source_worker],
            "index": np.arange(len(switch.source_vertex)),
        }
        return make_rows(self.table, ACTION, values, len(switch.source_vertex))

    def records(self, rows: Rows) -> list[Record]:
        """Return vertex, port and register index of each entry."""
        return records(rows.key_columns() | rows.param_columns(self.table.action(ACTION)))
