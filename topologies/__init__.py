"""Networks to run in: a star or a leaf-spine, in Mininet or over loopback, with either switch."""

from switchgnn.base.network_file import Target
from switchgnn.softswitch.native.build import Backend
from switchgnn.topologies.choice import (
    FABRICS,
    BackgroundTraffic,
    FabricChoice,
    FabricKind,
    FlowLimits,
    choose,
    usual_limits,
)
from switchgnn.topologies.errors import FabricError
from switchgnn.topologies.fabric import Fabric, WireBytes, carried
from switchgnn.topologies.rpc_address import folder_for_sockets, free_tcp_port, socket_address
from switchgnn.topologies.targets import Bmv2Log, TlsFolder
from switchgnn.topologies.topology import ETHERNET_MTU, Topology, cable_name

__all__ = [
    "ETHERNET_MTU",
    "FABRICS",
    "Backend",
    "BackgroundTraffic",
    "Bmv2Log",
    "Fabric",
    "FabricChoice",
    "FabricError",
    "FabricKind",
    "FlowLimits",
    "Target",
    "TlsFolder",
    "Topology",
    "WireBytes",
    "cable_name",
    "carried",
    "choose",
    "folder_for_sockets",
    "free_tcp_port",
    "socket_address",
    "usual_limits",
]
