# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's side: packets, links, fixed point, and the exchange."""

from switchgnn.host.errors import HostError
from switchgnn.host.innetwork.exchange import Exchange, FixedSums
from switchgnn.host.innetwork.fixed_point import FixedPoint
from switchgnn.host.pace import Pace
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.link import InterfaceLink, Link, UdpLink, open_link

__all__ = [
    "Addresses",
    "Exchange",
    "FixedPoint",
    "FixedSums",
    "HostError",
    "InterfaceLink",
    "Link",
    "Pace",
    "UdpLink",
    "open_link",
]
