"""The interface of all fabrics: switches, a link for each worker, processes at its end."""

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from switchgnn.base.machine import python_program
from switchgnn.base.network_file import (
    Cable,
    DescribedNetwork,
    DescribedSwitch,
    DescribedWorker,
    TlsFiles,
)
from switchgnn.topologies.child import Child, temporary_files_in
from switchgnn.topologies.forkserver import Forkserver
from switchgnn.topologies.targets import switch_child
from switchgnn.topologies.topology import Topology, TopologySwitch

_PROGRAM = python_program("switchgnn.topologies.relay")


class RelayedCable(NamedTuple):
    """A cable through the relay; `lower`, `upper`: the relay's ends, as ports of a switch."""

    name: str
    lower: str
    upper: str


class FaultyCables:
    """The relay of a set of cables, to be started once; ``stop`` is idempotent."""

    def __init__(
        self,
        cables: Sequence[RelayedCable],
        faults: str,
        folder: Path,
        *,
        namespace: Path | None = None,
        recordings: Mapping[str, Path] | None = None,
        logs: Path | None = None,
    ) -> None:
        self._child = Child(
            "The relay between switches",
            [*_PROGRAM, *(word for cable in cables for word in cable)],
            (logs or folder) / "relay.log",
            pipe=True,
            environment=temporary_files_in(folder),
            namespace=namespace,
        )
        # Observers of a run ask from threads of their own.
        self._asking = threading.Lock()
        self._faults = faults
        self._recordings = {name: str(path) for name, path in (recordings or {}).items()}

    def start(self) -> None:
        """Start the relay and wait until it carries frames."""
        self._child.start()
        self._child.read_line()
        if self._recordings:
            self._ask(f"record {json.dumps(self._recordings)}")
        self.disturb(self._faults)

    def disturb(self, faults: str) -> None:
        """Inject these faults on all cables from now on, and reset the counters."""
        self._ask(f"faults {faults}")

    def counts(self) -> dict[str, dict[str, Any]]:
        """Return ``up`` and ``down`` (bytes), ``frames`` and ``faults`` of each cable."""
        answer: dict[str, dict[str, Any]] = json.loads(self._ask("count"))
        return answer

    def stop(self) -> None:
        """End the relay."""
        self._child.stop()

    def _ask(self, line: str) -> str:
        with self._asking:
            self._child.tell(line)
            return self._child.read_line()


class WireBytes(NamedTuple):
    """Bytes that have crossed a wire, in Ethernet frames without preamble and FCS."""

    up: int
    down: int


def carried(
    before: Sequence[WireBytes] | None, after: Sequence[WireBytes] | None
) -> list[WireBytes] | None:
    """Return the difference of two readings of each wire; None if nothing is counted."""
    if before is None or after is None:
        return None
    return [
        WireBytes(late.up - early.up, late.down - early.down)
        for early, late in zip(before, after, strict=True)
    ]


