# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What `switchgnn train` trains, and where."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from switchgnn.base.network import Station
from switchgnn.commands.shared.outputs import Recordings
from switchgnn.commands.shared.runner import NetworkJob
from switchgnn.host.direct.framing import Framing
from switchgnn.host.pace import Pace
from switchgnn.host.registry import SwitchProgram, TransportKind, transport_kind
from switchgnn.host.wire.addresses import Addresses
from switchgnn.p4src import Program, load_program, load_strawman
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.presets import Choice, Situation
from switchgnn.training.worker import TrainTask

# The longest time in seconds between workers. The command itself notices dead or stuck processes.
SKEW = 180.0
# Strategies, and a plan that was made with them.
Planned = tuple[Choice, Plan]


@dataclass(frozen=True, kw_only=True)
class TrainJob(NetworkJob):
    """What to train, where, and over which transport.

    Over transports other than ``switch`` only the partition of `asked` counts, and for ``g3`` it
    is G3's unless another is asked for by name.

    Attributes:
        task: the options that are the same for all workers; the worker, its link, addresses
            and files are filled in later.
        recordings: the files that keep the packets of the links.
        planned: a plan that exists already, and its strategies.
    """

    task: TrainTask
    recordings: Recordings = field(default_factory=Recordings)
    planned: Planned | None = None

    @property
    def transport(self) -> TransportKind:
        """The transport of the task."""
        return transport_kind(self.task.transport)

    @property
    def framing(self) -> Framing | None:
        """The frames between hosts; None over other transports."""
        return Framing.parse(self.task.mtu) if self.transport.between_hosts else None

    @property
    def program(self) -> Program:
        """The program of the switches; SwitchGNN's also forwards other frames."""
        return (
            load_strawman() if self.transport.program is SwitchProgram.STRAWMAN else load_program()
        )

    @property
    def situation(self) -> Situation:
        """The facts that strategies depend on."""
        return Situation(self.workers, self.slots, leaf_spine=self.leaf_spine)


def default_task(**changes: Any) -> TrainTask:  # noqa: ANN401
    """Return a task without a worker, transport, files and addresses."""
    nobody = Station("00:00:00:00:00:00", "0.0.0.0")  # noqa: S104
    nowhere = Addresses(nobody, nobody)
    fields = {
        **{"worker": 0, "partitions": Path(), "transport": "", "link": ""},
        **{"pace": Pace(), "addresses": nowhere},
    }
    return TrainTask(**{**fields, **changes})
