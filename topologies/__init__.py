# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Networks to run in: a star or a leaf-spine, in Mininet or over loopback, with either switch."""

from switchgnn.softswitch.native.build import Backend
from switchgnn.softswitch.native.engine import Ahead
from switchgnn.topologies.choice import (
    AUTO,
    BackgroundTraffic,
    FabricChoice,
    FabricKind,
    FlowLimits,
    build_fabric,
    choose,
    usual_limits,
)
from switchgnn.topologies.errors import FabricError
from switchgnn.topologies.fabric import Fabric, WireBytes, carried
from switchgnn.topologies.free_ports import free_tcp_port
from switchgnn.topologies.rpc_address import folder_for_sockets, socket_address
from switchgnn.topologies.targets import Target, TlsFolder, compile_for
from switchgnn.topologies.topology import (
    ETHERNET_MTU,
    LeafSpineTopology,
    Star,
    Topology,
    cable_name,
)

__all__ = [
    "AUTO",
    "ETHERNET_MTU",
    "Ahead",
    "Backend",
    "BackgroundTraffic",
    "Fabric",
    "FabricChoice",
    "FabricError",
    "FabricKind",
    "FlowLimits",
    "LeafSpineTopology",
    "Star",
    "Target",
    "TlsFolder",
    "Topology",
    "WireBytes",
    "build_fabric",
    "cable_name",
    "carried",
    "choose",
    "compile_for",
    "folder_for_sockets",
    "free_tcp_port",
    "socket_address",
    "usual_limits",
]
