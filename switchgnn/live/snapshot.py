# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The state of a run at one moment, as the page gets it; None stands for unknown."""

from dataclasses import dataclass
from enum import Enum

import msgspec


class WorkerState(str, Enum):
    """The state of a worker."""

    STARTING = "starting"
    COMPUTING = "computing"
    EXCHANGING = "exchanging"
    WAITING = "waiting"
    SILENT = "silent"
    FINISHED = "finished"
    UNTOLD = "untold"


class JobOutcome(str, Enum):
    """The end of a run."""

    DONE = "done"
    WRONG = "wrong"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class WorkerPlace:
    """A worker of the picture.

    Attributes:
        switch: the index of its switch.
        port: of that switch.
        told: whether it serves metrics.
    """

    switch: int
    port: int
    told: bool = True


@dataclass(frozen=True)
class SwitchPlace:
    """A switch of the picture.

    Attributes:
        name: the name of its log.
        tier: 0 with workers, 1 above.
    """

    name: str
    tier: int


@dataclass(frozen=True)
class CablePlace:
    """A link between two switches, by their indices."""

    name: str
    lower: int
    upper: int


@dataclass(frozen=True)
class Picture:
    """The network of a run.

    Attributes:
        ran_on: network and switch, as text.
        target: the kind of switch, as text.
        steps: fragments of blocks per worker; 0 if unknown.
        no_slots: the text shown where used slots are unknown.
    """

    transport: str
    ran_on: str
    target: str
    workers: tuple[WorkerPlace, ...]
    switches: tuple[SwitchPlace, ...]
    cables: tuple[CablePlace, ...]
    steps: int = 0
    no_slots: str = "not told"


@dataclass(frozen=True)
class LinkNow:
    """A link of a worker, or a cable; up is away from the workers.

    Attributes:
        bytes_up, bytes_down: total bytes.
        rate_up, rate_down: bytes per second in the last interval.
        waiting_up, waiting_down: unread bytes in the receive buffer of the upper or lower end.
        lost: frames dropped by injected faults.
    """

    bytes_up: int | None = None
    bytes_down: int | None = None
    rate_up: float = 0.0
    rate_down: float = 0.0
    waiting_up: int | None = None
    waiting_down: int | None = None
    lost: int | None = None


@dataclass(frozen=True)
class WorkerNow:
    """A worker.

    Attributes:
        waited: the share of the last interval spent waiting for others.
        rounds, blocks: completed exchanges and fragments of blocks.
        window: the most features in flight.
        recalls: requests for late sums, lost or not.
        fetches, resent: features requested from others, and features sent again.
        repairing: whether one of these three grew in the last interval.
    """

    state: WorkerState
    waited: float
    rounds: int | None
    blocks: int | None
    window: float | None
    recalls: int | None
    fetches: int | None
    resent: int | None
    repairing: bool
    link: LinkNow


@dataclass(frozen=True)
class QueueNow:
    """The queues at the ports of a switch in the last interval.

    Attributes:
        packets: that left.
        mean, longest: queue lengths in packets on their arrival.
    """

    packets: int
    mean: float
    longest: int


@dataclass(frozen=True)
class SwitchNow:
    """A switch.

    Attributes:
        up: whether it answers; None before the first poll.
        session: the installed session.
        frames, contributions, completed: frames received, contributions added, sums completed.
        recalled, fetched: requests of workers that it forwarded.
        marked: packets marked for congestion.
        slots_used, slots_seen: slots in use by the newest block, of those read.
        slots: available to the plan.
    """

    up: bool | None = None
    session: int | None = None
    frames: int | None = None
    contributions: int | None = None
    completed: int | None = None
    recalled: int | None = None
    fetched: int | None = None
    marked: int | None = None
    slots_used: int | None = None
    slots_seen: int | None = None
    slots: int | None = None
    queue: QueueNow | None = None


@dataclass(frozen=True)
class ChartPoint:
    """A point of the charts, with totals since the beginning.

    Attributes:
        seconds: since the run began.
        blocks: of each worker.
        recalls, fetches, lost: of all workers together.
    """

    seconds: float
    blocks: tuple[int, ...]
    recalls: int
    fetches: int
    lost: int


@dataclass(frozen=True)
class Epoch:
    """An epoch of a training."""

    epoch: int
    loss: float
    validation: float | None


@dataclass(frozen=True)
class Ending:
    """The end of a run, with an explanation."""

    outcome: JobOutcome
    words: str


@dataclass(frozen=True)
class PageSnapshot:
    """The state of a run.

    Attributes:
        number: counts snapshots.
        seconds: since the run began.
        step: the current step, as text.
        picture: None before there is a network.
        workers, switches, cables: in the order of the picture.
        points, epochs: for charts; evenly thinned out in long runs.
        epochs_asked: planned epochs.
        ended: None while it runs.
    """

    number: int
    seconds: float
    title: str
    step: str
    picture: Picture | None
    workers: tuple[WorkerNow, ...]
    switches: tuple[SwitchNow, ...]
    cables: tuple[LinkNow, ...]
    points: tuple[ChartPoint, ...]
    epochs: tuple[Epoch, ...]
    epochs_asked: int
    ended: Ending | None

    def to_json(self) -> bytes:
        """Return it as one line of JSON."""
        return msgspec.json.encode(self)
