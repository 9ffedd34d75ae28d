# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""rewrite.p4: the addresses of packets that leave."""

from ipaddress import IPv4Address

from switchgnn.base.network import Network, mac_number, mac_text
from switchgnn.controller.controls.tables import Keyed
from switchgnn.controller.p4runtime.rows import Record, Rows, Value, make_rows
from switchgnn.controller.plan import SwitchPlan


class Rewrite(Keyed):
    """The rewrite table."""

    name, action = "rewrite", "address"

    def rows(self, plan: SwitchPlan, network: Network) -> Rows:
        """Return one entry for each neighbour's port."""
        neighbours = network.neighbours[: plan.neighbours]
        values: dict[str, Value] = {
            "port": [each.port for each in neighbours],
            "switch_mac": mac_number(network.switch.mac),
            "worker_mac": [mac_number(each.station.mac) for each in neighbours],
            "switch_ip": int(IPv4Address(network.switch.ip)),
            "worker_ip": [int(IPv4Address(each.station.ip)) for each in neighbours],
        }
        return make_rows(self.table, self.action, values, len(neighbours))

    def records(self, rows: Rows) -> list[Record]:
        """Return port and addresses of each entry."""
        params = rows.param_columns(self.table.action(self.action))
        return [
            {
                "port": int(port),
                "worker_mac": mac_text(int(mac)),
                "worker_ip": str(IPv4Address(int(ip))),
            }
            for port, mac, ip in zip(
                rows.key_columns()["port"],
                params["worker_mac"],
                params["worker_ip"],
                strict=True,
            )
        ]
