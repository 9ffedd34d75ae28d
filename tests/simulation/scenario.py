"""A scenario: the exchanges, the network, and the faults, as docs/reliability.md lists them."""

import json
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import read_bounded
from switchgnn.base.records import RecordError, make_record


@dataclass(frozen=True)
class IncidentRates:
    """Probabilities of faults per frame, in one direction of a line; see `FaultKind`."""

    loss: float = 0.0
    duplicate: float = 0.0
    late: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0


class IncidentKind(str, Enum):
    """The kind of an incident."""

    SILENCE = "silence"
    STOP = "stop"
    KILL = "kill"
    RESTART = "restart"
    TEAR = "tear"
    PARTITION = "partition"
    SPILL = "spill"
    JUMP = "jump"
    REMOVE = "remove"
    BYZANTINE = "byzantine"


@dataclass(frozen=True)
class Incident:
    """Something that happens once."""

    kind: IncidentKind
    # a line like `w3`, `w3.up`, `l0s1.down`; a worker like `w3`; a switch like `s0`; or
    # `controller`, which ends and comes back, after REMOVE to remove the job first
    where: str
    event: int  # it happens after this many events of the scenario
    seconds: float = 0.0  # duration or distance

    @property
    def ends_worker(self) -> bool:
        restarted = self.kind is IncidentKind.RESTART and self.where.startswith("w")
        return restarted or self.kind is IncidentKind.KILL

    @property
    def restarts_switch(self) -> bool:
        restarted = self.kind is IncidentKind.RESTART and self.where.startswith("s")
        return restarted or self.kind is IncidentKind.TEAR


class FaultKind(str, Enum):
    """The fault of a frame; LATE: it arrives once more, REORDER: it arrives later than others."""

    LOSS = "loss"
    DUPLICATE = "duplicate"
    LATE = "late"
    REORDER = "reorder"
    CORRUPT = "corrupt"


@dataclass(frozen=True)
class Fault:
    """A fault of one frame."""

    kind: FaultKind
    line: str  # the line and the direction, like `w3.up` or `l0s1.down`
    frame: int  # its number on the line, from 1, without frames lost in a silence
    delay: int = 0  # LATE, REORDER: nanoseconds
    bits: tuple[int, ...] = ()  # CORRUPT: the changed ones, from the first one of the frame


class TensorKind(str, Enum):
    """The type of a tensor, and whether its sums are divided by the number of workers."""

    INT32 = "int32"
    FLOAT32 = "float32"
    AVERAGE = "average"


@dataclass(frozen=True)
class Tensor:
    """The tensors of all workers for one all-reduce."""

    elements: int
    kind: TensorKind = TensorKind.INT32
    # 0: it is submitted together with the one before. Otherwise each worker waits for those before,
    # and then computes for up to that many seconds.
    pause: float = 0.0


@dataclass(frozen=True)
class Scenario:
    """The input of a run."""

    seed: int  # of all random draws of the run
    graph: str = "random:60:150:1"  # as `switchgnn plan` takes it
    workers: int = 3
    # leaves, spines: their numbers; no leaves: a star around one switch
    leaves: int = 0
    spines: int = 0
    # slots, pools, send, directions: options of the plan
    slots: int = 64
    pools: int = 1
    send: str = "multicast"
    partition: str | None = None  # a vertex cut, which replaces `send`; None: edges are cut
    directions: str = "forward"
    lanes: int = 32  # numbers of the widest frame, as a plan has them
    width: int = 32  # columns of the features
    rounds: int = 2  # exchanges of each session; if the plan has both directions, they take turns
    surges: float = 0.0  # the share of exchanges with much larger features of one vertex
    sessions: int = 1  # installs of the plan, each with new workers
    # window, patience: of the workers
    window: int = 16
    patience: float = 20.0
    backend: str = "auto"  # `native`, `python`, or `auto`: native code where a compiler is there
    # queue_depth, queue_rate: of the switches' ports, in packets and packets per second; no rate:
    # no limit
    queue_depth: int = 64
    queue_rate: float = 0.0
    turns: int = 0  # recirculated packets that a switch processes before others; 0: all
    # latency, jitter: microseconds over a line, and the most that is added at random
    latency: int = 50
    jitter: int = 20
    # up, down: rates of frames from workers and to them
    up: IncidentRates = IncidentRates()
    down: IncidentRates = IncidentRates()
    cables: IncidentRates = IncidentRates()  # rates between leaves and spines, in both directions
    faults: tuple[Fault, ...] = ()  # of single frames, instead of rates
    incidents: tuple[Incident, ...] = ()  # in the order of their events
    reduces: tuple[Tensor, ...] = ()  # all-reduces of each session, beside its exchanges
    bits: int = 32  # of a number, 32, 16 or 8
    # whether workers send changes of rows that have changed by more than a share epsilon
    cache: bool = False
    epsilon: float = 0.0
    rows: int = 1  # of a frame; only results are checked if there are more
    # a job beside this one on switch 0, a star of other workers: it has one session, the same
    # switch and latency, and only the incidents of these
    second: "Scenario | None" = None
    second_first: bool = False  # whether it is installed before this one
    port: int = 1  # of worker 0 of a star

    @property
    def switches(self) -> int:
        """How many switches there are; leaves come first."""
        return self.leaves + self.spines if self.leaves else 1

    @property
    def exchanges(self) -> int:
        return self.rounds * self.sessions


_MOST_BYTES = 64 << 20


class ScenarioError(SwitchGNNError):
    """A file that holds no scenario, or a scenario that cannot happen."""


def scenario_text(scenario: Scenario) -> str:
    return json.dumps(_plain(scenario), indent=2) + "\n"


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        given = ((each, getattr(value, each.name)) for each in fields(value))
        return {each.name: _plain(here) for each, here in given if here != each.default}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def read_scenario(given: str | Path) -> Scenario:
    in_words = isinstance(given, str) and given.lstrip().startswith("{")
    try:
        text = given if in_words else read_bounded(Path(given), _MOST_BYTES)
        return make_record(Scenario, msgspec.json.decode(text))
    except (OSError, RecursionError, msgspec.DecodeError, RecordError) as error:
        where = "--scenario" if in_words else given
        raise ScenarioError(
            f"{where} holds no scenario ({error}): write one as `python -m tests.simulation` "
            "prints it with a failure."
        ) from error
