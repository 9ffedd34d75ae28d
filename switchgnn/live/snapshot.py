# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""All that is known of a run at one moment, as the page gets it. None stands for: not told."""

from dataclasses import dataclass
from enum import Enum

import msgspec


class State(str, Enum):
    """What a worker does."""

    STARTING = "starting"
    COMPUTING = "computing"
    EXCHANGING = "exchanging"
    WAITING = "waiting"
    SILENT = "silent"
    FINISHED = "finished"
    UNTOLD = "untold"


class Outcome(str, Enum):
    """How a run has ended."""

    DONE = "done"
    WRONG = "wrong"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class WorkerPlace:
    """Where a worker is.

    Attributes:
        switch: the place of its switch among the switches.
        port: of that switch.
        told: whether it says how it is, or has nowhere to say it.
    """

    switch: int
    port: int
    told: bool = True


@dataclass(frozen=True)
class SwitchPlace:
    """A switch of the picture.

    Attributes:
        name: as its log has it.
        tier: 0 where workers are attached, 1 above.
    """

    name: str
    tier: int


@dataclass(frozen=True)
class CablePlace:
    """A link between two switches, by their places."""

    name: str
    lower: int
    upper: int


@dataclass(frozen=True)
class Picture:
    """What does not change while one exchange after the other is made.

    Attributes:
        transport: what carries the sums.
        ran_on: the network and the switch, in words.
        target: which switch.
        workers, switches, cables: what there is, in order.
        steps: fragments of blocks that each worker has to do; 0: unknown.
        no_slots: what stands in the place of slots in use where they are not told.
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
        bytes_up, bytes_down: that have passed.
        rate_up, rate_down: bytes per second, lately.
        waiting_up, waiting_down: bytes that have come to the upper or the lower end, and that
            its program has not taken yet.
        lost: frames that were lost on purpose.
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
        state: what it does.
        waited: the share of the last interval in which others were not as far.
        rounds, blocks: exchanges, and fragments of blocks, that are complete.
        window: features that may be in flight.
        recalls: late sums that it has asked for, lost or not.
        fetches, resent: features that it has asked others for, and that it has sent again.
        repairing: whether one of these three has just grown.
        link: its link.
    """

    state: State
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
    """The queues that packets have found at the ports of a switch in the last interval.

    Attributes:
        packets: how many have left.
        mean, longest: packets that they found before them.
    """

    packets: int
    mean: float
    longest: int


@dataclass(frozen=True)
class SwitchNow:
    """A switch.

    Attributes:
        up: whether it answers; None: it was not asked yet.
        session: the install that it serves.
        frames, contributions, completed: that it has taken, added, and sums that it has made.
        recalled, fetched: requests of workers that it has passed.
        marked: packets that were marked for congestion.
        slots_used, slots_seen: slots with contributions to the newest block, of those that were
            looked at.
        slots: that the plan may use.
        queue: what packets have found lately.
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
class Point:
    """What charts show of one moment; all numbers are since the beginning.

    Attributes:
        seconds: since the run began.
        blocks: of each worker.
        recalls, fetches, lost: of all together.
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
    """How a run has ended, and that in words."""

    outcome: Outcome
    words: str


@dataclass(frozen=True)
class Snapshot:
    """All of it.

    Attributes:
        number: snapshots are counted.
        seconds: since the run began.
        title: what runs.
        step: what is being done.
        picture: None before there is a network.
        workers, switches, cables: in the order of the picture.
        points, epochs: for charts; of long runs some are left out, evenly.
        epochs_asked: how many there are to be.
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
    points: tuple[Point, ...]
    epochs: tuple[Epoch, ...]
    epochs_asked: int
    ended: Ending | None

    def to_json(self) -> bytes:
        """Return it as one line of JSON."""
        return msgspec.json.encode(self)
