# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The report of a run, for users and programs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.commands.run.reference import Verdict
from switchgnn.commands.shared.leaf_spine import LeafSpineReport, report_leaf_spine
from switchgnn.commands.shared.workers import WorkerOutcome
from switchgnn.host.alone import Exchanges, HostTraffic, host_traffic
from switchgnn.host.direct.framing import Framing
from switchgnn.host.pace import Pace
from switchgnn.host.registry import HOST, HOST_PARTIAL
from switchgnn.host.wire.native import hosts_run_as
from switchgnn.p4src import Program
from switchgnn.planner.chosen import Asked, strategy_names
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.plan.files import read_assignment
from switchgnn.planner.plan.leaf_spine import LeafSpineParts
from switchgnn.planner.plan.manifest import Manifest
from switchgnn.planner.presets import Choice as Strategies
from switchgnn.topologies import (
    Ahead,
    Backend,
    Choice,
    WireBytes,
)


@dataclass(frozen=True)
class RunOptions:
    """What to run.

    Attributes:
        graph: a built-in graph or a file.
        workers: their number.
        features: the width F, or None for the graph's own features.
        rounds: the number of exchanges, each with other features.
        slots: the aggregators that a block may use.
        sockets: the folder for the switches' Unix sockets; None: the run's own.
        leaf_spine: the leaves that the workers are attached to, and the spines; None: a star
            around one switch.
        target, fabric: a choice or ``auto``.
        backend: what embedded switches run the program as; None: what the environment says.
        bandwidth: Mbit/s per link, or None.
        seed: the seed of the planner and of made-up features.
        grpc_port: the TCP port of the switch's P4Runtime server; 0 for a Unix socket.
        ecn_threshold: the queue length in packets from which packets are marked.
        pace: the limits of sending and waiting.
        background: TCP flows from each worker to the next, on the same links.
        faults: what to inject on links and cables, as ``Faults.parse`` takes it.
        tls: the folder with certificates for P4Runtime, or None for plain gRPC.
        asked: the strategies to plan with.
        pcap: the folder for a file of each link's packets, or None.
        framing: of the exchanges between hosts that the report compares with.
        metrics: the address and the port where worker 0 serves metrics; None: nobody does.
    """

    graph: str
    workers: int
    features: int | None
    rounds: int
    slots: int
    target: str
    fabric: str
    bandwidth: float | None
    seed: int
    grpc_port: int
    ecn_threshold: int
    pace: Pace
    background: int = 0
    faults: str = ""
    tls: Path | None = None
    asked: Asked = field(default_factory=Asked)
    leaf_spine: LeafSpine | None = None
    sockets: Path | None = None
    backend: Backend | None = None
    pcap: Path | None = None
    framing: Framing = field(default_factory=Framing)
    metrics: tuple[str, int] | None = None


@dataclass(frozen=True)
class WorkerReport:
    """One worker's part of a run.

    Attributes:
        worker: its number.
        features_sent, sums_received: data packets over all rounds.
        bytes_up, bytes_down: bytes on its link.
        host_bytes_up, host_bytes_down: bytes that copies between hosts would have put there.
        host_partial_bytes_up, host_partial_bytes_down: the same for copies or partial sums,
            whichever are fewer.
        seconds: from its first `done` to its last `advance`.
        releases: slots that it had released, as the switch has counted.
        tally: all its counts, by name.
    """

    worker: int
    features_sent: int
    sums_received: int
    bytes_up: int
    bytes_down: int
    host_bytes_up: int
    host_bytes_down: int
    host_partial_bytes_up: int
    host_partial_bytes_down: int
    seconds: float
    releases: int
    tally: dict[str, int]


