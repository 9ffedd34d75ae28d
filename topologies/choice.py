"""Chooses switch and fabric: the best that the machine has, or ports of a switch that is kept."""

import fcntl
import hashlib
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from switchgnn.base.machine import python_program
from switchgnn.base.network import bad_job_name
from switchgnn.base.network_file import DescribedNetwork, Target, networks_of, read_network
from switchgnn.controller.controls.congestion import BMV2_QUEUE, DEFAULT_ECN_THRESHOLD
from switchgnn.softswitch.base.ports import DEFAULT_DEPTH
from switchgnn.softswitch.native.build import Backend
from switchgnn.topologies.child import Child
from switchgnn.topologies.errors import FabricError
from switchgnn.topologies.fabric import Fabric, WireBytes
from switchgnn.topologies.loopback_fabric import LoopbackFabric
from switchgnn.topologies.mininet_fabric import MininetFabric, counted_in, mininet_missing
from switchgnn.topologies.targets import BMV2_PROGRAM, bmv2_installed
from switchgnn.topologies.topology import Topology

# BMv2 where it can run, as it is the reference implementation of v1model; else the embedded switch.
AUTO, REFERENCE = "auto", "reference"
# BMv2 reads a port through a ring of about 30 frames, and its queues hold 64.
_NARROW = 16
# On a slow link a wider window only waits in the kernel.
_MIDDLE = 64
# Fewer and longer batches. Beyond it little is gained, and acknowledgements on a busy machine seem
# late.
_WIDE = 128
# 73 kB of frames with 128 numbers each.
_EMBEDDED_ECN_THRESHOLD = 128
_PROGRAM = python_program("switchgnn.topologies.tcp_flows")


class FabricKind(str, Enum):
    """Which network carries the packets."""

    MININET = "mininet"
    LOOPBACK = "loopback"


@dataclass(frozen=True)
class FabricChoice:
    """A switch and a fabric; `reason`: one sentence for the user."""

    target: Target
    fabric: FabricKind
    reason: str


@dataclass(frozen=True)
class FlowLimits:
    """Limits on packets in flight."""

    window: int  # features of a worker in flight
    ecn_threshold: int  # packets in a queue from which on they are marked beside ordinary traffic
    queue: int  # packets that a queue of the switch holds


def usual_limits(target: Target, *, shaped: bool) -> FlowLimits:
    """Return the default limits; `shaped`: links are slower than the machine.

    They are measured: docs/evidence/measurements.md, "Slow links".
    """
    if target is Target.BMV2:
        return FlowLimits(_NARROW, DEFAULT_ECN_THRESHOLD, BMV2_QUEUE)
    return FlowLimits(_MIDDLE if shaped else _WIDE, _EMBEDDED_ECN_THRESHOLD, DEFAULT_DEPTH)


def choose(target: str, fabric: str, backend: Backend | None = None) -> FabricChoice:
    """Choose for ``auto`` and ``reference``, and check explicit choices.

    Args:
        target: ``bmv2``, ``embedded``, ``auto`` (the faster one, ``embedded``) or ``reference``.
        fabric: ``mininet``, ``loopback`` or ``auto``.
        backend: how the switch runs programs; only the embedded switch has a choice.

    Returns:
        The switch and the best available fabric that match.

    Raises:
        FabricError: a choice is not available, or they contradict each other.
    """
    # Loopback needs nothing, and the check for Mininet takes a moment.
    no_mininet = None if fabric == FabricKind.LOOPBACK else mininet_missing()
    no_bmv2 = None if bmv2_installed() else f"{BMV2_PROGRAM} is not on the PATH"
    asks_for_code = backend not in {None, Backend.AUTO}
    # Contradictions come first: no installation resolves them.
    if target == Target.BMV2 and backend is not None and asks_for_code:
        raise FabricError(
            f"BMv2 interprets the program, so there is no --backend {backend.value}: leave it "
            "out, or take --target embedded."
        )
    if target == Target.BMV2 and fabric == FabricKind.LOOPBACK:
        raise FabricError("BMv2 attaches to network interfaces, so it needs --fabric mininet.")
    if fabric == FabricKind.MININET and no_mininet:
        raise FabricError(f"{no_mininet}; or take --fabric loopback.")
    if target == Target.BMV2 and no_bmv2:
        raise FabricError(
            f"{no_bmv2}: `switchgnn doctor` says how to get it; or take --target embedded."
        )
    if target == Target.BMV2 and no_mininet:
        raise FabricError(
            f"BMv2 attaches to network interfaces, so it needs --fabric mininet, but {no_mininet}."
        )
    network, why_network = _pick_fabric(fabric, no_mininet)
    switch, why_switch = _pick_target(target, network, no_bmv2, asks_for_code=asks_for_code)
    reasons = f"fabric {network.value}: {why_network}; switch {switch.value}: {why_switch}"
    return FabricChoice(switch, network, reasons)


FABRICS: Mapping[FabricKind, Callable[..., Fabric]] = {
    FabricKind.MININET: MininetFabric,
    FabricKind.LOOPBACK: LoopbackFabric,
}


def _pick_fabric(asked: str, no_mininet: str | None) -> tuple[FabricKind, str]:
    """Return the fabric and the reason."""
    if asked != AUTO:
        return FabricKind(asked), "as asked"
    if no_mininet:
        return FabricKind.LOOPBACK, no_mininet
    return FabricKind.MININET, "root and Mininet are here"


def _pick_target(
    asked: str, fabric: FabricKind, no_bmv2: str | None, *, asks_for_code: bool
) -> tuple[Target, str]:
    """Return the switch and the reason."""
    if asked == AUTO:
        return Target.EMBEDDED, "the faster one"
    if asked != REFERENCE:
        return Target(asked), "as asked"
    if fabric is FabricKind.LOOPBACK:
        return Target.EMBEDDED, "BMv2 cannot attach to loopback"
    if no_bmv2 or asks_for_code:
        return Target.EMBEDDED, no_bmv2 or "--backend is for it"
    return Target.BMV2, f"the reference, {BMV2_PROGRAM}, is on the PATH"


class BackgroundTraffic:
    """TCP flows from each worker to the next during the context.

    The fabric must run, with a plan installed, as the switches forward by its tables. `flows`: from
    each worker to the next; 0 for none.
    """

    def __init__(self, fabric: Fabric, flows: int) -> None:
        self._fabric = fabric
        self._flows = flows
        self._stack = ExitStack()
        self._children: list[Child] = []

    def __enter__(self) -> "BackgroundTraffic":
        topology = self._fabric.topology
        workers = topology.workers
        if self._flows and not self._fabric.workers_have_hosts:
            raise FabricError("Background traffic needs hosts of their own: take --fabric mininet.")
        with self._stack:
            for worker in range(workers if self._flows else 0):
                child = self._fabric.worker_child(worker, _PROGRAM, name="background")
                self._children.append(self._stack.enter_context(child))
            for child in self._children:
                child.read_line()
            for worker, child in enumerate(self._children):
                for _ in range(self._flows):
                    child.tell(f"connect {topology.station((worker + 1) % workers).ip}")
                    child.read_line()
            for child in self._children:
                child.tell("fill")
                child.read_line()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def received_bytes(self) -> int:
        """Return the bytes that all flows have received so far."""
        for child in self._children:
            child.tell("count")
        return sum(int(child.read_line()) for child in self._children)


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
