# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Fills the table of destination.p4: where a destination vertex is, and its slot."""

import numpy as np

from switchgnn.base.network import Network
from switchgnn.controller.controls.worker import neighbour_ports
from switchgnn.controller.p4runtime.layout import Layout, Table
from switchgnn.controller.p4runtime.rows import (
    Numbers,
    Record,
    Rows,
    Value,
    concatenate,
    make_rows,
    records,
)
from switchgnn.controller.plan import SwitchPlan
from switchgnn.planner.plan.leaf_spine import NOBODY, LeafSpinePart

ACTION = "set_destination"
DISTANT = "set_distant"


class Destination:
    """The destination table."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("destination")

    def count(self, plan: SwitchPlan) -> int:
        """Return the number of entries."""
        return len(plan.switch.result_block if plan.part is None else plan.part.route_block)

    def rows(self, plan: SwitchPlan, network: Network) -> Rows:
        """Return one entry for each destination of each block."""
        if plan.part is not None:
            return self._leaf_spine_rows(plan.part, neighbour_ports(plan, network))
        switch = plan.switch
        ports = np.array(neighbour_ports(plan, network), np.int64)
        values: dict[str, Value] = {
            "block_id": switch.result_block,
            "dst_id": switch.result_vertex,
            "port": ports[switch.result_worker],
            "bank": switch.result_bank,
            "slot": switch.result_slot,
            "expected": switch.result_expected,
        }
        return make_rows(self.table, ACTION, values, len(switch.result_block))

    def _leaf_spine_rows(self, part: LeafSpinePart, neighbours: list[int]) -> Rows:
        """Return one entry for each destination that a leaf or a spine knows."""
        ports, switch, slot = np.array(neighbours, np.int64), part.switch, part.route_result
        placed = slot >= 0
        values: dict[str, Numbers] = {
            "block_id": part.route_block,
            "dst_id": part.route_vertex,
            "port": ports[part.route_neighbour],
        }
        for name in ("bank", "slot", "expected"):
            values[name] = np.zeros(len(slot), np.int64)
            values[name][placed] = getattr(switch, f"result_{name}")[slot[placed]]
        distant = part.route_above != NOBODY
        own: dict[str, Value] = {name: column[~distant] for name, column in values.items()}
        others: dict[str, Value] = {name: column[distant] for name, column in values.items()}
        others["above"] = ports[part.route_above[distant]]
        return concatenate(
            self.table,
            make_rows(self.table, ACTION, own, int((~distant).sum())),
            make_rows(self.table, DISTANT, others, int(distant.sum())),
        )

    def records(self, rows: Rows) -> list[Record]:
        """Return vertex, port and slot of each entry."""
        return records(rows.key_columns() | rows.param_columns(self.table.action(ACTION)))
