"""The surroundings of a switch: ports and addresses of workers and other switches."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from switchgnn.base.errors import SwitchGNNError

DEFAULT_JOB = "default"
# Bytes of a job's name, which a switch keeps as a number.
NAME_BYTES = 16
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{NAME_BYTES - 1}}}")
_LEAF, _SPINE = 254, 253


def bad_job_name(name: str) -> str:
    """Say why no job can have a name, without a full stop; empty if one can."""
    if _NAME.fullmatch(name):
        return ""
    return (
        f"{name!r} names no job: use 1 to {NAME_BYTES} letters, digits, dots, dashes and "
        "underscores"
    )


@dataclass(frozen=True)
class Station:
    """The addresses of a worker or a switch."""

    mac: str  # Ethernet address as text, such as ``02:00:00:00:00:01``
    ip: str  # IPv4 address as text, in dotted form


ONLY_SWITCH = Station("02:00:00:00:ff:fe", "10.0.255.254")


@dataclass(frozen=True)
class Neighbour:
    """A worker or another switch next to a switch."""

    port: int  # the switch's port that leads to it
    station: Station  # its addresses


@dataclass(frozen=True)
class Network:
    """The surroundings of a switch."""

    # in a star the workers in order; in a leaf-spine those below, then those above
    neighbours: tuple[Neighbour, ...]
    switch: Station = ONLY_SWITCH  # the switch's own addresses
    # workers reached through a neighbour, with the port that leads to them
    beyond: tuple[Neighbour, ...] = ()

    @property
    def alone(self) -> "LeafSpineNetworks":
        """This one as a leaf without spines, whose neighbours are the workers: a star."""
        positions = tuple((0, worker) for worker in range(len(self.neighbours)))
        return LeafSpineNetworks((self,), (), positions)


@dataclass(frozen=True)
class LeafSpineNetworks:
    """The networks around leaves and spines, or around one switch alone."""

    leaves: tuple[Network, ...]  # one per leaf, in order: its workers, then the spines
    spines: tuple[Network, ...]  # one per spine, in order: the leaves
    # each worker's leaf, and its index among the leaf's workers
    positions: tuple[tuple[int, int], ...]

    @property
    def switches(self) -> tuple[Network, ...]:
        """All networks, leaves first."""
        return (*self.leaves, *self.spines)


def mac_number(mac: str) -> int:
    """Return a MAC address as a 48-bit number; raise ValueError unless it is six hex bytes."""
    parts = bytes.fromhex(mac.replace(":", " "))
    if len(parts) != 6:
        raise ValueError(f"{mac!r} is not an Ethernet address")
    return int.from_bytes(parts, "big")


def mac_text(number: int) -> str:
    """Return a 48-bit number as a MAC address."""
    return number.to_bytes(6, "big").hex(":")


def star_network(workers: int) -> Network:
    """Return ``workers`` workers around one switch: worker w on port w + 1."""
    return network_on(range(1, workers + 1))


def network_on(ports: Iterable[int]) -> Network:
    """Return a worker at each of some ports of one switch, with the addresses of its port."""
    return Network(neighbours=tuple(map(_worker, ports)))


def leaf_spine_networks(leaf_of_worker: Sequence[int], spines: int) -> LeafSpineNetworks:
    """Return the networks of a leaf-spine, with a link from each leaf to each spine.

    `leaf_of_worker` ascends from 0. A leaf's ports are those of its workers, from 1, then those of
    the spines; leaf l is on port l + 1 of every spine. Workers have the same addresses as in a
    star.
    """
    below = [0] * (leaf_of_worker[-1] + 1)
    workers = []
    for number, leaf in enumerate(leaf_of_worker, 1):
        below[leaf] += 1
        workers.append(replace(_worker(number), port=below[leaf]))
    return joined_networks(
        workers,
        leaf_of_worker,
        [_switch(_LEAF, leaf) for leaf in range(len(below))],
        [_switch(_SPINE, spine) for spine in range(spines)],
        {
            (leaf, spine): (own + 1 + spine, leaf + 1)
            for leaf, own in enumerate(below)
            for spine in range(spines)
        },
    )


def joined_networks(
    workers: Sequence[Neighbour],
    leaf_of_worker: Sequence[int],
    leaves: Sequence[Station],
    spines: Sequence[Station],
    ports: Mapping[tuple[int, int], tuple[int, int]],
) -> LeafSpineNetworks:
    """Return the networks around leaves and spines, or around one leaf without spines.

    `ports`: of the cable of each (leaf, spine), that of the leaf and that of the spine.
    """
    below = [[w for w, at in enumerate(leaf_of_worker) if at == n] for n in range(len(leaves))]

    def around_leaf(leaf: int) -> Network:
        up = [ports[leaf, spine][0] for spine in range(len(spines))]
        return Network(
            neighbours=(*(workers[w] for w in below[leaf]), *map(Neighbour, up, spines)),
            switch=leaves[leaf],
            # Flows between leaves are spread round-robin over the spines.
            beyond=tuple(
                replace(worker, port=up[number % len(up)])
                for number, worker in enumerate(workers)
                if leaf_of_worker[number] != leaf
            ),
        )

    def around_spine(spine: int) -> Network:
        down = [ports[leaf, spine][1] for leaf in range(len(leaves))]
        return Network(
            neighbours=tuple(map(Neighbour, down, leaves)),
            switch=spines[spine],
            beyond=tuple(
                replace(worker, port=down[leaf])
                for worker, leaf in zip(workers, leaf_of_worker, strict=True)
            ),
        )

    return LeafSpineNetworks(
        leaves=tuple(map(around_leaf, range(len(leaves)))),
        spines=tuple(map(around_spine, range(len(spines)))),
        positions=tuple((leaf, below[leaf].index(w)) for w, leaf in enumerate(leaf_of_worker)),
    )


def _switch(tier: int, number: int) -> Station:
    return Station(f"02:00:00:00:{tier:02x}:{number + 1:02x}", f"10.0.{tier}.{number + 1}")


def _worker(number: int) -> Neighbour:
    # Two bytes above 250, so that no address ends in 255.
    high, low = (0, number) if number <= 250 else (number // 250, number % 250)
    return Neighbour(
        port=number, station=Station(f"02:00:00:00:{high:02x}:{low:02x}", f"10.0.{high}.{low}")
    )


class NetworkError(SwitchGNNError):
    """A network file cannot be read, or is invalid."""
