# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What every fabric offers: one switch, a link for each worker, processes at its end."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from switchgnn.controller.network import Network
from switchgnn.topologies.child import Child
from switchgnn.topologies.targets import Target, TlsFolder


@dataclass(frozen=True)
class Star:
    """Workers around one switch.

    Attributes:
        network: ports and addresses.
        target: which switch runs the program.
        grpc_address: where the switch serves P4Runtime, ``HOST:PORT``.
        bandwidth: Mbit/s of each link, or None for as fast as the machine can.
        tls: certificates for P4Runtime, or None for plain gRPC.
    """

    network: Network
    target: Target
    grpc_address: str
    bandwidth: float | None = None
    tls: TlsFolder | None = None

    @property
    def workers(self) -> int:
        """Number of workers."""
        return len(self.network.stations)


class WireBytes(NamedTuple):
    """Bytes that have crossed a worker's wire, Ethernet frames without preamble and FCS."""

    up: int
    down: int


class Fabric(ABC):
    """A running star. ``start`` and ``stop`` are idempotent; a context manager.

    Args:
        star: what to build.
        folder: for the logs of its processes.
    """

    def __init__(self, star: Star, folder: Path) -> None:
        self.star = star
        self.folder = folder

    @abstractmethod
    def start(self) -> None:
        """Build the network, start the switch, and wait until it serves P4Runtime."""

    @abstractmethod
    def stop(self) -> None:
        """End the switch and take the network down."""

    @abstractmethod
    def worker_link(self, worker: int) -> str:
        """Return the worker's link as ``switchgnn.host.open_link`` takes it."""

    @abstractmethod
    def worker_command(self, worker: int, command: Sequence[str]) -> list[str]:
        """Return the command that runs ``command`` where the worker is."""

    @property
    def workers_have_hosts(self) -> bool:
        """Whether each worker has a host with a network of its own."""
        return False

    @abstractmethod
    def wire_bytes(self) -> list[WireBytes] | None:
        """Return bytes per worker as the interfaces count them; None if none does."""

    def worker_child(self, worker: int, command: Sequence[str], *, name: str = "worker") -> Child:
        """Return a process at the worker's end of its link, with piped input and output."""
        return Child(
            f"{name.capitalize()} {worker}",
            self.worker_command(worker, command),
            self.folder / f"{name}-{worker}.log",
            pipe=True,
        )

    def __enter__(self) -> "Fabric":
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
