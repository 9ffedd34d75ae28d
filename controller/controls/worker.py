# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Fills the table of worker.p4: which worker, leaf or spine is behind a port."""

from switchgnn.base.network import Network
from switchgnn.controller.p4runtime.layout import Layout, Table
from switchgnn.controller.p4runtime.rows import Record, Rows, concatenate, make_rows
from switchgnn.controller.plan import SwitchPlan

ACTION = "set_worker"
ABOVE = "set_above"


def neighbour_ports(plan: SwitchPlan, network: Network) -> list[int]:
    """Return the port of each neighbour of the switch: in a star, of each worker."""
    return [each.port for each in network.neighbours[: plan.neighbours]]


class Worker:
    """The worker table."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("worker")

    def rows(self, plan: SwitchPlan, network: Network) -> Rows:
        """Return one entry for each neighbour."""
        ports, below = neighbour_ports(plan, network), len(plan.below)
        values = {
            "port": ports[:below],
            "worker": list(plan.below),
            "worker_bit": list(plan.members),
        }
        workers = make_rows(self.table, ACTION, values, below)
        if not plan.above:
            return workers
        above = make_rows(self.table, ABOVE, {"port": ports[below:]}, plan.above)
        return concatenate(self.table, workers, above)

    def records(self, rows: Rows) -> list[Record]:
        """Return port and worker of each entry."""
        own = self.table.action(ACTION)
        workers = rows.param_columns(own)["worker"]
        known = zip(rows.key_columns()["port"], rows.action_ids, workers, strict=True)
        return [
            {"port": int(port), "worker": int(worker) if action == own.id else "above"}
            for port, action, worker in known
        ]
