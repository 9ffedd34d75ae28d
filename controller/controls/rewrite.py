# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""rewrite.p4 and forward.p4: the addresses of packets that leave, and the ports of stations."""

from ipaddress import IPv4Address

from switchgnn.base.network import Network, mac_number, mac_text
from switchgnn.controller.controls.tables import Keyed
from switchgnn.controller.p4runtime.rows import Record, Rows, Value, concatenate, make_rows
from switchgnn.controller.plan import SwitchPlan

BROADCAST = "ff:ff:ff:ff:ff:ff"
FORWARD = "forward"


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


class Forward(Keyed):
    """The station table."""

    name, action = "station", FORWARD

    def rows(self, plan: SwitchPlan, network: Network) -> Rows:
        """Return one entry for each address, and one for broadcasts."""
        known = [*network.neighbours[: plan.neighbours], *network.beyond]
        values: dict[str, Value] = {
            "dst_addr": [mac_number(each.station.mac) for each in known],
            "port": [each.port for each in known],
        }
        stations = make_rows(self.table, FORWARD, values, len(known))
        flood = "flood_stations" if plan.above else "flood"
        broadcast = make_rows(self.table, flood, {"dst_addr": mac_number(BROADCAST)}, 1)
        return concatenate(self.table, stations, broadcast)

    def records(self, rows: Rows) -> list[Record]:
        """Return address and port of each entry."""
        forward = self.table.action(FORWARD)
        ports = rows.param_columns(forward)["port"]
        known = zip(rows.key_columns()["dst_addr"], rows.action_ids, ports, strict=True)
        return [
            {
                "dst_addr": mac_text(int(address)),
                "port": int(port) if action == forward.id else "all",
            }
            for address, action, port in known
        ]
