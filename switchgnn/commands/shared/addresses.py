# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The addresses that a worker of a network uses."""

from switchgnn.controller.network import Network
from switchgnn.host.wire.addresses import Addresses


def worker_addresses(network: Network, worker: int) -> Addresses:
    """Return what a worker puts into its frames, and expects in those of the switch."""
    station = network.stations[worker]
    return Addresses(
        worker_mac=station.mac,
        worker_ip=station.ip,
        switch_mac=network.switch_mac,
        switch_ip=network.switch_ip,
    )
