"""What a fabric builds: switches, the cables between them, and the workers."""

from dataclasses import dataclass
from typing import NamedTuple

from switchgnn.base.network import LeafSpineNetworks, Neighbour, Network, Station
from switchgnn.base.network_file import Target
from switchgnn.host.wire.addresses import Addresses
from switchgnn.softswitch.native.build import Backend
from switchgnn.topologies.targets import Bmv2Log, TlsFolder

# Bytes of the largest packet on an interface by default.
ETHERNET_MTU = 1500


class TopologySwitch(NamedTuple):
    """A switch of a topology."""

    name: str  # of its process and its log, like `switch` or `leaf-0`
    network: Network  # its surroundings
    grpc_address: str  # its address for controllers, `unix:PATH` or `HOST:PORT`


class Socket(NamedTuple):
    """A port of a switch, which is given by its index in the topology."""

    switch: int
    port: int


class SwitchCable(NamedTuple):
    """A link between two switches; `name`: as in ``--faults``, like ``l0s1``."""

    name: str
    lower: Socket
    upper: Socket


def cable_name(leaf: int, spine: int) -> str:
    """Return the name of the cable between a leaf and a spine."""
    return f"l{leaf}s{spine}"


@dataclass(frozen=True)
class Topology:
    """Workers, switches and links: leaves with a link to each spine, or one leaf alone, a star."""

    networks: LeafSpineNetworks
    target: Target
    grpc_addresses: tuple[str, ...]  # of the switches, leaves first
    bandwidth: float | None = None  # Mbit/s of each link; None: unlimited
    tls: TlsFolder | None = None  # certificates for P4Runtime; None: plain gRPC
    backend: Backend | None = None  # of embedded switches; None: as the environment says
    bmv2_log: Bmv2Log = Bmv2Log.OFF
    mtu: int = ETHERNET_MTU  # bytes of the largest packet, for links with interfaces

    @property
    def switch_paces(self) -> bool:
        """Whether switches limit their ports themselves, in batches, rather than the kernel."""
        return self.target.is_embedded and self.backend is Backend.NATIVE

    @property
    def switches(self) -> tuple[TopologySwitch, ...]:
        """Leaves, then spines."""
        names = [f"leaf-{leaf}" for leaf in range(len(self.networks.leaves))]
        names += [f"spine-{spine}" for spine in range(len(self.networks.spines))]
        names = names if self.networks.spines else ["switch"]
        return tuple(
            TopologySwitch(*each)
            for each in zip(names, self.networks.switches, self.grpc_addresses, strict=True)
        )

    @property
    def cables(self) -> tuple[SwitchCable, ...]:
        """Leaf by leaf; the ports of a leaf lead to its workers first, then to the spines."""
        leaves, spines = self.networks.leaves, self.networks.spines
        return tuple(
            SwitchCable(
                cable_name(leaf, spine),
                Socket(leaf, around_leaf.neighbours[spine - len(spines)].port),
                Socket(len(leaves) + spine, around_spine.neighbours[leaf].port),
            )
            for leaf, around_leaf in enumerate(leaves)
            for spine, around_spine in enumerate(spines)
        )

    @property
    def positions(self) -> tuple[tuple[int, int], ...]:
        """The switch of each worker, and its index among the stations there."""
        return self.networks.positions

    @property
    def workers(self) -> int:
        """Number of workers."""
        return len(self.positions)

    def network_of(self, worker: int) -> Network:
        """Return the network around a worker's switch."""
        return self.networks.leaves[self.positions[worker][0]]

    def port(self, worker: int) -> int:
        """Return the port of its switch that leads to a worker."""
        return self._neighbour(worker).port

    def station(self, worker: int) -> Station:
        """Return the addresses of a worker."""
        return self._neighbour(worker).station

    def addresses(self, worker: int) -> Addresses:
        """Return the addresses in a worker's frames: its own and its switch's."""
        return Addresses(self.station(worker), self.network_of(worker).switch)

    def _neighbour(self, worker: int) -> Neighbour:
        return self.network_of(worker).neighbours[self.positions[worker][1]]
