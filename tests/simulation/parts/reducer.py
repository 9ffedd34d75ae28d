"""The all-reduces of a worker in virtual time: a real stream, beside the worker's exchanges."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.host import Addresses, Pace
from switchgnn.host.innetwork.errors import ExchangeTimeoutError
from switchgnn.host.reduce.reduction import Call, Reduction
from switchgnn.host.reduce.stream import ReduceStream
from tests.simulation.network import VirtualLink
from tests.simulation.scenario import Tensor, TensorKind
from tests.simulation.timing import Task, VirtualClock

# Seconds of a step with tensors and without, as those of `Reducer`.
_WAIT, _IDLE_WAIT = 0.005, 0.1
# How many elements in a row have values of one magnitude.
_ALIKE = 4096
# Above all other values.
_PEAK = np.float32(2.0**24)
_PEAKS, _NOT_FINITE, _ZERO = 0.5, 0.1, 0.1


class Agreement:
    """The numbers that workers exchange over their process group before the first all-reduce."""

    def __init__(self, workers: int) -> None:
        self._numbers: dict[int, int] = {}
        self._workers = workers
        self._waiting: list[Task] = []

    def tell(self, worker: int, number: int, task: Task) -> None:
        """Report the number of a worker, whose task waits for the others."""
        self._numbers[worker] = number
        self._waiting.append(task)
        if not self.missing:
            for each in self._waiting:
                each.tell(0)

    @property
    def missing(self) -> list[int]:
        return [each for each in range(self._workers) if each not in self._numbers]

    @property
    def largest(self) -> int:
        return max(self._numbers.values())


@dataclass(frozen=True, eq=False)
class ReduceJob:
    """The all-reduces of all workers in a session."""

    session: int
    seed: tuple[int, ...]  # of the tensors
    tensors: tuple[Tensor, ...]
    workers: int
    pace: Pace
    plan_id: int  # the first 32 bits of the plan's digest
    agreement: Agreement
    lanes: int  # of a fragment

    def values(self, worker: int, index: int) -> NDArray[Any]:
        """Draw the tensor of a worker for one all-reduce, int32[N] or float32[N]."""
        tensor = self.tensors[index]
        shared = np.random.default_rng((*self.seed, index))
        own = np.random.default_rng((*self.seed, index, worker))
        size = tensor.elements
        if tensor.kind is TensorKind.INT32:
            return own.integers(-(2**31), 2**31, size, dtype=np.int64).astype(np.int32)
        powers = np.repeat(own.integers(-20, 20, -(-size // _ALIKE)), _ALIKE)[:size]
        values = own.standard_normal(size, dtype=np.float32) * np.exp2(powers.astype(np.float32))
        if shared.random() < _PEAKS:
            values[shared.integers(size)] = _PEAK
        if own.random() < _NOT_FINITE / self.workers:
            values[own.integers(size)] = own.choice([np.inf, -np.inf, np.nan])
        return np.zeros_like(values) if shared.random() < _ZERO else values


@dataclass(frozen=True, eq=False)
class Reduced:
    """One all-reduce of one worker."""

    worker: int
    session: int
    index: int  # its index among those of the session
    values: NDArray[Any]  # int32[N] or float32[N]


class VirtualReducer:
    """The all-reduces of one process."""

    def __init__(
        self,
        worker: int,
        job: ReduceJob,
        link: VirtualLink,
        task: Task,
        clock: VirtualClock,
        *,
        random: Random,
    ) -> None:
        self.stream: ReduceStream | None = None  # None before it begins
        self.task = task  # steps it
        self.link = link
        self._worker, self._job = worker, job
        self._clock, self._random = clock, random
        self._running: dict[int, Reduction] = {}

    def run(self, addresses: Addresses, reduced: Callable[[Reduced], None]) -> None:
        job = self._job
        stream = self.stream = ReduceStream(
            self.link,
            addresses,
            worker=self._worker,
            workers=job.workers,
            session=job.session,
            plan_id=job.plan_id,
            pace=job.pace,
            clock=self._clock,
            lanes=job.lanes,
        )
        stream.start(self._agree(stream.query().first))
        for index, tensor in enumerate(job.tensors):
            if tensor.pause:
                self._finish(stream, reduced)
                self._compute(stream, tensor.pause * self._random.random())
            average = tensor.kind is TensorKind.AVERAGE
            values = job.values(self._worker, index)
            self._running[index] = stream.submit(values, Call(average=average))
        self._finish(stream, reduced)
        self.link.close()

    def _agree(self, first: int) -> int:
        agreement, deadline = self._job.agreement, self._clock.now() + self._job.pace.timeout
        agreement.tell(self._worker, first, self.task)
        while missing := agreement.missing:
            left = deadline - self._clock.now()
            if left <= 0:
                raise ExchangeTimeoutError("The process group is not complete.", missing)
            self.task.wait(left)
        return agreement.largest

    def _compute(self, stream: ReduceStream, seconds: float) -> None:
        """Only send signs of life, and answer questions."""
        until = self._clock.now() + seconds
        while (left := until - self._clock.now()) > 0:
            stream.step(min(left, _IDLE_WAIT))

    def _finish(self, stream: ReduceStream, reduced: Callable[[Reduced], None]) -> None:
        while self._running:
            stream.step(_WAIT)
            for index in [each for each, reduction in self._running.items() if reduction.done]:
                self.task.note(f"has all-reduce {index + 1}")
                values = self._running.pop(index).result
                reduced(Reduced(self._worker, self._job.session, index, values))
