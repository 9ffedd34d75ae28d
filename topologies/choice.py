"""Chooses switch and fabric: the best that the machine has."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum

from switchgnn.base.machine import python_program
from switchgnn.base.network_file import Target
from switchgnn.controller.controls.congestion import BMV2_QUEUE, DEFAULT_ECN_THRESHOLD
from switchgnn.softswitch.base.ports import DEFAULT_DEPTH
from switchgnn.softswitch.native.build import Backend
from switchgnn.topologies.child import Child
from switchgnn.topologies.errors import FabricError
from switchgnn.topologies.fabric import Fabric
from switchgnn.topologies.loopback_fabric import LoopbackFabric
from switchgnn.topologies.mininet_fabric import MininetFabric, mininet_missing
from switchgnn.topologies.targets import BMV2_PROGRAM, bmv2_installed

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


_PROGRAM = python_program("switchgnn.topologies.tcp_flows")


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
