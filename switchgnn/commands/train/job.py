# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options of `switchgnn train`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from switchgnn.base.network import Station
from switchgnn.commands.shared.recordings import Recordings
from switchgnn.host.direct.framing import Framing
from switchgnn.host.pace import Pace
from switchgnn.host.registry import SwitchProgram, TransportKind, transport_kind
from switchgnn.host.wire.addresses import Addresses
from switchgnn.p4src import Program, load_program, load_strawman
from switchgnn.planner.chosen import Asked
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.presets import Choice, Situation
from switchgnn.topologies import Backend
from switchgnn.training.worker import TrainTask

# By how many seconds workers may be apart. The command itself sees that a process has ended, or
# does nothing any more.
SKEW = 180.0
# Strategies, and a plan that was made with them.
Planned = tuple[Choice, Plan]


@dataclass(frozen=True)
class TrainJob:
    """What to train, where, and over which transport.

    Attributes:
        task: the options that are the same for all workers; the worker, its link, addresses
            and files are filled in later.
        workers: their number.
        slots: the aggregators that a block may use.
        recordings: the files that keep the packets of the links, if any do.
        leaf_spine: the leaves that the workers are attached to, and the spines; None: a star
            around one switch.
        target, fabric: a choice or ``auto``.
        backend: what embedded switches run the program as; None: what the environment says.
        bandwidth: Mbit/s per link, or None.
        ecn_threshold: the queue length in packets from which packets are marked.
        background: TCP flows from each worker to the next.
        asked: the strategies to plan with. Over transports other than ``switch`` only the
            partition counts, and for ``g3`` it is G3's unless another is asked for by name.
        metrics: the address and the port where worker 0 serves metrics; None: nobody does.
        planned: a plan that was made already, and its strategies.
    """

    task: TrainTask
    workers: int
    slots: int
    target: str
    fabric: str
    bandwidth: float | None
    ecn_threshold: int
    background: int = 0
    asked: Asked = field(default_factory=Asked)
    leaf_spine: LeafSpine | None = None
    backend: Backend | None = None
    recordings: Recordings = field(default_factory=Recordings)
    metrics: tuple[str, int] | None = None
    planned: Planned | None = None

    @property
    def transport(self) -> TransportKind:
        """The transport of the task.

        Raises:
            TransportError: there is none of that name.
        """
        return transport_kind(self.task.transport)

    @property
    def framing(self) -> Framing | None:
        """What frames between hosts carry; None over a transport that has none."""
        return Framing.parse(self.task.mtu) if self.transport.between_hosts else None

    @property
    def program(self) -> Program:
        """The program of the switches; SwitchGNN's also forwards what it does not add up."""
        return (
            load_strawman() if self.transport.program is SwitchProgram.STRAWMAN else load_program()
        )

    @property
    def situation(self) -> Situation:
        """The facts by which strategies are chosen."""
        return Situation(self.workers, self.slots, leaf_spine=self.leaf_spine)


def default_task(**changes: Any) -> TrainTask:  # noqa: ANN401
    """Return a task whose worker, transport, files and addresses are still to be filled in."""
    nobody = Station("00:00:00:00:00:00", "0.0.0.0")  # noqa: S104
    nowhere = Addresses(nobody, nobody)
    fields = {
        **{"worker": 0, "partitions": Path(), "transport": "", "link": ""},
        **{"pace": Pace(), "addresses": nowhere},
    }
    return TrainTask(**{**fields, **changes})
