# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What each worker of a scenario does: all the same, but for those that were started otherwise."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from switchgnn.errors import SwitchGNNError
from switchgnn.host.wire.header import LANES, VERSION
from switchgnn.planner.direction import Direction
from switchgnn.virtual.parts.worker import Job, Round
from switchgnn.virtual.scenario.scenario import Difference, DifferenceKind, Scenario
from switchgnn.virtual.subject import Subjects

_VERSIONS = 16
# What is in the columns that others do not have.
_IN_MORE = 0.5


class DifferenceError(SwitchGNNError):
    """A scenario lets somebody differ who is not there, or in a way that cannot be."""


class Jobs:
    """Hands out jobs.

    Args:
        scenario: says who differs.
        subjects: makes plans.

    Raises:
        DifferenceError: somebody differs who is not there, or twice.
    """

    def __init__(self, scenario: Scenario, subjects: Subjects) -> None:
        self._scenario = scenario
        self._subjects = subjects
        self._differences = {each.worker: each for each in scenario.differences}
        there = range(scenario.workers)
        if len(self._differences) < len(scenario.differences) or any(
            worker not in there for worker in self._differences
        ):
            raise DifferenceError(
                f"Workers {', '.join(str(each.worker) for each in scenario.differences)} differ: "
                f"name each once, from 0 to {scenario.workers - 1}."
            )

    def of(self, worker: int, job: Job) -> Job:
        """Return what a worker does where the others do a job."""
        difference = self._differences.get(worker)
        return job if difference is None else self._other(job, difference)

    def _other(self, job: Job, difference: Difference) -> Job:
        kind, by = difference.kind, difference.by
        if kind is DifferenceKind.SESSION:
            return replace(job, session=job.session + (by if job.session + by > 0 else 1))
        if kind is DifferenceKind.PLAN:
            more = replace(self._scenario, workers=self._scenario.workers + max(1, by))
            return replace(job, plan=self._subjects.of(more).plan)
        if kind is DifferenceKind.VERSION:
            return replace(job, version=(VERSION + by) % _VERSIONS)
        if kind is DifferenceKind.ROUNDS:
            return replace(job, rounds=_as_many(job.rounds, max(0, len(job.rounds) + by)))
        return replace(job, rounds=tuple(_otherwise(job.rounds, kind, by)))


def _as_many(rounds: tuple[Round, ...], number: int) -> tuple[Round, ...]:
    return tuple(rounds[place % len(rounds)] for place in range(number))


def _otherwise(rounds: tuple[Round, ...], kind: DifferenceKind, by: int) -> Iterator[Round]:
    """Yield rounds with more columns, or in the other direction."""
    for features, direction in rounds:
        if kind is DifferenceKind.WIDTH:
            rest = -features.shape[1] % LANES
            more = np.full((len(features), rest + LANES * max(1, by)), _IN_MORE, dtype=np.float32)
            more[:, :rest] = 0.0
            yield np.hstack([features, more]), direction
        elif direction is Direction.FORWARD:
            yield features, Direction.BACKWARD
        else:
            yield features, Direction.FORWARD
