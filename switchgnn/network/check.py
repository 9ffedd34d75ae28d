# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Whether what somebody has described is a network: a star, or a leaf-spine."""

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeVar

from switchgnn.network.described import DescribedNetwork
from switchgnn.network.errors import NetworkError
from switchgnn.network.mac import mac_number

_Value = TypeVar("_Value")
_MOST_WORKERS = 128
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,64}\]")
_TCP_PORT = re.compile(r"[0-9]{1,5}")
_LAST_PORT = 65_535
_MOST_PORTS = 511  # of the program: its port numbers have nine bits, and the last one drops


def check_network(network: DescribedNetwork, name: str) -> None:
    """Check that a network can be.

    Args:
        network: what is described.
        name: of its file, for the sentence.

    Raises:
        NetworkError: it cannot; the first thing that is wrong.
    """
    for problem in _problems(network):
        raise NetworkError(f"{name}: {problem}.")


def is_place(text: str) -> bool:
    """Tell whether it is HOST:PORT."""
    host, _, port = text.rpartition(":")
    named = _HOST.fullmatch(host) and _TCP_PORT.fullmatch(port)
    return bool(named) and 0 < int(port) <= _LAST_PORT


def _problems(network: DescribedNetwork) -> Iterator[str]:
    yield from _of_names(network)
    yield from _of_addresses(network)
    yield from _of_links(network)
    yield from _of_metrics(network)
    yield from _of_ports(network)
    yield from _of_tiers(network)


def _of_names(network: DescribedNetwork) -> Iterator[str]:
    if not network.switches:
        yield "it has no switch; write a [[switches]]"
    if not 1 <= len(network.workers) <= _MOST_WORKERS:
        yield f"it has {len(network.workers)} workers; 1 to {_MOST_WORKERS} can be"
    names = [switch.name for switch in network.switches]
    if "" in names:
        yield "a switch has no name"
    for twice in _twice(names):
        yield f"two switches are called {twice}"
    for number, worker in enumerate(network.workers):
        if worker.switch not in names:
            yield f"worker {number} is attached to {worker.switch!r}, which is no switch of it"


def _of_addresses(network: DescribedNetwork) -> Iterator[str]:
    named = [(f"switch {switch.name}", switch.station) for switch in network.switches]
    named += [(f"worker {number}", each.station) for number, each in enumerate(network.workers)]
    for who, station in named:
        if not _is_mac(station.mac):
            yield f"the MAC of {who}, {station.mac!r}, is no Ethernet address of one station"
        if not _is_ip(station.ip):
            yield f"the IP of {who}, {station.ip!r}, is no IPv4 address of one station"
    for twice in _twice(mac_number(station.mac) for _, station in named):
        both = [who for who, station in named if mac_number(station.mac) == twice]
        yield f"{' and '.join(both)} have the same MAC"
    for same in _twice(station.ip for _, station in named):
        both = [who for who, station in named if station.ip == same]
        yield f"{' and '.join(both)} have the same IP, {same}"


def _of_links(network: DescribedNetwork) -> Iterator[str]:
    for number, worker in enumerate(network.workers):
        if bool(worker.interface) == bool(worker.link):
            yield f"worker {number} needs an interface, or a link in its place"


def _of_metrics(network: DescribedNetwork) -> Iterator[str]:
    told = [(number, each.metrics) for number, each in enumerate(network.workers) if each.metrics]
    for number, place in told:
        if not is_place(place):
            yield f"worker {number} serves metrics on {place!r}, which is no HOST:PORT"
    for same in _twice(place for _, place in told):
        yield f"two workers serve metrics on {same}"


def _of_ports(network: DescribedNetwork) -> Iterator[str]:
    taken = [(worker.switch, worker.port) for worker in network.workers]
    taken += [(cable.leaf, cable.leaf_port) for cable in network.cables]
    taken += [(cable.spine, cable.spine_port) for cable in network.cables]
    for switch, port in taken:
        if not 1 <= port < _MOST_PORTS:
            yield f"port {port} of switch {switch} is not one of 1 to {_MOST_PORTS - 1}"
    for switch, port in _twice(taken):
        yield f"port {port} of switch {switch} leads to two places"


def _of_tiers(network: DescribedNetwork) -> Iterator[str]:
    if not network.cables:
        if len(network.switches) > 1:
            yield (
                f"it has {len(network.switches)} switches and no cable; leaves and spines need a "
                "[[cables]] for each pair"
            )
        return
    leaves = [switch.name for switch in network.leaves]
    spines = [switch.name for switch in network.spines]
    ends = Counter((cable.leaf, cable.spine) for cable in network.cables)
    for leaf, spine in ends:
        if leaf not in leaves:
            yield f"a cable has the leaf {leaf!r}, which is no switch with workers"
        if spine not in spines:
            yield f"a cable has the spine {spine!r}, which is no switch without workers"
    if not spines:
        yield "it has cables, but no spine: a spine is a switch without workers"
    for leaf in leaves:
        for spine in spines:
            if ends[leaf, spine] != 1:
                yield f"{ends[leaf, spine]} cables join leaf {leaf} and spine {spine}; one must"
    if list(network.leaf_of_worker) != sorted(network.leaf_of_worker):
        yield "the workers of a leaf are not one behind the other"


def _is_mac(text: str) -> bool:
    try:
        return text.count(":") == 5 and not mac_number(text) >> 40 & 1
    except ValueError:
        return False


def _is_ip(text: str) -> bool:
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return not (address.is_multicast or address.is_unspecified or address.is_reserved)


def _twice(values: Iterable[_Value]) -> Iterator[_Value]:
    return (value for value, times in Counter(values).items() if times > 1)