@dataclass(frozen=True)
class RunReport:
    """A whole run.

    Attributes:
        target, fabric, reason: what was used and why.
        backend: what the embedded switch ran the program as, ``native`` or ``python``; None for
            BMv2.
        backend_reason: why that is Python where native code might have been; None elsewhere.
        compile_seconds: how long the compilation took, next to nothing when it was kept; None for
            BMv2.
        hosts: what hosts take frames apart with, ``native`` or ``python`` code.
        workers: their number.
        graph: the name of the graph.
        vertices, edges, boundary_vertices: the size of the graph and of its boundary.
        features: the width of a feature.
        rounds, blocks: their numbers.
        slots: the aggregators of 32 numbers that a block may use.
        lanes: numbers of the widest frame.
        strategy, why: the preset that chose the strategies, and its reasons.
        partition, block_strategy, send, order: the strategies, as in the plan's manifest.
        weight: the cost of a contribution in the send strategy, in packets.
        exact: whether every fixed-point sum equals the reference.
        wrong_sums: the number of elements that do not.
        max_error: the largest absolute error of a float sum.
        error_bound: the largest error that fixed point allows.
        bytes_up, bytes_down: bytes on the links of all workers.
        host_mtu: of the frames between hosts that the plan is compared with: bytes of the largest
            IP packet, or ``fragment``.
        host_bytes_up, host_bytes_down: bytes of all workers if hosts had sent copies, with
            acknowledgements.
        host_partial_bytes_up, host_partial_bytes_down: the same for copies or partial sums,
            whichever are fewer.
        wires: who counted the bytes, ``interfaces`` or ``sockets``.
        frames_up, frames_down: frames of all workers, as their sockets counted them.
        passes, contributions: what the switch counted.
        table_entries: the entries installed.
        plan_seconds, install_seconds: the time of these steps.
        seconds: the slowest worker's exchange time.
        marked: packets that the switch marked because of a long queue.
        port_queue: packets by the length of the queue that they found at their port, in
            packets; the last element also counts longer queues.
        background_bytes: bytes that background TCP flows delivered in that time.
        faults_injected: frames that a fault was injected into, by kind, on links and cables.
        repairs: how often the workers repaired or ignored something, by kind.
        per_worker: one report each.
        leaf_spine: the links between leaves and spines; None for a star.
        pcap: the files that keep the packets of the links; none if nobody asked.
    """

    target: str
    backend: str | None
    backend_reason: str | None
    compile_seconds: float | None
    hosts: str
    fabric: str
    reason: str
    workers: int
    graph: str
    vertices: int
    edges: int
    boundary_vertices: int
    features: int
    rounds: int
    blocks: int
    slots: int
    lanes: int
    strategy: str
    why: tuple[str, ...]
    partition: str
    block_strategy: str
    send: str
    weight: float
    order: str
    exact: bool
    wrong_sums: int
    max_error: float
    error_bound: float
    bytes_up: int
    bytes_down: int
    host_mtu: int | str
    host_bytes_up: int
    host_bytes_down: int
    host_partial_bytes_up: int
    host_partial_bytes_down: int
    wires: str
    frames_up: int
    frames_down: int
    passes: int
    contributions: int
    table_entries: int
    plan_seconds: float
    install_seconds: float
    seconds: float
    marked: int
    port_queue: tuple[int, ...]
    background_bytes: int
    faults_injected: dict[str, int]
    repairs: dict[str, int]
    per_worker: tuple[WorkerReport, ...]
    leaf_spine: LeafSpineReport | None = None
    pcap: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Prepared:
    """Everything that is known before a packet is sent.

    Attributes:
        program: what the switches run.
        graph: the graph, of n vertices.
        features: float32[n, F], what is summed.
        plan: the folder of the plan.
        left: bool[n], the destinations that it leaves to the hosts; None: none.
        strategies, manifest: those of the plan.
        parts: those of the plan for leaves and spines; None for a star.
        seconds: the time that planning took.
    """

    program: Program
    graph: Graph
    features: NDArray[np.float32]
    plan: Path
    left: NDArray[np.bool_] | None
    strategies: Strategies
    manifest: Manifest
    parts: LeafSpineParts | None
    seconds: float


@dataclass(frozen=True)
class Measured:
    """The results of the exchanges.

    Attributes:
        outcomes: the outcome of each worker.
        wire, wires: the bytes of each worker, and who counted them.
        counters, port_queue: by how much those of all switches together have grown.
        releases: how often each worker has had a slot released.
        background_bytes: bytes that background flows delivered.
        entries, install_seconds: the size and the time of the installation.
        partial_sums: partial sums that the spines have taken.
        cables: bytes between switches, if they are counted.
        cable_faults: frames that a fault was injected into between switches, by kind.
    """

    outcomes: list[WorkerOutcome]
    wire: list[WireBytes]
    wires: str
    counters: dict[str, int]
    port_queue: tuple[int, ...]
    releases: tuple[int, ...]
    background_bytes: int
    entries: int
    install_seconds: float
    partial_sums: int
    cables: WireBytes | None
    cable_faults: dict[str, int]


