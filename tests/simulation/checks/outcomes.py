# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0

"""A worker gives up only when it has to, and names the workers to blame."""

import re
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.errors import SwitchGNNError
from switchgnn.host.errors import HostError
from tests.simulation.checks.check import Check
from tests.simulation.checks.features import ExpectedScales
from tests.simulation.checks.sent import sent_rows
from tests.simulation.parts.worker import Done, VirtualWorker
from tests.simulation.scenario import Difference, DifferenceKind, IncidentKind
from tests.simulation.scene import CRASH, what_crashed
from tests.simulation.timing import SECOND, HangError, Task

# Errors where a restarted switch has believed a Byzantine worker: it may also have let others go
# on, which then do not answer those that it has left behind.
_BROKEN = re.compile(
    "A worker or the switch is broken|different scales|in round"
    "|has refused the largest magnitude|, worker .* goes on with another|did not answer"
)
# Errors where a switch serves another plan, or where nothing passes through it.
_SWITCH_OR_SILENT = re.compile(
    "switch|Another process|without a sign of life|did not answer|without progress"
)
# Seconds that a switch takes to be found and installed again.
_INSTALLED = 1.5
# Seconds in which a worker recovers when the faults are over.
_RECOVERED = 2.0
# The share of the patience for which a worker may stand still and not be given up.
_STANDS = 0.4


class PartyCheck(Check, ABC):
    """Compares the errors of a session with what has happened in it.

    Attributes:
        name: of the violated invariant.
    """

    name: str

    @abstractmethod
    def task_of(self, worker: VirtualWorker) -> Task | None:
        """Return the task of a worker whose error counts."""

    def session_begins(self) -> None:
        self._known = len(self.scene.happened)
        self._unwatched = self.scene.unwatched

    def session_ends(self) -> None:
        gone, excused = self._gone() | self.scene.misfits, self._excused()
        happened = self.scene.happened[self._known :]
        restarted = any(incident.restarts_switch for _, incident in happened)
        tasks = [(task, worker) for worker in self.scene.workers if (task := self.task_of(worker))]
        for task, worker in sorted(tasks, key=lambda each: (each[0].ended_at, each[1].number)):
            error = task.error
            if error is not None and not excused and worker.number not in gone:
                self.judge(worker, error, gone)
            # A worker that is done has left, and no longer repeats that to a restarted switch.
            if error is not None or restarted:
                gone = gone | {worker.number}

    def judge(self, worker: VirtualWorker, error: Exception, gone: set[int]) -> None:
        """Look at the error of a worker, where some workers are gone."""
        # Workers of other switches see only the silence of their peers.
        if self._relapsed() and _SWITCH_OR_SILENT.search(str(error)):
            return
        if not gone:
            self.scene.violated(self.name, f"{worker.name} gives up without need: {error}")
            return
        if self.scene.lawless and _BROKEN.search(str(error)):
            return
        blamed = set(error.workers) if isinstance(error, HostError) else set()
        if not blamed or not blamed - gone <= self._look_gone(gone, worker.number):
            self.scene.violated(
                self.name,
                f"{worker.name} gives up, and blames another than workers {sorted(gone)}: {error}",
            )

    def _relapsed(self) -> bool:
        """Return whether a switch serves another plan in this session.

        It may have come back with it between its own install and that of the last switch.
        """
        return any(
            incident.kind is IncidentKind.RELAPSE and time >= self.scene.controller.install_began
            for time, incident in self.scene.happened
        )

    def _look_gone(self, gone: set[int], to: int) -> set[int]:
        """Return the workers that may look gone too: all at another leaf that has a gap.

        A leaf does not report before all of its workers are done, and one that has just ended may
        have been heard later than the others.
        """
        leaf = [place[0] for place in self.scene.subject.site.places]
        gaps = {leaf[worker] for worker in gone} - {leaf[to]}
        return {worker for worker in range(len(leaf)) if leaf[worker] in gaps}

    def _gone(self) -> set[int]:
        """Return the workers that were killed or restarted, or stood still for long."""
        still: dict[int, float] = {}
        for _, incident in self.scene.happened[self._known :]:
            if incident.ends_worker:
                still[int(incident.where[1:])] = float("inf")
            elif incident.kind in (IncidentKind.STOP, IncidentKind.JUMP):
                worker = int(incident.where[1:])
                still[worker] = still.get(worker, 0.0) + incident.seconds
        patience = self.scene.scenario.patience
        return {worker for worker, seconds in still.items() if seconds > _STANDS * patience}

    def _excused(self) -> bool:
        """Return whether lines and switches were away for so long that giving up is right."""
        away, patience = 0.0, self.scene.scenario.patience
        restarted = set()
        before = self.scene.scheduler.now - int(patience * SECOND)
        for place, (time, incident) in enumerate(self.scene.happened):
            if place < self._known and time < before:
                continue
            if incident.ends_worker or incident.kind is IncidentKind.SPILL:
                continue
            if incident.restarts_switch or incident.kind is IncidentKind.RESTART:
                restarted.add(incident.where == "controller")
                away += _INSTALLED
            away += min(incident.seconds, patience / 2)
        # A controller that was away together with a switch has forgotten the session.
        forgotten = len(restarted) > 1 or self.scene.unwatched > self._unwatched
        return forgotten or away > patience - _RECOVERED


