# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options of `switchgnn run`."""

from dataclasses import dataclass, field
from pathlib import Path

from switchgnn.host.direct.framing import Framing
from switchgnn.host.pace import Pace
from switchgnn.planner.chosen import Asked
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.topologies import Backend


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