def make_report(
    options: RunOptions,
    choice: Choice,
    ahead: Ahead | None,
    prepared: Prepared,
    measured: Measured,
    verdict: Verdict,
) -> RunReport:
    """Compare what was measured with what was planned.

    Args:
        options: what was asked for.
        choice: the target and the fabric.
        ahead: what the switches run the program as; None for BMv2.
        prepared: what was planned.
        measured: the results of the exchanges.
        verdict: the comparison of all rounds with the reference.

    Returns:
        The report.
    """
    forward = prepared.manifest.direction(Direction.FORWARD)
    prediction = forward.prediction
    exchanges = Exchanges(Direction.FORWARD, prepared.features.shape[1], options.rounds)
    boundary = boundary_edges(prepared.graph, read_assignment(prepared.plan))
    alone = host_traffic(boundary, options.workers, [exchanges], options.framing)
    per_worker = _report_workers(measured, alone[HOST.name], alone[HOST_PARTIAL.name])
    return RunReport(
        target=choice.target.value,
        backend=None if ahead is None else ahead.backend.value,
        backend_reason=None if ahead is None else ahead.reason,
        compile_seconds=None if ahead is None else ahead.seconds,
        hosts=hosts_run_as(),
        fabric=choice.fabric.value,
        reason=choice.reason,
        workers=options.workers,
        graph=prepared.graph.name,
        vertices=prepared.graph.vertices,
        edges=len(prepared.graph.indices),
        boundary_vertices=prediction.boundary_vertices,
        features=prepared.features.shape[1],
        rounds=options.rounds,
        blocks=len(forward.block_numbers),
        slots=options.slots,
        lanes=prepared.manifest.lanes,
        strategy=options.asked.preset,
        why=tuple(prepared.strategies.because.values()),
        **strategy_names(prepared.manifest),
        exact=verdict.wrong_sums == 0,
        wrong_sums=verdict.wrong_sums,
        max_error=verdict.max_error,
        error_bound=verdict.error_bound,
        bytes_up=sum(report.bytes_up for report in per_worker),
        bytes_down=sum(report.bytes_down for report in per_worker),
        host_mtu=options.framing.told,
        host_bytes_up=sum(report.host_bytes_up for report in per_worker),
        host_bytes_down=sum(report.host_bytes_down for report in per_worker),
        host_partial_bytes_up=sum(report.host_partial_bytes_up for report in per_worker),
        host_partial_bytes_down=sum(report.host_partial_bytes_down for report in per_worker),
        wires=measured.wires,
        frames_up=sum(outcome.traffic["frames_up"] for outcome in measured.outcomes),
        frames_down=sum(outcome.traffic["frames_down"] for outcome in measured.outcomes),
        passes=measured.counters["passes"],
        contributions=measured.counters["contributions"],
        table_entries=measured.entries,
        plan_seconds=prepared.seconds,
        install_seconds=measured.install_seconds,
        seconds=max(outcome.seconds for outcome in measured.outcomes),
        marked=measured.counters["marked"],
        port_queue=measured.port_queue,
        background_bytes=measured.background_bytes,
        faults_injected=_injected(measured),
        repairs=_repairs(measured.outcomes),
        per_worker=per_worker,
        leaf_spine=_leaf_spine_report(prepared, measured, exchanges, alone),
    )


def _report_workers(
    measured: Measured, copied: HostTraffic, partial: HostTraffic
) -> tuple[WorkerReport, ...]:
    return tuple(
        WorkerReport(
            worker=worker,
            features_sent=outcome.tally["features_sent"],
            sums_received=outcome.tally["sums_received"],
            bytes_up=wire.up,
            bytes_down=wire.down,
            host_bytes_up=copied.up[worker],
            host_bytes_down=copied.down[worker],
            host_partial_bytes_up=partial.up[worker],
            host_partial_bytes_down=partial.down[worker],
            seconds=outcome.seconds,
            releases=releases,
            tally=outcome.tally,
        )
        for worker, (outcome, wire, releases) in enumerate(
            zip(measured.outcomes, measured.wire, measured.releases, strict=True)
        )
    )


def _leaf_spine_report(
    prepared: Prepared,
    measured: Measured,
    exchanges: Exchanges,
    alone: Mapping[str, HostTraffic],
) -> LeafSpineReport | None:
    if prepared.parts is None:
        return None
    return report_leaf_spine(
        prepared.parts,
        prepared.manifest,
        [exchanges],
        alone=alone,
        partial_sums=measured.partial_sums,
        cables=measured.cables,
        faults_injected=measured.cable_faults,
    )


_REPAIRS = (
    "features_resent",
    "probes",
    "recalls",
    "sums_recalled",
    "fetches",
    "features_fetched",
    "sums_made",
    "late",
    "repeated",
    "wrong",
    "malformed",
    "barriers_repeated",
    "marked",
    "notices",
)


def _injected(measured: Measured) -> dict[str, int]:
    """Return the faults on the links of workers and on cables between switches."""
    total = dict(measured.cable_faults)
    for outcome in measured.outcomes:
        for counts in outcome.faults.values():
            for name, number in counts.items():
                total[name] = total.get(name, 0) + number
    return total


def _repairs(outcomes: list[WorkerOutcome]) -> dict[str, int]:
    return {name: sum(outcome.tally[name] for outcome in outcomes) for name in _REPAIRS}
