# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What the scenarios of the matrix have in common, and a witness of what happens in them."""

from collections import Counter
from dataclasses import asdict, replace
from random import Random
from unittest import mock

import pytest

from tests.simulation.checks import all_checks
from tests.simulation.checks.check import SwitchCheck
from tests.simulation.scenario import Fault, FaultKind, Scenario
from tests.simulation.timing import SECOND

# As on running switches, in tests/recovery.
STAR = Scenario(seed=1, graph="karate", workers=4, slots=16, width=33, rounds=3, patience=30.0)
LEAF_SPINE = replace(STAR, leaves=2, spines=2)
SCENES = [pytest.param(STAR, id="star"), pytest.param(LEAF_SPINE, id="leaf-spine")]
on_each_topology = pytest.mark.parametrize("scene", SCENES)
SENDS = ("multicast", "cover")
# More than any line takes.
_FRAMES = 2_000
_SECOND = 1_000_000_000
_LONGEST_HEADER = 100


def faults_on(lines, rates, seed):
    """Draw what happens to single frames of some lines, and of no others.

    Args:
        lines: like `w2.up`.
        rates: the probability of each kind of fault.
        seed: where it is drawn from.
    """
    random = Random(repr((sorted(lines), rates, seed)))
    return tuple(
        _fault(random, kind, line, frame)
        for line in lines
        for frame in range(1, _FRAMES + 1)
        for kind in _drawn(random, rates)
    )


def _drawn(random, rates):
    draw = random.random()
    for kind, rate in rates.items():
        if draw < rate:
            return [FaultKind(kind)]
        draw -= rate
    return []


def _fault(random, kind, line, frame):
    delay = random.randrange(_SECOND // 10) if kind is FaultKind.REORDER else 0
    bits = (random.randrange(8 * _LONGEST_HEADER),) if kind is FaultKind.CORRUPT else ()
    return Fault(kind, line, frame, delay, bits)


class Witness(SwitchCheck):
    """Looks at a scene beside the checks; each list has one item for each session.

    Attributes:
        began: behind which event workers began.
        watched_from: behind which event a frame has found the controller watching; None: never.
        counters: those of all workers, added up.
        errors: how workers ended that gave up, by worker.
        ended: when they ended, in virtual seconds, by worker.
        done_at: behind which event a worker had done a round, by worker and round.
        times: when incidents happened, in virtual seconds.
    """

    def begin(self, scene):
        super().begin(scene)
        self.began, self.done_at = [], []
        self.counters, self.errors, self.ended = [], [], []
        self.watched_from = None

    def session_begins(self):
        self.began.append(self.scene.scheduler.events)
        self.done_at.append({})

    def taken(self, switch, port, frames):
        if self.watched_from is None and self.scene.controller.watching:
            self.watched_from = self.scene.scheduler.events

    def done(self, done):
        self.done_at[-1][done.worker, done.round] = self.scene.scheduler.events

    def session_ends(self):
        workers = [worker for worker in self.scene.workers if worker.exchange]
        counters = [asdict(worker.exchange.counters) for worker in workers]
        self.counters.append(sum(map(Counter, counters), Counter()))
        tasks = {worker.number: worker.task for worker in self.scene.workers if worker.task}
        self.errors.append({number: task.error for number, task in tasks.items() if task.error})
        self.ended.append({number: _in_seconds(task.ended_at) for number, task in tasks.items()})

    @property
    def times(self):
        return [_in_seconds(time) for time, _ in self.scene.happened]


def _in_seconds(nanoseconds):
    return nanoseconds / SECOND


def watched(soak, scenario, *, beside=(), leaves_out=()):
    """Run a scenario with all checks and a witness.

    Args:
        soak: runs it.
        scenario: what happens.
        beside: checks that look, or meddle, besides.
        leaves_out: classes of checks that do not fit what is tested.

    Returns:
        The outcome, in which all is as it must be, and the witness.
    """
    witness = Witness()

    def checks():
        kept = [check for check in all_checks() if not isinstance(check, leaves_out)]
        return [*kept, *beside, witness]

    with mock.patch("tests.simulation.run.all_checks", checks):
        outcome = soak.run(scenario)
    assert outcome.violations == (), outcome.violations
    return outcome, witness
