"""Some ports of a switch that another command keeps: processes at their links, for one job."""

import fcntl
import hashlib
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from switchgnn.base.network import bad_job_name
from switchgnn.base.network_file import (
    DescribedNetwork,
    networks_of,
    read_network,
)
from switchgnn.topologies.choice import FabricChoice, FabricKind
from switchgnn.topologies.errors import FabricError
from switchgnn.topologies.fabric import Fabric, WireBytes
from switchgnn.topologies.mininet_fabric import counted_in
from switchgnn.topologies.topology import Topology


@dataclass(frozen=True)
class KeptPorts:
    """The ports of a job on a switch that is kept."""

    file: Path  # describes the switch and all its ports
    network: DescribedNetwork  # the switch and the job's workers, and the name of the job
    stays: bool = False  # whether the job stays on the switch at its end

    @classmethod
    def read(cls, file: Path, ports: Sequence[int], job: str | None = None) -> "KeptPorts":
        """Return some ports of a network file, in order, for a job; None: that of the file."""
        network = read_network(file)
        if network.cables:
            raise FabricError(f"{file} has leaves and spines: --on takes one switch alone.")
        by_port = {worker.port: worker for worker in network.workers}
        for number, port in enumerate(ports):
            if port not in by_port:
                there = ", ".join(map(str, by_port))
                raise FabricError(f"{file} has no port {port}: choose --ports of {there}.")
            if port in ports[:number]:
                raise FabricError(f"--ports names port {port} twice: name each once.")
            if by_port[port].interface:
                raise FabricError(
                    f"Port {port} of {file} leads to another machine, where torchrun starts its "
                    "worker: --on needs a link in its place."
                )
        if job is not None and (problem := bad_job_name(job)):
            raise FabricError(f"{problem}.")
        workers = tuple(by_port[port] for port in ports)
        return cls(file, replace(network, workers=workers, job=job or network.job))

    @property
    def bandwidth(self) -> float | None:
        """Mbit/s of the links; None: no limit."""
        kind, *words = self.network.workers[0].link.split(":")
        limit = words[1 if kind == "eth" else 4 :]
        return float(limit[0]) if limit else None

    @property
    def choice(self) -> FabricChoice:
        """The switch, and what its links are."""
        target = self.network.switches[0].target
        hosts = any(worker.namespace for worker in self.network.workers)
        fabric = FabricKind.MININET if hosts else FabricKind.LOOPBACK
        reason = f"fabric {fabric.value} and switch {target.value}, as kept: {self.file}"
        return FabricChoice(target, fabric, reason)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until no other job is installed or removed, and keep others waiting."""
        try:
            file = self.file.open()
        except OSError as error:
            raise FabricError(f"The switch of {self.file} has ended: keep another.") from error
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Refuse to run a job twice at once."""
        job = f"{self.file.resolve()} {self.network.job}"
        # The kernel frees such an address when the process ends, however it does.
        address = f"\0switchgnn-{hashlib.sha256(job.encode()).hexdigest()}"
        with socket.socket(socket.AF_UNIX) as sock:
            try:
                sock.bind(address)
            except OSError as error:
                raise FabricError(
                    f"Job {self.network.job} of {self.file} is running: wait for its end, or give "
                    "this one another name (--job)."
                ) from error
            yield


class KeptFabric(Fabric):
    """Workers at ports of a switch that runs already; ``stop`` leaves it as it is."""

    def __init__(self, on: KeptPorts, folder: Path, **more: Any) -> None:  # noqa: ANN401
        self._on = on
        (switch,), (around,) = on.network.switches, networks_of(on.network)
        topology = Topology(around.alone, switch.target, (switch.grpc,), bandwidth=on.bandwidth)
        super().__init__(topology, folder, **more)

    def start(self) -> None:
        """Do nothing: the switch and its links are there."""

    def describe(self, processes: int = 1) -> DescribedNetwork:
        """See ``Fabric``; the network has the job's workers only."""
        network = self._on.network
        workers = (replace(worker, processes=processes) for worker in network.workers)
        return replace(network, workers=tuple(workers))

    def worker_link(self, worker: int) -> str:
        """Return the link in the file."""
        return self._on.network.workers[worker].opens

    def worker_namespace(self, worker: int) -> Path | None:
        """Return the network namespace in the file."""
        namespace = self._on.network.workers[worker].namespace
        return Path(namespace) if namespace else None

    @property
    def workers_have_hosts(self) -> bool:
        """See ``Fabric``."""
        return self._on.choice.fabric is FabricKind.MININET

    def wire_bytes(self) -> list[WireBytes] | None:
        """Return the counters of the workers' ends of the links."""
        if not self.workers_have_hosts:
            return None
        found = []
        for worker in self._on.network.workers:
            received, sent = counted_in(Path(worker.namespace))[worker.link.split(":")[1]]
            found.append(WireBytes(up=sent, down=received))
        return found
