# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Chooses switch and fabric: the best that the machine has."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType

from switchgnn.base.machine import python_program
from switchgnn.controller.controls.congestion import DEFAULT_ECN_THRESHOLD
from switchgnn.softswitch.native.build import Backend
from switchgnn.softswitch.traffic_manager import DEFAULT_DEPTH
from switchgnn.topologies.errors import FabricError
from switchgnn.topologies.fabric import Fabric
from switchgnn.topologies.loopback_fabric import LoopbackFabric
from switchgnn.topologies.mininet_fabric import MininetFabric, mininet_missing
from switchgnn.topologies.processes.child import Child
from switchgnn.topologies.processes.nursery import Nursery
from switchgnn.topologies.site import Site
from switchgnn.topologies.targets import BMV2_PROGRAM, Target, bmv2_installed

AUTO = "auto"
# BMv2 reads a port through a ring of about 30 frames, and its queues hold 64. On a shaped interface
# a wider window only waits in the kernel, before what the worker says next.
_NARROW = 16
# The token bucket of a loopback link is at the socket, and the embedded switch's queues are deep.
_MIDDLE = 64
# Frames leave in fewer and longer batches. Beyond it little is gained, and on a busy machine
# acknowledgements seem late.
_WIDE = 128


class FabricKind(str, Enum):
    """Which network carries the packets."""

    MININET = "mininet"
    LOOPBACK = "loopback"


@dataclass(frozen=True)
class Choice:
    """A switch and a fabric, and why.

    Attributes:
        target, fabric: what was chosen.
        reason: one sentence for the user.
    """

    target: Target
    fabric: FabricKind
    reason: str


@dataclass(frozen=True)
class Limits:
    """What may be on the way.

    Attributes:
        window: features of a worker in flight.
        ecn_threshold: packets in a queue from which on they are marked: half of what it holds.
    """

    window: int
    ecn_threshold: int


def usual_limits(target: Target, fabric: FabricKind, *, shaped: bool) -> Limits:
    """Return the limits where nobody says any (docs/benchmarks.md, "Slow links").

    Args:
        target: the switch.
        fabric: the network.
        shaped: whether links are slower than the machine.

    Returns:
        The limits.
    """
    if target is Target.BMV2:
        return Limits(_NARROW, DEFAULT_ECN_THRESHOLD)
    narrow = _NARROW if fabric is FabricKind.MININET else _MIDDLE
    return Limits(narrow if shaped else _WIDE, DEFAULT_DEPTH // 2)


def choose(target: str, fabric: str, backend: Backend | None = None) -> Choice:
    """Choose for ``auto`` and check what was asked for.

    Args:
        target: ``bmv2``, ``embedded`` or ``auto``.
        fabric: ``mininet``, ``loopback`` or ``auto``.
        backend: what the switch is to run programs as; only the embedded switch has a choice.

    Returns:
        The best switch and fabric that the machine has, of those that are asked for.

    Raises:
        FabricError: the machine lacks what was asked for, or the two do not go together.
    """
    # What loopback needs is always there, and looking for Mininet takes a moment.
    no_mininet = None if fabric == FabricKind.LOOPBACK else mininet_missing()
    no_bmv2 = None if bmv2_installed() else f"{BMV2_PROGRAM} is not on the PATH"
    asks_for_code = backend not in {None, Backend.AUTO}
    # What contradicts itself is said first: no installation mends it.
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
    chosen_fabric = _chosen_fabric(fabric, no_mininet)
    chosen_target = _chosen_target(target, chosen_fabric, no_bmv2, asks_for_code=asks_for_code)
    reasons = [
        _why_fabric(fabric, chosen_fabric, no_mininet),
        _why_target(target, chosen_target, chosen_fabric, no_bmv2),
    ]
    return Choice(chosen_target, chosen_fabric, "; ".join(reasons))


def build_fabric(
    kind: FabricKind,
    site: Site,
    folder: Path,
    *,
    cable_faults: str = "",
    nursery: Nursery | None = None,
    cable_recordings: Mapping[str, Path] | None = None,
    logs: Path | None = None,
) -> Fabric:
    """Return the fabric, not yet started.

    Args:
        kind: which network carries the packets.
        site: what to build.
        folder: for the temporary files of its processes, and their logs.
        cable_faults: as ``Fabric`` takes them.
        nursery: as ``Fabric`` takes it.
        cable_recordings: as ``Fabric`` takes them.
        logs: as ``Fabric`` takes it.

    Returns:
        A fabric in Mininet or over loopback.

    Raises:
        FabricError: the fabric cannot build such a site, or the machine lacks what it needs.
    """
    made = MininetFabric if kind is FabricKind.MININET else LoopbackFabric
    return made(site, folder, cable_faults, nursery, cable_recordings, logs=logs)


def _chosen_fabric(asked: str, no_mininet: str | None) -> FabricKind:
    if asked != AUTO:
        return FabricKind(asked)
    return FabricKind.LOOPBACK if no_mininet else FabricKind.MININET


def _chosen_target(
    asked: str, fabric: FabricKind, no_bmv2: str | None, *, asks_for_code: bool
) -> Target:
    if asked != AUTO:
        return Target(asked)
    if fabric is FabricKind.MININET and no_bmv2 is None and not asks_for_code:
        return Target.BMV2
    return Target.EMBEDDED


def _why_fabric(asked: str, chosen: FabricKind, no_mininet: str | None) -> str:
    if asked != AUTO:
        return f"fabric {chosen.value}: as asked"
    if no_mininet:
        return f"fabric loopback: {no_mininet}"
    return "fabric mininet: root and Mininet are here"


def _why_target(asked: str, chosen: Target, fabric: FabricKind, no_bmv2: str | None) -> str:
    if asked != AUTO:
        return f"switch {chosen.value}: as asked"
    if chosen is Target.BMV2:
        return f"switch bmv2: {BMV2_PROGRAM} is on the PATH"
    if fabric is FabricKind.LOOPBACK:
        return "switch embedded: BMv2 cannot attach to loopback"
    return f"switch embedded: {no_bmv2 or '--backend is for it'}"


_PROGRAM = python_program("switchgnn.topologies.tcp_flows")


class BackgroundTraffic:
    """Flows from each worker to the next, as long as the context lasts.

    The plan must be installed: the switches forward by its tables.

    Args:
        fabric: running, with hosts that have a network of their own.
        flows: from each worker to the next; 0 for none.
    """

    def __init__(self, fabric: Fabric, flows: int) -> None:
        self._fabric = fabric
        self._flows = flows
        self._stack = ExitStack()
        self._children: list[Child] = []

    def __enter__(self) -> "BackgroundTraffic":
        site = self._fabric.site
        workers = site.workers
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
                    self._write(child, f"connect {site.station((worker + 1) % workers).ip}")
                    child.read_line()
            for child in self._children:
                self._write(child, "fill")
                child.read_line()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def received_bytes(self) -> int:
        """Return what all flows have brought so far."""
        for child in self._children:
            self._write(child, "count")
        return sum(int(child.read_line()) for child in self._children)

    @staticmethod
    def _write(child: Child, line: str) -> None:
        child.stdin.write(f"{line}\n")
        child.stdin.flush()
