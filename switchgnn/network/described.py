# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A network as a person writes it down: switches, workers, and the cables between switches."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from switchgnn.station import Station


class SwitchTarget(str, Enum):
    """What a switch is; embedded switches are this project's own."""

    EMBEDDED = "embedded"
    BMV2 = "bmv2"


@dataclass(frozen=True)
class TlsFiles:
    """Certificates (PEM) for a switch's P4Runtime.

    Attributes:
        root: what is trusted.
        certificate, key: the controller's own, where the switch asks for one.
    """

    root: Path
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True)
class DescribedSwitch:
    """A switch.

    Attributes:
        name: by which workers and cables call it.
        grpc: where it serves P4Runtime, ``HOST:PORT`` or ``unix:PATH``.
        target: what it is.
        mac, ip: its own addresses, to which workers send.
        device_id: its number in P4Runtime.
        ports: what each of its ports is on its own machine, as `switchgnn switch --port` takes it;
            only the switch itself needs it.
        tls: certificates, where it serves TLS.
    """

    name: str
    grpc: str
    target: SwitchTarget
    mac: str
    ip: str
    device_id: int = 0
    ports: Mapping[str, str] = field(default_factory=dict)
    tls: TlsFiles | None = None

    @property
    def station(self) -> Station:
        """Its addresses."""
        return Station(self.mac, self.ip)


@dataclass(frozen=True)
class DescribedWorker:
    """A worker; their numbers are their places in the file, from 0.

    Attributes:
        switch: the name of the switch that it is attached to.
        port: the port there.
        mac, ip: its addresses.
        interface: its interface to the switch, on its own machine.
        link: in place of `interface`: any link, such as ``udp:HOST:PORT:SWITCH_HOST:SWITCH_PORT``.
        gloo: the interface over which workers meet and add gradients; empty: PyTorch chooses.
        metrics: ``HOST:PORT`` where it serves metrics, for who looks on; empty: nowhere.
    """

    switch: str
    port: int
    mac: str
    ip: str
    interface: str = ""
    link: str = ""
    gloo: str = ""
    metrics: str = ""

    @property
    def station(self) -> Station:
        """Its addresses."""
        return Station(self.mac, self.ip)

    @property
    def opens(self) -> str:
        """Its link, as a worker opens it."""
        return self.link or f"eth:{self.interface}"

    @property
    def metrics_place(self) -> tuple[str, int] | None:
        """Host and port of its metrics; None: it serves none."""
        host, _, port = self.metrics.rpartition(":")
        return (host.strip("[]"), int(port)) if self.metrics else None


@dataclass(frozen=True)
class Cable:
    """A link between a leaf and a spine, from the port of one to the port of the other."""

    leaf: str
    leaf_port: int
    spine: str
    spine_port: int


@dataclass(frozen=True)
class DescribedNetwork:
    """All of a network.

    Attributes:
        switches: in a leaf-spine leaves and spines, in any order.
        workers: in the order of their numbers.
        cables: none: a star around one switch.
    """

    switches: tuple[DescribedSwitch, ...]
    workers: tuple[DescribedWorker, ...]
    cables: tuple[Cable, ...] = ()

    @property
    def leaves(self) -> tuple[DescribedSwitch, ...]:
        """Those with workers, in the order of the workers; in a star the only switch."""
        names = dict.fromkeys(worker.switch for worker in self.workers)
        by_name = {switch.name: switch for switch in self.switches}
        return tuple(by_name[name] for name in names)

    @property
    def spines(self) -> tuple[DescribedSwitch, ...]:
        """Those without workers."""
        taken = {worker.switch for worker in self.workers}
        return tuple(switch for switch in self.switches if switch.name not in taken)

    @property
    def in_order(self) -> tuple[DescribedSwitch, ...]:
        """All switches, leaves first."""
        return (*self.leaves, *self.spines)

    @property
    def leaf_of_worker(self) -> tuple[int, ...]:
        """The place of each worker's switch among the leaves."""
        place = {switch.name: number for number, switch in enumerate(self.leaves)}
        return tuple(place[worker.switch] for worker in self.workers)
