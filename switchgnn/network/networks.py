# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What is around a switch: the ports and addresses of workers and other switches."""

from dataclasses import dataclass

from switchgnn.station import Station

# Of the switch of a star.
ONLY_SWITCH = Station("02:00:00:00:ff:fe", "10.0.255.254")


@dataclass(frozen=True)
class Neighbour:
    """A worker or another switch, as a switch sees it.

    Attributes:
        port: the switch's port that leads to it.
        station: its addresses.
    """

    port: int
    station: Station


@dataclass(frozen=True)
class Network:
    """What is around a switch.

    Attributes:
        neighbours: in a star its workers, and the place is the worker; of a leaf or a spine
            those below, then those above.
        switch: its own addresses.
        beyond: workers behind a neighbour, each with the port that leads to it.
    """

    neighbours: tuple[Neighbour, ...]
    switch: Station = ONLY_SWITCH
    beyond: tuple[Neighbour, ...] = ()


@dataclass(frozen=True)
class LeafSpineNetworks:
    """The networks around leaves and spines.

    Attributes:
        leaves: one per leaf, in order: its workers, then the spines.
        spines: one per spine, in order: the leaves.
        place: for each worker its leaf, and its place among the leaf's workers.
    """

    leaves: tuple[Network, ...]
    spines: tuple[Network, ...]
    place: tuple[tuple[int, int], ...]

    @property
    def switches(self) -> tuple[Network, ...]:
        """All of them, leaves first."""
        return (*self.leaves, *self.spines)
