# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What an outcome does not say: tallies, errors with their types, and behind which events."""

from collections import Counter
from dataclasses import asdict
from unittest import mock

from switchgnn.lab.virtual.checks import all_checks
from switchgnn.lab.virtual.checks.check import SwitchCheck
from switchgnn.lab.virtual.timing import SECOND


class Witness(SwitchCheck):
    """Looks at a scene beside the checks; each list has one item for each session.

    Attributes:
        began: behind which event workers began.
        watched_from: behind which event a frame has found the controller watching; None: never.
        tallies: those of all workers, added up.
        errors: how workers ended that gave up, by worker.
        ended: when they ended, in virtual seconds, by worker.
        done_at: behind which event a worker had done a round, by worker and round.
        times: when incidents happened, in virtual seconds.
    """

    def begin(self, scene):
        super().begin(scene)
        self.began, self.done_at = [], []
        self.tallies, self.errors, self.ended = [], [], []
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
        tallies = [asdict(worker.exchange.tally) for worker in workers]
        self.tallies.append(sum(map(Counter, tallies), Counter()))
        tasks = {worker.number: worker.task for worker in self.scene.workers if worker.task}
        self.errors.append({number: task.error for number, task in tasks.items() if task.error})
        self.ended.append({number: _seconds(task.ended_at) for number, task in tasks.items()})

    @property
    def times(self):
        return [_seconds(time) for time, _ in self.scene.happened]


def _seconds(nanoseconds):
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

    with mock.patch("switchgnn.lab.virtual.run.all_checks", checks):
        outcome = soak.run(scenario)
    assert outcome.violations == (), outcome.violations
    return outcome, witness
