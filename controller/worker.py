# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Fills the table of worker.p4: which worker is behind a port."""

from switchgnn.controller.layout import Layout, Table
from switchgnn.controller.network import Network
from switchgnn.controller.plan import SwitchPlan
from switchgnn.controller.record import Record, records
from switchgnn.controller.rows import Rows, make_rows

ACTION = "set_worker"


def worker_ports(plan: SwitchPlan, network: Network) -> list[int]:
    """Return the port of each worker of the plan."""
    return [station.port for station in network.stations[: plan.manifest.workers]]


class Worker:
    """The worker table."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("worker")

    def rows(self, plan: SwitchPlan, network: Network) -> Rows:
        """Return one entry for each worker."""
        workers = range(plan.manifest.workers)
        values = {
            "port": worker_ports(plan, network),
            "worker": list(workers),
            "worker_bit": [1 << worker for worker in workers],
        }
        return make_rows(self.table, ACTION, values, len(workers))

    def records(self, rows: Rows) -> list[Record]:
        """Return port and worker of each entry."""
        columns = rows.key_columns() | rows.param_columns(self.table.action(ACTION))
        del columns["worker_bit"]
        return records(columns)
