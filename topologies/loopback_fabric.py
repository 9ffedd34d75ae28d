"""A topology over UDP on the loopback interface: no root, no Mininet, no BMv2."""

from switchgnn.topologies.fabric import Fabric, RelayedCable, WireBytes
from switchgnn.topologies.rpc_address import free_udp_addresses, require_free
from switchgnn.topologies.targets import wait_until_serving


class LoopbackFabric(Fabric):
    """Embedded switches and workers as processes on this machine; each datagram is a frame."""

    _switch_ends: list[str]
    _worker_ends: list[str]

    def start(self) -> None:
        """See ``Fabric``."""
        if self._switches:
            return
        for switch in self.topology.switches:
            require_free(switch.grpc_address)
        links_of_switches = self._links()
        if self.relay is not None:
            self.relay.start()
        for switch, links in zip(self.topology.switches, links_of_switches, strict=True):
            self._start_switch(
                switch, links, switch.grpc_address, bandwidth=self.topology.bandwidth
            )
        for switch, child in zip(self.topology.switches, self._switches, strict=True):
            wait_until_serving(child, switch.grpc_address)

    def _links(self) -> list[dict[int, str]]:
        """Choose UDP addresses; return the link on each port of each switch."""
        topology, workers = self.topology, self.topology.workers
        free = free_udp_addresses(2 * workers + 4 * len(topology.cables))
        self._switch_ends, self._worker_ends = free[:workers], free[workers : 2 * workers]
        links: list[dict[int, str]] = [{} for _ in topology.switches]
        for worker, (switch, _) in enumerate(topology.positions):
            ours, theirs = self._switch_ends[worker], self._worker_ends[worker]
            links[switch][topology.port(worker)] = _udp(ours, theirs)
        relayed = []
        for number, (name, lower, upper) in enumerate(topology.cables):
            below, above, *ends = free[2 * workers + 4 * number :][:4]
            far, near = ends if self._relays else (above, below)
            links[lower.switch][lower.port] = _udp(below, far)
            links[upper.switch][upper.port] = _udp(above, near)
            relayed.append(RelayedCable(name, _udp(far, below), _udp(near, above)))
        if self._relays:
            self.relay = self._faulty(relayed)
        return links

    def worker_link(self, worker: int) -> str:
        """Return the worker's pair of UDP addresses, and the bandwidth if it is limited."""
        link = _udp(self._worker_ends[worker], self._switch_ends[worker])
        return link if self.topology.bandwidth is None else f"{link}:{self.topology.bandwidth:g}"

    @property
    def switch_processes(self) -> list[int]:
        """The ids of the switches' processes while these run."""
        return [child.pid for child in self._switches if child.pid is not None]

    def cable_bytes(self) -> list[WireBytes] | None:
        """Return the counters of the relay; None without one."""
        if self.relay is None:
            return None
        return [WireBytes(cable["up"], cable["down"]) for cable in self.relay.counts().values()]


def _udp(ours: str, theirs: str) -> str:
    return f"udp:{ours}:{theirs}"
