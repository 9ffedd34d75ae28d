"""rewrite.p4: the addresses of packets that leave."""

from ipaddress import IPv4Address
from typing import ClassVar

from switchgnn.base.network import Network, mac_number, mac_text
from switchgnn.controller.base.place import ALONE, Place
from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.controls.tables import Keyed
from switchgnn.controller.p4runtime.rows import Rows, Value


class Rewrite(Keyed):
    """The rewrite table."""

    name, action = "rewrite", "address"
    hidden = ("switch_mac", "switch_ip")
    formats: ClassVar = {
        "worker_mac": mac_text,
        "worker_ip": lambda address: str(IPv4Address(address)),
    }

    def rows(self, plan: SwitchPlan, network: Network, place: Place = ALONE) -> Rows:
        """Return one entry for each neighbour's port."""
        neighbours = network.neighbours[: plan.neighbours]
        values: dict[str, Value] = {
            "port": [each.port for each in neighbours],
            "switch_mac": mac_number(network.switch.mac),
            "worker_mac": [mac_number(each.station.mac) for each in neighbours],
            "switch_ip": int(IPv4Address(network.switch.ip)),
            "worker_ip": [int(IPv4Address(each.station.ip)) for each in neighbours],
        }
        return self.make(values, len(neighbours))
