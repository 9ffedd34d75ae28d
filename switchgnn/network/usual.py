# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The usual networks: ports and addresses that follow from the number of workers."""

from collections.abc import Sequence
from dataclasses import replace

from switchgnn.network.networks import LeafSpineNetworks, Neighbour, Network
from switchgnn.station import Station


def star_network(workers: int) -> Network:
    """Return ``workers`` workers around one switch: worker w on port w + 1."""
    return Network(neighbours=tuple(_worker(worker + 1) for worker in range(workers)))


def leaf_spine_networks(leaf_of_worker: Sequence[int], spines: int) -> LeafSpineNetworks:
    """Return workers around leaves, each of which has a link to each spine.

    Args:
        leaf_of_worker: the leaf of each worker, ascending from 0.
        spines: their number.

    The ports of a leaf are those of its workers, from 1, then those of the spines; leaf l is on
    port l + 1 of every spine. Workers have the addresses that they have around one switch.
    """
    leaves = leaf_of_worker[-1] + 1
    workers = [_worker(worker + 1) for worker in range(len(leaf_of_worker))]
    below = [[w for w, leaf in enumerate(leaf_of_worker) if leaf == one] for one in range(leaves)]
    return LeafSpineNetworks(
        leaves=tuple(
            _leaf(leaf, [workers[w] for w in own], workers, spines)
            for leaf, own in enumerate(below)
        ),
        spines=tuple(
            Network(
                neighbours=tuple(
                    Neighbour(leaf + 1, _switch(_LEAF, leaf)) for leaf in range(leaves)
                ),
                switch=_switch(_SPINE, spine),
                beyond=tuple(
                    replace(neighbour, port=leaf + 1)
                    for neighbour, leaf in zip(workers, leaf_of_worker, strict=True)
                ),
            )
            for spine in range(spines)
        ),
        place=tuple(
            (leaf, below[leaf].index(worker)) for worker, leaf in enumerate(leaf_of_worker)
        ),
    )


_LEAF, _SPINE = 254, 253


def _leaf(leaf: int, own: list[Neighbour], workers: list[Neighbour], spines: int) -> Network:
    first = len(own) + 1
    return Network(
        neighbours=(
            *(replace(worker, port=port) for port, worker in enumerate(own, 1)),
            *(Neighbour(first + s, _switch(_SPINE, s)) for s in range(spines)),
        ),
        switch=_switch(_LEAF, leaf),
        # Flows between leaves take turns over the spines.
        beyond=tuple(
            replace(worker, port=first + number % spines)
            for number, worker in enumerate(workers)
            if worker not in own
        ),
    )


def _switch(tier: int, number: int) -> Station:
    return Station(f"02:00:00:00:{tier:02x}:{number + 1:02x}", f"10.0.{tier}.{number + 1}")


def _worker(number: int) -> Neighbour:
    # Above 250 the number takes two bytes, so that no address ends in 255.
    high, low = (0, number) if number <= 250 else (number // 250, number % 250)
    return Neighbour(
        port=number,
        station=Station(f"02:00:00:00:{high:02x}:{low:02x}", f"10.0.{high}.{low}"),
    )
