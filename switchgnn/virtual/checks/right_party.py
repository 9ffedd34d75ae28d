# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker gives up only when it has to, and names who is to blame."""

import re

from switchgnn.virtual.checks.check import Check
from switchgnn.virtual.parts.worker import VirtualWorker
from switchgnn.virtual.scenario.scenario import IncidentKind
from switchgnn.virtual.timing.scheduler import SECOND

_NAMED = re.compile(
    r"for workers? ([\d, ]+)|Workers? ([\d, ]+) did not answer|: worker (\d+) reports features"
    r"|where worker (\d+) was the first|that worker (\d+) reported"
    r"|, worker (\d+) goes on with another"
)
# What is said where a switch that was restarted has believed somebody who is mad: it may also have
# let others go on, who then do not answer those that it has left behind.
_BROKEN = re.compile(
    "A worker or the switch is broken|different scales|in round"
    "|has refused the largest magnitude|, worker .* goes on with another|did not answer"
)
# What is said of a switch that serves another plan, or where nothing comes through one.
_SWITCH_OR_SILENT = re.compile(
    "switch|Another process|without a sign of life|did not answer|without progress"
)
# Seconds that a switch takes to be found and installed again.
_INSTALLED = 1.5
# Seconds in which a worker gets on again when nothing is in its way any more.
_RECOVERED = 2.0
# The share of the patience for which a worker may stand still and not be given up.
_STANDS = 0.4


class RightParty(Check):
    """Compares the errors of a session with what has happened in it."""

    def session_begins(self) -> None:
        """Remember what has happened before."""
        self._known = len(self.scene.happened)
        self._unwatched = self.scene.unwatched

    def session_ends(self) -> None:
        """Compare the errors of the workers."""
        gone, excused = self._gone() | self.scene.misfits, self._excused()
        happened = self.scene.happened[self._known :]
        restarted = any(incident.restarts_switch for _, incident in happened)
        ended = [(worker.task.ended_at, worker) for worker in self.scene.workers if worker.task]
        for _, worker in sorted(ended, key=lambda each: (each[0], each[1].number)):
            error = worker.task.error if worker.task else None
            if error is not None and not excused and worker.number not in gone:
                self._judge(worker, str(error), gone)
            # Who is through has left, and says to a switch that was restarted no more that it was.
            if error is not None or restarted:
                gone = gone | {worker.number}

    def _judge(self, worker: VirtualWorker, error: str, gone: set[int]) -> None:
        if self._relapsed():
            # Who has another switch in between hears of it only as the silence of others.
            if not _SWITCH_OR_SILENT.search(error):
                self.scene.violated(
                    "right party", f"{worker.name} gives up, and blames no switch: {error}"
                )
            return
        if not gone:
            self.scene.violated("right party", f"{worker.name} gives up without need: {error}")
            return
        if self.scene.lawless and _BROKEN.search(error):
            return
        found = _NAMED.search(error)
        words = next(filter(None, found.groups())) if found else ""
        named = {int(number) for number in re.findall(r"\d+", words)}
        if not named or not named - gone <= self._look_gone(gone, worker.number):
            self.scene.violated(
                "right party",
                f"{worker.name} gives up, and blames another than workers {sorted(gone)}: {error}",
            )

    def _relapsed(self) -> bool:
        """Tell whether a switch serves another plan in this session, which nobody takes from it.

        Also one that has come back with it between its own install and that of the last switch.
        """
        return any(
            incident.kind is IncidentKind.RELAPSE and time >= self.scene.controller.install_began
            for time, incident in self.scene.happened
        )

    def _look_gone(self, gone: set[int], to: int) -> set[int]:
        """Return who else looks gone to a worker: all behind another leaf that has a gap.

        A leaf says nothing of its workers before all of them are done, and one that has just
        ended may have been heard later than the others.
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
        """Tell whether lines and switches were away for so long that giving up is right."""
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
        # A controller that was away together with a switch does not know the session any more.
        forgotten = len(restarted) > 1 or self.scene.unwatched > self._unwatched
        return forgotten or away > patience - _RECOVERED
