# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What workers and switches are called, by their Ethernet addresses."""

from collections.abc import Iterable, Iterator, Mapping

from switchgnn.base.described import DescribedNetwork
from switchgnn.base.network import Station, leaf_spine_networks, mac_number, star_network

_MOST = 128
SWITCH = "switch"


def usual_names() -> Mapping[bytes, str]:
    """Return the names of all that runs of one machine may have, by address.

    Workers are called as their links are: ``w3``; switches ``switch``, ``leaf-0`` and ``spine-1``.
    """
    return _by_address(_usual_stations())


def names_in(network: DescribedNetwork) -> Mapping[bytes, str]:
    """Return the names of workers and switches of a network file, by address."""
    return _by_address(
        [
            *((switch.name, switch.station) for switch in network.switches),
            *((f"w{number}", worker.station) for number, worker in enumerate(network.workers)),
        ]
    )


def name_of(address: bytes, names: Mapping[bytes, str]) -> str:
    """Return what has an address; the address itself where it is not known."""
    return names.get(address) or address.hex(":")


def _by_address(stations: Iterable[tuple[str, Station]]) -> Mapping[bytes, str]:
    return {mac_number(station.mac).to_bytes(6, "big"): name for name, station in stations}


def _usual_stations() -> Iterator[tuple[str, Station]]:
    star = star_network(_MOST)
    yield SWITCH, star.switch
    for worker, neighbour in enumerate(star.neighbours):
        yield f"w{worker}", neighbour.station
    # One leaf has a link to each spine, and one spine to each leaf.
    (spined,) = leaf_spine_networks([0], _MOST).leaves
    for spine, neighbour in enumerate(spined.neighbours[1:]):
        yield f"spine-{spine}", neighbour.station
    (leaved,) = leaf_spine_networks(range(_MOST), 1).spines
    for leaf, neighbour in enumerate(leaved.neighbours):
        yield f"leaf-{leaf}", neighbour.station
