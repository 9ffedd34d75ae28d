# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The report of a run, for users and programs."""

from dataclasses import asdict, dataclass
from typing import Any

from switchgnn.commands.shared.leaf_spine_report import LeafSpineReport


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
