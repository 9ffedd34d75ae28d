# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What is around each switch of a network that somebody has described."""

from dataclasses import replace

from switchgnn.network.described import DescribedNetwork, DescribedSwitch, DescribedWorker
from switchgnn.network.networks import Neighbour, Network


def networks_of(network: DescribedNetwork) -> tuple[Network, ...]:
    """Return what is around each switch, in the order of ``network.in_order``.

    Args:
        network: one that ``check_network`` has let pass.
    """
    if not network.cables:
        (switch,) = network.switches
        return (Network(tuple(map(_worker, network.workers)), switch.station),)
    return (
        *(_leaf(network, leaf) for leaf in network.leaves),
        *(_spine(network, spine) for spine in network.spines),
    )


def _worker(worker: DescribedWorker) -> Neighbour:
    return Neighbour(worker.port, worker.station)


def _leaf(network: DescribedNetwork, leaf: DescribedSwitch) -> Network:
    up = {cable.spine: cable.leaf_port for cable in network.cables if cable.leaf == leaf.name}
    spines = [Neighbour(up[spine.name], spine.station) for spine in network.spines]
    return Network(
        neighbours=(
            *(_worker(worker) for worker in network.workers if worker.switch == leaf.name),
            *spines,
        ),
        switch=leaf.station,
        # Flows between leaves take turns over the spines.
        beyond=tuple(
            replace(_worker(worker), port=spines[number % len(spines)].port)
            for number, worker in enumerate(network.workers)
            if worker.switch != leaf.name
        ),
    )


def _spine(network: DescribedNetwork, spine: DescribedSwitch) -> Network:
    down = {cable.leaf: cable.spine_port for cable in network.cables if cable.spine == spine.name}
    return Network(
        neighbours=tuple(Neighbour(down[leaf.name], leaf.station) for leaf in network.leaves),
        switch=spine.station,
        beyond=tuple(
            replace(_worker(worker), port=down[worker.switch]) for worker in network.workers
        ),
    )
