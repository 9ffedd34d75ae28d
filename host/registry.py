"""All transports and their properties.

A new transport is a module that opens it, and an entry here. Nothing else compares names.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TypedDict

import numpy as np

from switchgnn.base.array_types import Float32s, Int32s
from switchgnn.base.names import no_such
from switchgnn.host.base.errors import TransportError
from switchgnn.host.base.operations import SUM, Operation
from switchgnn.host.direct import kinds
from switchgnn.host.direct.schedule import EdgeChoice
from switchgnn.host.direct.transport import open_direct
from switchgnn.host.links.transport import Transport, WorkerEnd, check_rows
from switchgnn.host.paths.edges import write_edges
from switchgnn.host.paths.transport import open_in_network, open_switch
from switchgnn.host.strawman import StrawmanExchange
from switchgnn.planner import Direction, Graph, Plan
from switchgnn.planner.plan.manifest import STRAWMAN as STRAWMAN_BLOCKS
from switchgnn.planner.sending.between_hosts import fewest_rows


class LocalTransport(Transport):
    """Sums over no remote neighbours: zeros."""

    def __init__(self, vertices: int, workers: int = 1) -> None:
        if workers != 1:
            raise TransportError(
                f"The transport local is for one worker, but there are {workers}: "
                "take host, host-partial or switch."
            )
        self._vertices = vertices

    def aggregate(
        self, rows: Float32s, _direction: Direction, _tensor_id: int = 0, operation: Operation = SUM
    ) -> Float32s:
        """Return float32[n, F] for vertices without remote neighbours; see ``Transport``."""
        check_rows(rows, self._vertices, 0)
        return np.full_like(rows, operation.rule.nothing)


@contextmanager
def open_local(end: WorkerEnd) -> Iterator[LocalTransport]:
    """Open the transport `local`."""
    end.compression.refuse("local", "leave out the options of compression")
    yield LocalTransport(end.vertices, end.workers)


Opener = Callable[[WorkerEnd], AbstractContextManager[Transport]]
# Called with the graph, the worker of each vertex as int32[V], and one file per worker.
ScheduleWriter = Callable[[Graph, Int32s, Sequence[Path]], None]
# Called with the graph, its plan, and one file per worker.
EdgeWriter = Callable[[Graph, Plan, Sequence[Path]], None]


class FixedStrategies(TypedDict, total=False):
    """Strategies of a transport's plan that a user cannot choose."""

    blocks: str
    order: str


class SwitchProgram(Enum):
    """A P4 program that adds features up."""

    SWITCHGNN = "switchgnn"
    STRAWMAN = "strawman"


@dataclass(frozen=True)
class TransportKind:
    """One way to get the sums over remote neighbours."""

    name: str  # The name in `--transport` and reports.
    label: str  # The name in plots.
    colour: str  # In plots, one of the cycle's ten, `C0` to `C9`.
    help: str  # What it does, to follow its name.
    open: Opener  # Opens a worker's end; the link is closed with it.
    # The P4 program that adds features up; workers then read their part of its plan. None: the
    # switch only forwards frames between the hosts, or there is none.
    program: SwitchProgram | None = None
    networked: bool = True  # Whether there is a network; without one there is one worker.
    # Strategies of the plan that replace those of the preset `paper`, which has the others; a user
    # can choose only the partition. None: the user's choices apply.
    strategies: FixedStrategies | None = None
    partition: str | None = None  # The default partition; None: as for `--strategy`.
    # Writes the rows that workers send each other; None if the plan is enough.
    write_schedules: ScheduleWriter | None = None
    # Writes the edges between workers, along which hosts send rows for the destinations that a plan
    # leaves to them, and on other paths; None: the switch makes all sums.
    write_edges: EdgeWriter | None = None
    # Chooses the edges that copies serve; reports of others predict its traffic. None: they do not.
    by_copy: EdgeChoice | None = None
    samples: bool = False  # Whether a share of the rows may be sent instead of all.
    copies: bool = False  # Whether workers can get the rows themselves that are summed.
    compresses: bool = False  # Whether rows may be sent in fewer bytes, see `Compression`.
    # Whether rows are sent bin by bin, which needs all rows of a bin, on the CPU.
    binned: bool = False
    # Whether the fastest of some others takes its place, once data, model and network are known.
    predicted: bool = False

    @property
    def in_switch(self) -> bool:
        """Whether the switch adds up as SwitchGNN does, so that it can add up gradients, too."""
        return self.program is SwitchProgram.SWITCHGNN

    @property
    def needs_plan(self) -> bool:
        """Whether workers read a plan."""
        return self.program is not None

    @property
    def between_hosts(self) -> bool:
        """Whether workers send rows to each other, which the switch only forwards."""
        return self.write_schedules is not None

    def write(
        self, graph: Graph, plan: Plan, paths: Sequence[Path], *, adapts: bool = False
    ) -> bool:
        """Write what workers need to send each other rows, to a file each; return whether any do.

        `adapts`: sums may be left to the hosts later; see ``PathsTransport``.
        """
        if self.write_schedules is not None:
            self.write_schedules(graph, plan.assignment, paths)
        elif self.write_edges is not None and (adapts or plan.leaves_any):
            self.write_edges(graph, plan, paths)
        else:
            return False
        return True