class RightParty(PartyCheck):
    """Looks at the errors of exchanges."""

    name = "right party"

    def task_of(self, worker: VirtualWorker) -> Task | None:
        return worker.task


# Losses in the network are repaired without fetching, but for repeated bad luck.
_FEW, _SHARE = 2, 0.25


class CalmIsQuiet(Check):
    """Counts the sums that workers have made themselves without incidents and full queues."""

    def session_ends(self) -> None:
        scenario = self.scene.scenario
        if scenario.incidents or scenario.differences or scenario.queue_rate:
            return
        counters = [worker.exchange.counters for worker in self.scene.workers if worker.exchange]
        made = sum(counters.sums_made for counters in counters)
        received = sum(counters.sums_received for counters in counters)
        if made > _FEW + _SHARE * (made + received):
            self.scene.violated(
                "calm is quiet",
                f"of {made + received} sums workers have made {made} themselves, but no switch has "
                "lost anything",
            )


_OTHER_PLAN = r"holds plan \w+, the switch serves plan \w+"
_OTHER_BLOCK = "goes on with another block or fragment"
# The error of at least one worker about a difference; the others report a missing worker.
_REPORTS = {
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
        scenario = self.scene.scenario
        if scenario.other_plan:
            self._violated_by_controller(f"worker {done.worker} has sums")
        for difference in scenario.differences:
            if self._must_be_reported(difference):
                self._violated(difference, f"worker {done.worker} has sums")

    def session_ends(self) -> None:
        scenario = self.scene.scenario
        if scenario.other_plan and not scenario.incidents:
            self._check_plan()
        for difference in scenario.differences if not scenario.incidents else ():
            if difference.kind is DifferenceKind.ROUNDS:
                self._check_rounds(difference)
            elif self._must_be_reported(difference):
                self._check_all(difference)

    def _must_be_reported(self, difference: Difference) -> bool:
        """Return whether no exchange with such a worker is possible."""
        kind = difference.kind
        if kind is DifferenceKind.DIRECTION:
            return self._directions_differ()
        return kind is not DifferenceKind.ROUNDS

    def _check_plan(self) -> None:
        """Check that each worker reports the plan that the controller has installed."""
        reports = _REPORTS[DifferenceKind.PLAN]
        silent = [
            worker.name for worker in self.scene.workers if not reports.search(_error(worker))
        ]
        if silent:
            self._violated_by_controller(f"{', '.join(silent)} do not report it")

    def _violated_by_controller(self, what: str) -> None:
        self.scene.violated("differences told", f"the controller has another plan, and {what}")

    def _directions_differ(self) -> bool:
        """Return whether another direction is another exchange: in undirected graphs it is not."""
        subject = self.scene.subject
        blocks = [subject.plan.manifest.direction(d).block_numbers for d in subject.directions]
        return len(blocks) == 1 or blocks[0] != blocks[-1]

    def _check_all(self, difference: Difference) -> None:
        silent = [worker.name for worker in self.scene.workers if not _error(worker)]
        if silent:
            self._violated(difference, f"{', '.join(silent)} end without an error")
        reports = _REPORTS[difference.kind]
        if not any(reports.search(_error(worker)) for worker in self.scene.workers):
            self._violated(difference, "no worker reports it")

    def _check_rounds(self, difference: Difference) -> None:
        """Check that the workers that exchange more often report an error."""
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
    """Return the error of a worker; empty if it has none."""
    error = worker.task.error if worker.task else None
    return str(error) if error is not None else ""


class Ends(Check):
    """Reports the workers that still run at the end."""

    def conclude(self, *, in_time: bool) -> None:
        error = self.scene.controller.error
        if error is not None:
            self.scene.violated("ends", f"the controller has failed: {error!r}")
        if in_time:
            return
        running = [
            worker.name
            for worker in self.scene.workers
            if not all(task.ended for task in worker.tasks)
        ]
        seconds = self.scene.scheduler.seconds
        who = f"{', '.join(running)} still run" if running else "no session is installed"
        self.scene.violated("ends", f"after {seconds:,.0f} virtual seconds {who}")


class NothingCrashes(Check):
    """Looks at how workers have ended, and the controller."""

    def session_ends(self) -> None:
        for worker in self.scene.workers:
            for task in worker.tasks:
                self._look(worker.name, task.error)

    def conclude(self, *, in_time: bool) -> None:
        self.session_ends()
        self._look("the controller", self.scene.controller.error)

    def _look(self, who: str, error: Exception | None) -> None:
        # A hang is another failure, and an error for the user may be right.
        if error is not None and not isinstance(error, SwitchGNNError | HangError):
            self.scene.violated(CRASH, f"{who} ends with {what_crashed(error)}")


class SumsExact(Check):
    """Compares all sums with those of the oracle."""

    def session_begins(self) -> None:
        job, oracle = self.scene.job, self.scene.subject.oracle
        self._rounds = job.rounds if job else ()
        self._right: list[NDArray[np.int64]] = []
        if job is None:
            return
        scales = ExpectedScales(self.scene, job)
        if job.compression.cache:
            totals = sent_rows(self.scene, job, scales.rounds).totals
            self._right = [totals[exchange] for exchange in range(len(self._rounds))]
            return
        for exchange, (features, direction) in enumerate(self._rounds):
            magnitude = scales.of_exchange(exchange).magnitude
            fixed = oracle.fixed(features, magnitude, job.compression.bits)
            self._right.append(oracle.sums(fixed, direction))

    def done(self, done: Done) -> None:
        if not self.scene.honest(done.worker):
            return
        vertices = self.scene.subject.plan.workers[done.worker].vertices
        right = self._of(done)[vertices]
        if not np.array_equal(right, done.values):
            wrong = vertices[(right != done.values).any(axis=1)]
            wrong = wrong[~np.isin(wrong, list(self.scene.spoilt))]
            if not len(wrong):
                return
            self.scene.violated(
                "sums exact",
                f"session {done.session}, round {done.round}: worker {done.worker} has "
                f"{len(wrong)} wrong sums, the first of vertex {wrong[0]}",
            )

    def _of(self, done: Done) -> NDArray[np.int64]:
        """Return the right sums, at a scale that a Byzantine worker may have changed."""
        if not self.scene.spoilt:
            return self._right[done.round - 1]
        oracle = self.scene.subject.oracle
        features, direction = self._rounds[done.round - 1]
        return oracle.sums(oracle.fixed(features, done.magnitude), direction)
