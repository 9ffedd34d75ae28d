# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Fills the table of result.p4: where a complete sum goes."""

import numpy as np

from switchgnn.base.network import Network
from switchgnn.controller.controls.loop import result_group
from switchgnn.controller.controls.worker import neighbour_ports
from switchgnn.controller.p4runtime.layout import Layout, Table
from switchgnn.controller.p4runtime.rows import Record, Rows, Value, concatenate, make_rows, records
from switchgnn.controller.plan import SwitchPlan

ACTION = "set_result"
PARTIAL = "set_partial"


class Result:
    """The result table."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("result")

    def count(self, plan: SwitchPlan) -> int:
        """Return the number of entries."""
        return len(plan.switch.result_block)

    def rows(self, plan: SwitchPlan, network: Network) -> Rows:
        """Return one entry for each destination of each block."""
        switch = plan.switch
        ports = np.array(neighbour_ports(plan, network), np.int64)
        groups = np.array([result_group(worker) for worker in range(len(ports))], np.int64)
        values: dict[str, Value] = {
            "block_id": switch.result_block,
            "bank": switch.result_bank,
            "slot": switch.result_slot,
            "vertex": switch.result_vertex,
            "port": ports[switch.result_worker],
            "group": groups[switch.result_worker],
        }
        sums = make_rows(self.table, ACTION, values, len(switch.result_block))
        if plan.part is None:
            return sums
        ids = plan.part.result_partial
        partial = make_rows(self.table, PARTIAL, {**values, "source": ids}, len(ids))
        return concatenate(self.table, sums.select(ids == 0), partial.select(ids > 0))

    def records(self, rows: Rows) -> list[Record]:
        """Return slot, vertex, or id of the partial sum, and port of each entry."""
        return records(rows.key_columns() | rows.param_columns(self.table.action(ACTION)))
