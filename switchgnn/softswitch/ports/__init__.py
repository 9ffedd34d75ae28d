# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Ports: network interfaces through packet or AF_XDP sockets, and UDP sockets that carry frames."""

from switchgnn.softswitch.ports.opening import open_ports
from switchgnn.softswitch.ports.port import Port
from switchgnn.softswitch.ports.sockets import EthernetPort, SocketPort
from switchgnn.softswitch.ports.specs import EthernetSpec, PortSpec, UdpSpec, XdpSpec, parse_port

__all__ = [
    "EthernetPort",
    "EthernetSpec",
    "Port",
    "PortSpec",
    "SocketPort",
    "UdpSpec",
    "XdpSpec",
    "open_ports",
    "parse_port",
]
