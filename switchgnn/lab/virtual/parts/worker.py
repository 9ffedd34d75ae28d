# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker in virtual time: the real exchange, round after round."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.innetwork.exchange import InNetworkExchange
from switchgnn.host.pace import Pace
from switchgnn.host.wire.header import VERSION
from switchgnn.lab.virtual.network import OtherVersionLink, VirtualLink, Wire
from switchgnn.lab.virtual.subject import PlannedSubject
from switchgnn.lab.virtual.timing import SECOND, Scheduler, Task, Trace, VirtualClock
from switchgnn.planner.direction import Direction
from switchgnn.planner.plan.plan import Plan

# The most nanoseconds that a worker takes to wake.
_WAKES = 60_000
# The most nanoseconds of computation between two rounds.
_COMPUTES = 3_000_000
Round = tuple[NDArray[np.float32], Direction]


@dataclass(frozen=True, eq=False)
class Done:
    """One exchange of one worker.

    Attributes:
        round: the exchange, from 1.
        opened: the round of the protocol, a later one if rounds before were void.
        values: int32[n, F], the sums as integers.
        magnitude: of their scale: the largest one of the round, or a foreseen one.
    """

    worker: int
    session: int
    round: int
    values: NDArray[np.int32]
    magnitude: float
    opened: int


@dataclass(frozen=True)
class ExchangeJob:
    """The job of workers in a session.

    Attributes:
        rounds: float32[V, F] and the direction of each exchange.
        version: of the protocol.
    """

    session: int
    rounds: tuple[Round, ...]
    pace: Pace
    plan: Plan
    version: int = VERSION


class Listener(Protocol):
    """Observes the frames that workers take."""

    def heard(self, worker: "VirtualWorker", frames: list[bytes]) -> None:
        """Note frames that arrive at a worker."""


class VirtualWorker:
    """A worker, with a new process in each session.

    Attributes:
        up: takes its frames.
        exchange, task: of its process; None before the first one.
        incarnation: of its process; 0 before the first one.
        killed: whether it was killed in this session.
    """

    def __init__(
        self,
        number: int,
        subject: PlannedSubject,
        scheduler: Scheduler,
        trace: Trace,
        random: Random,
    ) -> None:
        self.number = number
        self.name = f"w{number}"
        self.up: Wire
        self.clock = VirtualClock(scheduler)
        self.exchange: InNetworkExchange | None = None
        self.task: Task | None = None
        self.incarnation = 0
        self.killed = False
        self.onlookers: list[Listener] = []
        self._subject = subject
        self._scheduler = scheduler
        self._trace = trace
        self._random = random
        self._link: VirtualLink | None = None
        self._start: Callable[[], None] | None = None
        self._ended: Callable[[], None] | None = None

    def arrive(self, frames: list[bytes]) -> None:
        """Take frames for the worker."""
        for onlooker in self.onlookers:
            onlooker.heard(self, frames)
        if self._link is not None:
            self._link.arrive(frames)

    def begin(
        self, job: ExchangeJob, done: Callable[[Done], None], ended: Callable[[], None]
    ) -> None:
        """Start a process."""

        def work(task: Task) -> None:
            try:
                self._work(task, job, done)
            except Exception as error:
                self._trace.note(self.name, f"gives up: {type(error).__name__}: {error}")
                raise
            finally:
                if not self.killed:
                    self._scheduler.after(0, ended)

        def start() -> None:
            self.killed = False
            self.task = Task(self._scheduler, self.name, work)
            self._link = self._new_link(self.task, job.version)
            self.task.start(int(_COMPUTES * self._random.random()))

        self._start, self._ended = start, ended
        start()

    def _new_link(self, task: Task, version: int) -> VirtualLink:
        kind = VirtualLink if version == VERSION else OtherVersionLink
        link = kind(f"virtual:{self.name}", task, self.up, self._random, _WAKES)
        if isinstance(link, OtherVersionLink):
            link.version = version
        return link

    def kill(self) -> bool:
        """Kill its process; return whether there was one."""
        if not self._end():
            return False
        if self._ended is not None:
            self._scheduler.after(0, self._ended)
        return True

    def restart(self, seconds: float) -> None:
        """End its process, and start another one some seconds later, with round 1."""
        if self._end() and self._start is not None:
            self._scheduler.after(int(seconds * SECOND), self._start)

    def _end(self) -> bool:
        if self.task is None or self.task.ended:
            return False
        self.killed = True
        self._trace.note(self.name, "is killed")
        self.task.kill()
        self.close()
        return True

    def stand_still(self, seconds: float) -> None:
        """Suspend its process for some seconds."""
        if self.task is not None:
            self._trace.note(self.name, f"stands still for {seconds:g} s")
            self.task.stand_still(seconds)

    def close(self) -> None:
        """Stop receiving."""
        if self._link is not None:
            self._link.close()

    def _work(self, task: Task, job: ExchangeJob, done: Callable[[Done], None]) -> None:
        link = self._link
        if link is None:
            return
        part = job.plan.workers[self.number]
        self.incarnation = self._random.getrandbits(32)
        exchange = self.exchange = InNetworkExchange(
            job.plan.manifest,
            part,
            link,
            self._subject.site.addresses(self.number),
            session=job.session,
            pace=job.pace,
            clock=self.clock,
            incarnation=self.incarnation,
        )
        for number, (features, direction) in enumerate(job.rounds, 1):
            result = exchange.aggregate_fixed(features[part.vertices], direction)
            self._trace.note(self.name, f"has round {number}")
            magnitude, opened = result.fixed_point.magnitude, number + exchange.counters.void
            done(Done(self.number, job.session, number, result.values, magnitude, opened))
            task.sleep(int(_COMPUTES * self._random.random()))
        link.close()
