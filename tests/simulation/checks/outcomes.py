"""A worker gives up only when it has to, and names the workers to blame."""

import re

from switchgnn.base.errors import SwitchGNNError
from switchgnn.host.base.errors import HostError
from tests.simulation.checks.check import Check
from tests.simulation.scenario import IncidentKind
from tests.simulation.scene import CRASH, what_crashed
from tests.simulation.timing import SECOND, HangError

# Errors where a restarted switch has believed a Byzantine worker: it may also have let others go
# on, which then do not answer those that it has left behind.
_BROKEN = re.compile(
    "A worker or the switch is broken|different scales|in round"
    "|has refused the largest magnitude|, worker .* goes on with another|did not answer"
)
# What ends the controller or a switch.
_ENDS = (IncidentKind.RESTART, IncidentKind.REMOVE)
# Seconds that a switch takes to be found and installed again.
_INSTALLED = 1.5
# Seconds in which a worker recovers when the faults are over.
_RECOVERED = 2.0
# The share of the patience for which a worker may stand still and not be given up.
_STANDS = 0.4


class RightParty(Check):
    """Compares the errors of exchanges with what has happened in their session."""

    name = "right party"

    def task_of(self, worker):
        """Return the task of a worker whose error counts; None if there is none."""
        return worker.task

    def session_begins(self):
        self._known = len(self.scene.happened)
        self._unwatched = self.scene.unwatched

    def session_ends(self):
        gone, excused = self._gone() | self.scene.byzantine, self._excused()
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

    def judge(self, worker, error, gone):
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

    def _look_gone(self, gone, to):
        """Return the workers that may look gone too: all at another leaf that has a gap."""
        # A leaf does not report before all of its workers are done.
        leaf = [switch for switch, _ in self.scene.subject.topology.positions]
        gaps = {leaf[worker] for worker in gone} - {leaf[to]}
        return {worker for worker in range(len(leaf)) if leaf[worker] in gaps}

    def _gone(self):
        still = {}
        for _, incident in self.scene.happened[self._known :]:
            if incident.ends_worker:
                still[int(incident.where[1:])] = float("inf")
            elif incident.kind in (IncidentKind.STOP, IncidentKind.JUMP):
                worker = int(incident.where[1:])
                still[worker] = still.get(worker, 0.0) + incident.seconds
        patience = self.scene.scenario.patience
        return {worker for worker, seconds in still.items() if seconds > _STANDS * patience}

    def _excused(self):
        """Return whether lines and switches were away for so long that giving up is right."""
        away, restarted, patience = 0.0, set(), self.scene.scenario.patience
        before = self.scene.scheduler.now - int(patience * SECOND)
        for index, (time, incident) in enumerate(self.scene.happened):
            if index < self._known and time < before:
                continue
            if incident.ends_worker or incident.kind is IncidentKind.SPILL:
                continue
            if incident.restarts_switch or incident.kind in _ENDS:
                restarted.add(incident.where == "controller")
                away += _INSTALLED
            away += min(incident.seconds, patience / 2)
        # A controller that was away together with a switch has forgotten the session.
        forgotten = len(restarted) > 1 or self.scene.unwatched > self._unwatched
        return forgotten or away > patience - _RECOVERED


# Losses in the network are repaired without fetching, but for repeated bad luck.
_FEW, _SHARE = 2, 0.25


class CalmIsQuiet(Check):
    """Counts the sums that workers have made themselves without incidents and full queues."""

    name = "calm is quiet"

    def session_ends(self):
        scenario = self.scene.scenario
        if scenario.incidents or scenario.queue_rate:
            return
        counters = [worker.exchange.counters for worker in self.scene.workers if worker.exchange]
        made = sum(counters.sums_made for counters in counters)
        received = sum(counters.sums_received for counters in counters)
        if made > _FEW + _SHARE * (made + received):
            self.tell(
                f"of {made + received} sums workers have made {made} themselves, but no switch has "
                "lost anything"
            )


class Ends(Check):
    """Reports the workers that still run at the end, and crashes of workers and controller."""

    name = "ends"

    def session_ends(self):
        for worker in self.scene.workers:
            for task in worker.tasks:
                self._look(worker.name, task.error)

    def conclude(self, *, in_time):
        scene = self.scene
        self.session_ends()
        error = scene.controller.error
        self._look("the controller", error)
        if error is not None:
            self.tell(f"the controller has failed: {error!r}")
        if not in_time:
            running = [it.name for it in scene.workers if not all(task.ended for task in it.tasks)]
            who = f"{', '.join(running)} still run" if running else "no session is installed"
            self.tell(f"after {scene.scheduler.seconds:,.0f} virtual seconds {who}")

    def _look(self, who, error):
        # A hang is another failure, and an error for the user may be right.
        if error is not None and not isinstance(error, SwitchGNNError | HangError):
            self.scene.violated(CRASH, f"{who} ends with {what_crashed(error)}")
