# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The jobs of workers: all the same, but for workers that were started differently."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from switchgnn.base.errors import SwitchGNNError
from switchgnn.host.wire.header import VERSION
from switchgnn.planner.direction import Direction
from tests.simulation.parts.worker import ExchangeJob, Round
from tests.simulation.scenario import Difference, DifferenceKind, Scenario
from tests.simulation.subject import Subjects

_VERSIONS = 16
# A little less than the largest float32, as features are rounded.
_LARGEST_SUM = 0.999 * float(np.finfo(np.float32).max)
# The value of additional columns.
_IN_MORE = 0.5


class DifferenceError(SwitchGNNError):
    """A scenario has a difference of a worker that does not exist, or an impossible one."""


class Jobs:
    """Hands out jobs."""

    def __init__(self, scenario: Scenario, subjects: Subjects) -> None:
        self._scenario = scenario
        self._subjects = subjects
        self._differences = {each.worker: each for each in scenario.differences}
        there = range(scenario.workers)
        if len(self._differences) < len(scenario.differences) or any(
            worker not in there for worker in self._differences
        ):
            raise DifferenceError(_not_so([each.worker for each in scenario.differences], there))

    def of(self, worker: int, job: ExchangeJob) -> ExchangeJob:
        """Return the job of a worker where the others have `job`."""
        difference = self._differences.get(worker)
        return job if difference is None else self._other(job, difference)

    def _other(self, job: ExchangeJob, difference: Difference) -> ExchangeJob:
        kind, by = difference.kind, difference.by
        if kind is DifferenceKind.SESSION:
            return replace(job, session=job.session + (by if job.session + by > 0 else 1))
        if kind is DifferenceKind.PLAN:
            more = replace(self._scenario, workers=self._scenario.workers + max(1, by))
            return replace(job, plan=self._subjects.of(more).plan)
        if kind is DifferenceKind.DIGEST:
            return replace(job, plan=self._subjects.other_than(self._scenario).plan)
        if kind is DifferenceKind.VERSION:
            return replace(job, version=(VERSION + by) % _VERSIONS)
        return replace(job, rounds=tuple(_other_rounds(job, kind, by)))


def _not_so(workers: list[int], there: range) -> str:
    """Return the error about these workers."""
    for worker in workers:
        if worker not in there:
            return f"Worker {worker} cannot differ, as it does not exist: choose 0 to {there[-1]}."
    twice = next(worker for worker in workers if workers.count(worker) > 1)
    return f"Worker {twice} has two differences: a worker differs in one way, so remove one."


def _other_rounds(job: ExchangeJob, kind: DifferenceKind, by: int) -> Iterable[Round]:
    if kind is DifferenceKind.ROUNDS:
        return _as_many(job.rounds, max(0, len(job.rounds) + by))
    if kind is DifferenceKind.MAGNITUDE:
        most = _LARGEST_SUM / max(1, job.plan.manifest.max_fan_in)
        return _enlarged(job.rounds, most * max(1, by))
    return _otherwise(job, kind, by)


def _enlarged(rounds: tuple[Round, ...], largest: float) -> Iterator[Round]:
    """Yield rounds with features of up to about that magnitude."""
    for features, direction in rounds:
        own = float(np.abs(features).max(initial=np.float32(0)))
        factor = np.float64(largest) / own if own else 1.0
        with np.errstate(over="ignore"):
            yield (features.astype(np.float64) * factor).astype(np.float32), direction


def _as_many(rounds: tuple[Round, ...], number: int) -> tuple[Round, ...]:
    return tuple(rounds[place % len(rounds)] for place in range(number))


def _otherwise(job: ExchangeJob, kind: DifferenceKind, by: int) -> Iterator[Round]:
    """Yield rounds with more columns, or in the other direction."""
    for features, direction in job.rounds:
        if kind is DifferenceKind.WIDTH:
            lanes = job.plan.manifest.lanes
            rest = -features.shape[1] % lanes
            more = np.full((len(features), rest + lanes * max(1, by)), _IN_MORE, dtype=np.float32)
            more[:, :rest] = 0.0
            yield np.hstack([features, more]), direction
        elif direction is Direction.FORWARD:
            yield features, Direction.BACKWARD
        else:
            yield features, Direction.FORWARD
