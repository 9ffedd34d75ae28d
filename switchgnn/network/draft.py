# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""First drafts of network files, from the interfaces of the machines themselves."""

from collections.abc import Sequence
from dataclasses import replace

from switchgnn.base.described import (
    DescribedNetwork,
    DescribedSwitch,
    DescribedWorker,
    Interface,
    SwitchTarget,
)
from switchgnn.base.network import NetworkError, star_network


def draft_star(
    interfaces: Sequence[Interface], *, grpc: str, target: SwitchTarget, name: str = "s0"
) -> DescribedNetwork:
    """Return a star whose switch is this machine: a port and a worker for each interface.

    Workers have the usual addresses, and an interface of the name ``eth0``, until
    `place_worker` says theirs.

    Args:
        interfaces: of this machine, one per worker.
        grpc: where the switch will serve P4Runtime.
        target: what the switch is.
        name: of the switch.

    Returns:
        The network.

    Raises:
        NetworkError: no interface.
    """
    if not interfaces:
        raise NetworkError(
            "This machine has no Ethernet interface that is up: name those to the workers, "
            "--interface NAME for each."
        )
    usual = star_network(len(interfaces))
    ports = {str(number): f"eth:{each.name}" for number, each in enumerate(interfaces, 1)}
    switch = DescribedSwitch(name, grpc, target, usual.switch.mac, usual.switch.ip, ports=ports)
    return DescribedNetwork(
        switches=(switch,),
        workers=tuple(
            DescribedWorker(name, each.port, each.station.mac, each.station.ip, interface="eth0")
            for each in usual.neighbours
        ),
    )


def place_worker(
    network: DescribedNetwork,
    number: int,
    interface: Interface,
    *,
    gloo: str = "",
    metrics: str = "",
) -> DescribedNetwork:
    """Return the network with a worker behind an interface of this machine.

    Its MAC and, where it has one, its IPv4 address become the worker's.

    Args:
        network: what is known so far.
        number: of the worker.
        interface: of the machine that the worker runs on.
        gloo: the interface over which workers meet and add gradients, or empty.
        metrics: where it serves metrics, or empty.

    Returns:
        The network.

    Raises:
        NetworkError: no such worker.
    """
    if not 0 <= number < len(network.workers):
        raise NetworkError(
            f"There is no worker {number}: the network has the workers 0 to "
            f"{len(network.workers) - 1}."
        )
    old = network.workers[number]
    new = replace(
        old,
        interface=interface.name,
        link="",
        mac=interface.mac,
        ip=interface.ip or old.ip,
        gloo=gloo or old.gloo,
        metrics=metrics or old.metrics,
    )
    workers = (*network.workers[:number], new, *network.workers[number + 1 :])
    return replace(network, workers=workers)
