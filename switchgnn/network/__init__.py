# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Where switches and workers are."""

from switchgnn.network.mac import mac_number, mac_text
from switchgnn.network.networks import LeafSpineNetworks, Neighbour, Network
from switchgnn.network.usual import leaf_spine_networks, star_network

__all__ = [
    "LeafSpineNetworks",
    "Neighbour",
    "Network",
    "leaf_spine_networks",
    "mac_number",
    "mac_text",
    "star_network",
]
