# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""forward.p4: the ports of stations, for ordinary packets."""

from switchgnn.base.network import Network, mac_number, mac_text
from switchgnn.controller.controls.tables import Keyed
from switchgnn.controller.p4runtime.rows import Record, Rows, Value, concatenate, make_rows
from switchgnn.controller.plan import SwitchPlan

BROADCAST = "ff:ff:ff:ff:ff:ff"
FORWARD = "forward"


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
