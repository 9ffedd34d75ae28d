# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker that was started otherwise than the others does not pass for one of them."""

import re

from switchgnn.virtual.checks.check import Check
from switchgnn.virtual.parts.worker import Done, VirtualWorker
from switchgnn.virtual.scenario.scenario import Difference, DifferenceKind

_OTHER_PLAN = r"holds plan \w+, the switch serves plan \w+"
_OTHER_BLOCK = "goes on with another block or fragment"
# What somebody must be told of a difference, no matter who of them; the others miss somebody.
_TOLD = {
    DifferenceKind.SESSION: re.compile("takes part in session|this worker is in session"),
    DifferenceKind.PLAN: re.compile(_OTHER_PLAN),
    DifferenceKind.DIGEST: re.compile(_OTHER_PLAN),
    DifferenceKind.MAGNITUDE: re.compile(
        "reports features of up to|has features of up to|features must be finite"
    ),
    DifferenceKind.WIDTH: re.compile(_OTHER_BLOCK),
    DifferenceKind.DIRECTION: re.compile(f"{_OTHER_BLOCK}|direction"),
    DifferenceKind.VERSION: re.compile("no answer from the switch"),
}


class DifferencesTold(Check):
    """Looks at how sessions end in which one worker differs."""

    def done(self, done: Done) -> None:
        """See that nobody has sums where somebody differs who has to be told."""
        scenario = self.scene.scenario
        if scenario.other_plan:
            self._violated_by_controller(f"worker {done.worker} has sums")
        for difference in scenario.differences:
            if self._has_to_be_told(difference):
                self._violated(difference, f"worker {done.worker} has sums")

    def session_ends(self) -> None:
        """Look who has ended with an error, and what it says."""
        scenario = self.scene.scenario
        if scenario.other_plan and not scenario.incidents:
            self._look_at_the_plan()
        for difference in scenario.differences if not scenario.incidents else ():
            if difference.kind is DifferenceKind.ROUNDS:
                self._look_for_the_missed(difference)
            elif self._has_to_be_told(difference):
                self._look_at_all(difference)

    def _has_to_be_told(self, difference: Difference) -> bool:
        """Tell whether nobody can exchange anything with one that differs so."""
        kind = difference.kind
        if kind is DifferenceKind.DIRECTION:
            return self._directions_differ()
        return kind is not DifferenceKind.ROUNDS

    def _look_at_the_plan(self) -> None:
        """See that each worker is told of the plan that the controller has installed."""
        told = _TOLD[DifferenceKind.PLAN]
        untold = [worker.name for worker in self.scene.workers if not told.search(_error(worker))]
        if untold:
            self._violated_by_controller(f"{', '.join(untold)} are not told so")

    def _violated_by_controller(self, what: str) -> None:
        self.scene.violated("differences told", f"the controller has another plan, and {what}")

    def _directions_differ(self) -> bool:
        """Tell whether another direction is another exchange: in undirected graphs it is not."""
        subject = self.scene.subject
        blocks = [subject.plan.manifest.direction(d).block_numbers for d in subject.directions]
        return len(blocks) == 1 or blocks[0] != blocks[-1]

    def _look_at_all(self, difference: Difference) -> None:
        silent = [worker.name for worker in self.scene.workers if not _error(worker)]
        if silent:
            self._violated(difference, f"{', '.join(silent)} end without an error")
        told = _TOLD[difference.kind]
        if not any(told.search(_error(worker)) for worker in self.scene.workers):
            self._violated(difference, "nobody is told so")

    def _look_for_the_missed(self, difference: Difference) -> None:
        """See that who exchanges more often than another misses it."""
        for worker in self.scene.workers:
            longer = (worker.number == difference.worker) is (difference.by > 0)
            if longer and not _error(worker):
                self._violated(difference, f"{worker.name} ends without an error")

    def _violated(self, difference: Difference, what: str) -> None:
        self.scene.violated(
            "differences told",
            f"worker {difference.worker} has another {difference.kind.value}, and {what}",
        )


def _error(worker: VirtualWorker) -> str:
    """Return why a worker has given up; empty if it has not."""
    error = worker.task.error if worker.task else None
    return str(error) if error is not None else ""