class Fabric(ABC):
    """A running topology. ``start`` and ``stop`` are idempotent; a context manager.

    Args:
        topology: what to build.
        folder: for the temporary files of its processes, and their logs.
        cable_faults: the value of ``switchgnn run --faults``, if it applies to cables; cables have
            relays only then, or if they are recorded.
        forkserver: forks embedded switches and workers; None: they are started as programs.
        cable_recordings: files from ``begin_recording`` for the frames of each cable, by its name.
        logs: another folder for the logs.
    """

    def __init__(
        self,
        topology: Topology,
        folder: Path,
        *,
        cable_faults: str = "",
        forkserver: Forkserver | None = None,
        cable_recordings: Mapping[str, Path] | None = None,
        logs: Path | None = None,
    ) -> None:
        self.topology = topology
        self._forkserver = forkserver
        self.folder = folder
        self.logs = logs or folder
        self.relay: FaultyCables | None = None  # of the cables of a running fabric
        self._cable_faults = cable_faults if topology.cables else ""
        self._cable_recordings = dict(cable_recordings or {}) if topology.cables else {}
        self._relays = bool(self._cable_faults or self._cable_recordings)
        self._switches: list[Child] = []
        self._doors = ExitStack()

    @abstractmethod
    def start(self) -> None:
        """Build the network, start the switches, and wait until they serve P4Runtime."""

    @abstractmethod
    def worker_link(self, worker: int) -> str:
        """Return the worker's link, as for ``switchgnn.host.open_link``."""

    def describe(self, processes: int = 1) -> DescribedNetwork:
        """Return the network file of the running topology; `processes` share each worker's link."""
        topology, tls = self.topology, self.topology.tls
        files = TlsFiles(tls["ca"], tls["controller"], tls["controller-key"]) if tls else None
        switches = [
            DescribedSwitch(
                name, address, topology.target, network.switch.mac, network.switch.ip, tls=files
            )
            for name, network, address in topology.switches
        ]
        workers = [
            DescribedWorker(
                switches[topology.positions[worker][0]].name,
                topology.port(worker),
                topology.station(worker).mac,
                topology.station(worker).ip,
                link=self.worker_link(worker),
                namespace=str(self.worker_namespace(worker) or ""),
                gloo="" if self.workers_have_hosts else "lo",
                processes=processes,
            )
            for worker in range(topology.workers)
        ]
        cables = [
            Cable(switches[lower.switch].name, lower.port, switches[upper.switch].name, upper.port)
            for _, lower, upper in topology.cables
        ]
        return DescribedNetwork(tuple(switches), tuple(workers), tuple(cables))

    def worker_namespace(self, worker: int) -> Path | None:
        """Return the worker's own network namespace, or None."""
        return None

    @property
    def workers_have_hosts(self) -> bool:
        """Whether each worker has a host with a network of its own."""
        return False

    def wire_bytes(self) -> list[WireBytes] | None:
        """Return the bytes of each worker's link as interfaces count them; None without a count."""
        return None

    def cable_bytes(self) -> list[WireBytes] | None:
        """Return the bytes of each cable between switches; None without a count."""
        return None

    def cable_injected(self) -> dict[str, int]:
        """Return the number of faults on cables between switches, by kind."""
        injected: dict[str, int] = {}
        faulty = self.relay.counts().values() if self.relay and self._cable_faults else ()
        for cable in faulty:
            for counts in cable["faults"].values():
                for name, number in counts.items():
                    injected[name] = injected.get(name, 0) + number
        return injected

    def _faulty(
        self, cables: Sequence[RelayedCable], namespace: Path | None = None
    ) -> FaultyCables:
        """Return the relay of the cables, which runs in a network namespace."""
        return FaultyCables(
            cables,
            self._cable_faults,
            self.folder,
            namespace=namespace,
            recordings=self._cable_recordings,
            logs=self.logs,
        )

    def _start_switch(
        self,
        switch: TopologySwitch,
        ports: Mapping[int, str],
        grpc_address: str,
        **more: Any,  # noqa: ANN401
    ) -> None:
        """Start a switch; for `more` see ``switch_child``."""
        child = switch_child(
            self.topology.target,
            ports=ports,
            grpc_address=grpc_address,
            log=self.logs / f"{switch.name}.log",
            folder=self.folder,
            tls=self.topology.tls,
            backend=self.topology.backend,
            bmv2_log=self.topology.bmv2_log,
            forkserver=self._forkserver,
            **more,
        )
        self._switches.append(child)
        child.start()

    def stop(self) -> None:
        """End the switches and take the network down."""
        self._doors.close()
        relay, self.relay = self.relay, None
        if relay is not None:
            relay.stop()
        switches, self._switches = self._switches, []
        for switch in switches:
            switch.stop()

    def worker_child(
        self,
        worker: int,
        command: Sequence[str],
        *,
        name: str = "worker",
        environment: Mapping[str, str] | None = None,
        per_port: int = 1,
    ) -> Child:
        """Return a process at the worker's end of its link, with piped input and output.

        Args:
            worker: its number.
            command: program and arguments.
            name: what messages and the log file call it.
            environment: variables to set.
            per_port: how many workers share a link.

        Returns:
            The process, not yet started.
        """
        return Child(
            f"{name.capitalize()} {worker}",
            command,
            self.logs / f"{name}-{worker}.log",
            pipe=True,
            environment={**temporary_files_in(self.folder), **(environment or {})},
            forkserver=self._forkserver,
            namespace=self.worker_namespace(worker // per_port),
        )

    def __enter__(self) -> "Fabric":
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
