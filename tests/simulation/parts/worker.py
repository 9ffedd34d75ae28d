"""A worker in virtual time: the real exchange, round after round."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from switchgnn.host import InNetworkExchange, Pace
from switchgnn.host.base.compression import NO_COMPRESSION, Compression
from switchgnn.host.wire.header import KIND_AT, KIND_MASK, Kind
from switchgnn.planner import Direction, Plan
from tests.simulation.network import VirtualLink, Wire
from tests.simulation.parts.reducer import Reduced, ReduceJob, VirtualReducer
from tests.simulation.subject import PlannedSubject
from tests.simulation.timing import SECOND, Scheduler, Task, VirtualClock

# The most nanoseconds that a worker takes to wake.
_WAKES = 60_000
# The most nanoseconds of computation between two rounds.
_COMPUTES = 3_000_000
Round = tuple[NDArray[np.float32], Direction]
_EXCHANGES, _REDUCES = "exchanges", "all-reduces"


@dataclass(frozen=True, eq=False)
class Done:
    """One exchange of one worker."""

    worker: int
    session: int
    round: int  # the exchange, from 1
    values: NDArray[np.int32]  # int32[n, F], the sums as integers
    magnitude: float  # of their scale: the largest one of the round, or a foreseen one


@dataclass(frozen=True)
class ExchangeJob:
    """The job of workers in a session."""

    session: int
    rounds: tuple[Round, ...]  # float32[V, F] and the direction of each exchange
    pace: Pace
    plan: Plan
    compression: Compression = NO_COMPRESSION  # of all workers
    epsilon: float = 0.0  # the least relative change of a cached row that is sent


@dataclass(frozen=True)
class Reports:
    """The functions that a worker calls: after each exchange and all-reduce, and at its end."""

    done: Callable[[Done], None]
    reduced: Callable[[Reduced], None]
    ended: Callable[[], None]


def _is_of_reduces(frame: bytes) -> bool:
    """Return whether a frame belongs to all-reduces, as the hosts' split of a link decides."""
    return len(frame) > KIND_AT and frame[KIND_AT] & KIND_MASK >= Kind.REDUCE


class VirtualWorker:
    """A worker, with a new process in each session."""

    def __init__(
        self, number: int, name: str, subject: PlannedSubject, scheduler: Scheduler, random: Random
    ) -> None:
        self.number = number
        self.name = name
        self.up: Wire  # takes its frames
        self.clock = VirtualClock(scheduler)
        # of its process; None before the first one
        self.exchange: InNetworkExchange | None = None
        self.task: Task | None = None
        # of the first process of the session; None if there are no all-reduces
        self.reducer: VirtualReducer | None = None
        self.killed = False  # in this session
        self._subject = subject
        self._scheduler = scheduler
        self._random = random
        self._link: VirtualLink | None = None
        self._start: Callable[[], None] | None = None
        self._ended: Callable[[], None] | None = None
        # What its process has not finished.
        self._unfinished: set[str] = set()

    def arrive(self, frames: list[bytes]) -> None:
        if self.reducer is not None:
            of_reduces = [frame for frame in frames if _is_of_reduces(frame)]
            if of_reduces:
                self.reducer.link.arrive(of_reduces)
                frames = [frame for frame in frames if not _is_of_reduces(frame)]
        if self._link is not None and frames:
            self._link.arrive(frames)

    def begin(self, job: ExchangeJob, reduces: ReduceJob | None, reports: Reports) -> None:
        """Start a process; one that takes its place later has no part in the all-reduces."""

        def start() -> None:
            self.killed = False
            self.task = self._new_task(_EXCHANGES, lambda task: self._work(task, job, reports.done))
            self._link = self._new_link(self.task)
            self.task.start(int(_COMPUTES * self._random.random()))

        self._start, self._ended = start, reports.ended
        self._unfinished = set()
        start()
        self.reducer = self._new_reducer(reduces, reports.reduced) if reduces else None
        if self.reducer is not None:
            self.reducer.task.start(int(_COMPUTES * self._random.random()))

    def _new_task(self, what: str, work: Callable[[Task], None]) -> Task:
        """Return a task of its process, which ends with the last of them."""

        def do(task: Task) -> None:
            try:
                work(task)
            except Exception as error:
                self._note(f"gives up: {type(error).__name__}: {error}")
                raise
            finally:
                if not self.killed:
                    self._scheduler.after(0, self._finished, what)

        self._unfinished.add(what)
        return Task(self._scheduler, self.name, do)

    def _finished(self, what: str) -> None:
        """Report the end of the process, unless it was killed or has more to do."""
        if what in self._unfinished:
            self._unfinished.remove(what)
            if not self._unfinished and self._ended is not None:
                self._ended()

    def _new_reducer(self, job: ReduceJob, reduced: Callable[[Reduced], None]) -> VirtualReducer:
        def work(_task: Task) -> None:
            reducer.run(self._subject.topology.addresses(self.number), reduced)

        task = self._new_task(_REDUCES, work)
        link = self._new_link(task)
        reducer = VirtualReducer(self.number, job, link, task, self.clock, random=self._random)
        return reducer

    def _note(self, what: str) -> None:
        self._scheduler.trace.note(self.name, what)

    def _new_link(self, task: Task) -> VirtualLink:
        return VirtualLink(f"virtual:{self.name}", task, self.up, self._random, _WAKES)

    def kill(self) -> bool:
        if not self._end():
            return False
        if self._ended is not None:
            self._scheduler.after(0, self._ended)
        return True

    def restart(self, seconds: float) -> None:
        """End its process, and start another one some seconds later, with round 1."""
        exchanges = self.task is not None and not self.task.ended
        if not self._end():
            return
        if exchanges and self._start is not None:
            self._scheduler.after(int(seconds * SECOND), self._start)
        elif self._ended is not None:
            self._scheduler.after(0, self._ended)

    def _end(self) -> bool:
        if all(task.ended for task in self.tasks):
            return False
        self.killed = True
        self._unfinished.clear()
        self._note("is killed")
        for task in self.tasks:
            task.kill()
        self.close()
        return True

    @property
    def tasks(self) -> list[Task]:
        reducing = [self.reducer.task] if self.reducer is not None else []
        return [*([self.task] if self.task is not None else []), *reducing]

    def stand_still(self, seconds: float) -> None:
        if self.task is not None:
            self._note(f"stands still for {seconds:g} s")
        for task in self.tasks:
            task.stand_still(seconds)

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
        if self.reducer is not None:
            self.reducer.link.close()

    def _work(self, task: Task, job: ExchangeJob, done: Callable[[Done], None]) -> None:
        link = self._link
        if link is None:
            return
        part = job.plan.workers[self.number]
        exchange = self.exchange = InNetworkExchange(
            *(job.plan.manifest, part, link, self._subject.topology.addresses(self.number)),
            session=job.session,
            pace=job.pace,
            clock=self.clock,
            incarnation=self._random.getrandbits(32),
        )
        exchange.compress(job.compression)
        exchange.epsilon = job.epsilon
        for number, (features, direction) in enumerate(job.rounds, 1):
            result = exchange.aggregate_fixed(features[part.vertices], direction)
            self._note(f"has round {number}")
            magnitude = result.fixed_point.magnitude
            done(Done(self.number, job.session, number, result.values, magnitude))
            task.sleep(int(_COMPUTES * self._random.random()))
        link.close()