_PARTITION_ONLY: FixedStrategies = {}

SWITCH = TransportKind(
    name="switch",
    label="SwitchGNN",
    colour="C0",
    help="the switch multicasts and adds up",
    open=open_switch,
    program=SwitchProgram.SWITCHGNN,
    write_edges=write_edges,
    samples=True,
    compresses=True,
)
SWITCH_PAPER = replace(
    SWITCH,
    name="switch-paper",
    label="SwitchGNN, the paper's plan",
    colour="C5",
    help="the same with the paper's plan, whatever --strategy says, to compare with",
    strategies=_PARTITION_ONLY,
    write_edges=None,
)
HOST = TransportKind(
    name="host",
    label="BNS-GCN",
    colour="C1",
    help="each worker sends copies to the others, as in BNS-GCN",
    open=open_direct,
    strategies=_PARTITION_ONLY,
    write_schedules=partial(kinds.write_schedules, choose=kinds.copy_schedules),
    by_copy=kinds.copies,
    samples=True,
    copies=True,
    compresses=True,
)
HOST_PARTIAL = TransportKind(
    name="host-partial",
    label="copies or partial sums",
    colour="C2",
    help="copies or partial sums between workers, whichever are fewer",
    open=open_direct,
    strategies=_PARTITION_ONLY,
    write_schedules=partial(kinds.write_schedules, choose=kinds.partial_schedules),
    by_copy=fewest_rows,
    compresses=True,
)
G3 = TransportKind(
    name="g3",
    label="G3",
    colour="C3",
    help="copies between workers, bin by bin while others are computed",
    open=kinds.open_binned,
    strategies=_PARTITION_ONLY,
    partition="g3",
    write_schedules=partial(kinds.write_schedules, choose=kinds.binned_schedules),
    binned=True,
)
STRAWMAN = TransportKind(
    name="strawman",
    label="Straw",
    colour="C4",
    help="the switch adds up without blocks and order",
    open=partial(open_in_network, kind=StrawmanExchange),
    program=SwitchProgram.STRAWMAN,
    strategies={"blocks": STRAWMAN_BLOCKS, "order": "random"},
)
LOCAL = TransportKind(
    name="local",
    label="one process",
    colour="C7",
    help="one process, without a network",
    open=open_local,
    networked=False,
    copies=True,
)

TRANSPORTS = (SWITCH, SWITCH_PAPER, HOST, HOST_PARTIAL, G3, STRAWMAN, LOCAL)
AUTO = replace(
    SWITCH,
    name="auto",
    help="of switch, host-partial and host the one predicted to be the fastest",
    samples=False,
    predicted=True,
)
DEFAULT = AUTO
# A job has one plan, `switch-paper` and the strawman have their own, and `local` one worker.
OF_JOBS = (*(each for each in TRANSPORTS if each is SWITCH or each.between_hosts), AUTO)


def transport_kind(name: str, among: Sequence[TransportKind] = TRANSPORTS) -> TransportKind:
    """Return the transport of a name."""
    known = {each.name: each for each in among}
    if name not in known:
        raise TransportError(no_such("transport", name, known))
    return known[name]
