# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Fills the table of destination.p4: where a destination vertex is, and its slot."""

import numpy as np

from switchgnn.controller.layout import Layout, Table
from switchgnn.controller.network import Network
from switchgnn.controller.plan import SwitchPlan
from switchgnn.controller.record import Record, records
from switchgnn.controller.rows import Rows, Value, make_rows
from switchgnn.controller.worker import worker_ports

ACTION = "set_destination"


class Destination:
    """The destination table."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("destination")

    def rows(self, plan: SwitchPlan, network: Network) -> Rows:
        """Return one entry for each destination of each block."""
        switch = plan.switch
        ports = np.array(worker_ports(plan, network), np.int64)
        values: dict[str, Value] = {
            "block_id": switch.result_block,
            "dst_id": switch.result_vertex,
            "port": ports[switch.result_worker],
            "bank": switch.result_bank,
            "slot": switch.result_slot,
            "expected": switch.result_expected,
        }
        return make_rows(self.table, ACTION, values, len(switch.result_block))

    def records(self, rows: Rows) -> list[Record]:
        """Return vertex, port and slot of each entry."""
        return records(rows.key_columns() | rows.param_columns(self.table.action(ACTION)))
