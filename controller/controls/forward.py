"""forward.p4: the ports of stations, for ordinary packets."""

from typing import ClassVar

from switchgnn.base.network import Network, mac_number, mac_text
from switchgnn.controller.base.place import ALONE, Place
from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.controls.tables import Keyed
from switchgnn.controller.p4runtime.rows import Rows, concatenate

BROADCAST = "ff:ff:ff:ff:ff:ff"
FORWARD = "forward"


class Forward(Keyed):
    """The station table."""

    name, action = "station", FORWARD
    formats: ClassVar = {"dst_addr": mac_text}
    otherwise: ClassVar = ("port", "all")

    def rows(self, plan: SwitchPlan, network: Network, place: Place = ALONE) -> Rows:
        """Return one entry for each address, and one for broadcasts."""
        known = [*network.neighbours[: plan.neighbours], *network.beyond]
        addresses = [mac_number(each.station.mac) for each in known]
        ports = [each.port for each in known]
        stations = self.make({"job": place.job, "dst_addr": addresses, "port": ports}, len(known))
        flood = "flood_stations" if plan.above else "flood"
        broadcast = self.make({"job": place.job, "dst_addr": mac_number(BROADCAST)}, 1, flood)
        return concatenate(self.table, stations, broadcast)
