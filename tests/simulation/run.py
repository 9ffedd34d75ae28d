# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One scenario from its beginning to its end."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.errors import SwitchGNNError
from switchgnn.host.compression import Compression
from switchgnn.host.innetwork.exchange import plan_id
from switchgnn.host.pace import Pace
from switchgnn.planner.direction import Direction
from tests.simulation.checks import all_checks
from tests.simulation.jobs import Jobs
from tests.simulation.parts.reducer import Agreement, Reduced, ReduceJob
from tests.simulation.parts.worker import Done, ExchangeJob, Reports, Round
from tests.simulation.scenario import Fault, Incident, IncidentKind, Scenario
from tests.simulation.scene import CRASH, Made, Scene, Violation, what_crashed
from tests.simulation.subject import Subjects
from tests.simulation.timing import BEGIN

_CONTROLLER = "controller"


class IncidentError(SwitchGNNError):
    """An incident names a part that does not exist."""


def arrange(scene: Scene) -> None:
    """Schedule all incidents of the scenario."""
    for incident in scene.scenario.incidents:
        check_place(incident, scene.scenario, scene.wires)
        scene.scheduler.mark(incident.event, partial(_happen, scene, incident))


def check_place(incident: Incident, scenario: Scenario, wires: Collection[str]) -> None:
    """Check that the part of an incident exists."""
    where, kind = incident.where, incident.kind
    lines = [name.rpartition(".")[0] for name in wires]
    known = {
        IncidentKind.SILENCE: [*wires, *lines],
        IncidentKind.STOP: [f"w{worker}" for worker in range(scenario.workers)],
        IncidentKind.SPILL: [f"s{switch}" for switch in range(scenario.switches)],
    }
    known[IncidentKind.KILL] = known[IncidentKind.JUMP] = known[IncidentKind.STOP]
    known[IncidentKind.MAD] = known[IncidentKind.STOP]
    known[IncidentKind.TEAR] = known[IncidentKind.SPILL]
    known[IncidentKind.PROGRAM] = known[IncidentKind.RELAPSE] = known[IncidentKind.SPILL]
    known[IncidentKind.PARTITION] = known[IncidentKind.SPILL]
    known[IncidentKind.RESTART] = [
        *(*known[IncidentKind.SPILL], *known[IncidentKind.STOP], _CONTROLLER)
    ]
    if where not in known[kind]:
        raise IncidentError(
            f"A {kind.value} at {where!r}, which does not exist: choose one of "
            f"{', '.join(dict.fromkeys(known[kind]))}."
        )


def _happen(scene: Scene, incident: Incident) -> None:
    scene.trace.note(incident.where, f"{incident.kind.value} {incident.seconds:g}")
    # A tear happens when frames leave next.
    if incident.kind is not IncidentKind.TEAR:
        _note(scene, incident)
    if incident.kind is IncidentKind.SILENCE:
        _be_silent(scene, incident)
    elif incident.where == _CONTROLLER:
        scene.controller.restart(incident.seconds)
    elif incident.where.startswith("w"):
        _happen_to_worker(scene, incident)
    else:
        _happen_to_switch(scene, incident)


def _be_silent(scene: Scene, incident: Incident) -> None:
    for name, wire in scene.wires.items():
        if incident.where in (name, name.rpartition(".")[0]):
            wire.silence(incident.seconds)


def _happen_to_worker(scene: Scene, incident: Incident) -> None:
    number, seconds = int(incident.where[1:]), incident.seconds
    worker = scene.workers[number]
    if incident.kind is IncidentKind.STOP:
        worker.stand_still(seconds)
    elif incident.kind is IncidentKind.KILL:
        worker.kill()
    elif incident.kind is IncidentKind.JUMP:
        worker.clock.jump(seconds)
    elif incident.kind is IncidentKind.MAD:
        scene.turn_byzantine(number, seconds)
    else:
        worker.restart(seconds)


def _happen_to_switch(scene: Scene, incident: Incident) -> None:
    number, seconds = int(incident.where[1:]), incident.seconds
    switch = scene.switches[number]
    if incident.kind is IncidentKind.SPILL:
        switch.spill()
    elif incident.kind is IncidentKind.PARTITION:
        scene.lines[number].cut(seconds)
    elif incident.kind is IncidentKind.PROGRAM:
        scene.come_back_with_another_program(number, seconds)
    elif incident.kind is IncidentKind.RELAPSE:
        scene.come_back_with_another_plan(number, seconds)
    elif incident.kind is IncidentKind.TEAR:
        switch.tear(seconds, partial(_note, scene, incident))
    else:
        switch.restart(seconds)


def _note(scene: Scene, incident: Incident) -> None:
    """Note an incident."""
    scene.happened.append((scene.scheduler.now, incident))
    if incident.restarts_switch:
        scene.unwatched += not scene.controller.watching


# The most nanoseconds between two sessions.
_PAUSE = 50_000_000


@dataclass(frozen=True)
class ScenarioOutcome:
    """The outcome of a scenario.

    Attributes:
        exchanges: those that all workers have done.
        seconds: virtual time.
        frames: on all lines.
        faults: injected faults and incidents, by kind.
        each_fault: those of single frames, in order.
        errors: of workers that gave up.
        digest: SHA-256 of the trace.
        trace: its lines, if kept.
        reduces: all-reduces that all workers have done.
    """

    violations: tuple[Violation, ...]
    exchanges: int
    seconds: float
    events: int
    frames: int
    faults: dict[str, int]
    each_fault: tuple[Fault, ...]
    errors: tuple[str, ...]
    digest: str
    trace: tuple[str, ...]
    reduces: int = 0


def run_scenario(
    scenario: Scenario, made: Made, subjects: Subjects, *, keeps_trace: bool = False
) -> ScenarioOutcome:
    """Run a scenario."""
    try:
        subject, other = subjects.of(scenario), partial(subjects.other_than, scenario)
        scene = Scene(scenario, subject, made, other, keeps_trace=keeps_trace)
        run = _ScenarioRun(scene, Jobs(scenario, subjects))
    except SwitchGNNError:
        raise
    except Exception as error:  # before anything has happened
        return _nothing_but(Violation(CRASH, what_crashed(error)))
    return run.run()


def _nothing_but(violation: Violation) -> ScenarioOutcome:
    """Return the outcome of a scenario that crashes before it begins."""
    line = f"{BEGIN} check {violation.name}: {violation.what}"
    digest = hashlib.sha256(line.encode()).hexdigest()
    return ScenarioOutcome((violation,), 0, 0.0, 0, 0, {}, (), (), digest, (line,))


class _ScenarioRun:
    """Drives the sessions of a scene."""

    def __init__(self, scene: Scene, jobs: Jobs) -> None:
        self._scene = scene
        self._jobs = jobs
        self._checks = all_checks()
        self._random = scene.source("sessions")
        self._session = 0
        self._unwatched = 0
        self._numbers: set[int] = set()
        self._running = 0
        self._finished = False
        self._done_by: Counter[tuple[int, int]] = Counter()
        self._reduced_by: Counter[tuple[int, int]] = Counter()
        self._errors: list[str] = []

    def run(self) -> ScenarioOutcome:
        try:
            self._happen()
            self._clean_up()
        except SwitchGNNError:
            raise
        except Exception as error:  # a crash is a finding
            self._scene.violated(CRASH, what_crashed(error))
            with suppress(Exception):
                self._clean_up()
        return self._outcome()

    def _happen(self) -> None:
        scene = self._scene
        for check in self._checks:
            check.begin(scene)
        arrange(scene)
        for switch in scene.switches:
            switch.start()
        self._open_session()
        in_time = scene.scheduler.run(longest(scene.scenario), lambda: self._finished)
        for check in self._checks:
            check.conclude(in_time=in_time)

    def _clean_up(self) -> None:
        for worker in self._scene.workers:
            worker.kill()
        self._scene.controller.end()

    def _open_session(self) -> None:
        self._session += 1
        if self._scene.unwatched > self._unwatched:
            # Its number is forgotten, so it may be used again.
            self._unwatched = self._scene.unwatched
            self._forget_late()
        self._scene.controller.open_session(self._begin_workers)

    def _forget_late(self) -> None:
        """Lose delayed frames of the sessions so far."""
        for wire in self._scene.wires.values():
            wire.forget_late()

    def _begin_workers(self, session: int) -> None:
        if session in self._numbers:
            self._forget_late()
        self._numbers.add(session)
        scene = self._scene
        scenario, subject = scene.scenario, scene.subject
        scene.job = ExchangeJob(
            session,
            tuple(self._rounds()),
            Pace(scenario.window, scenario.patience),
            subject.plan,
            compression=Compression(scenario.bits, scenario.cache),
            epsilon=scenario.epsilon,
        )
        scene.reduces = self._reduce_job(session)
        scene.session_begins()
        for check in self._checks:
            check.session_begins()
        self._running = len(scene.workers)
        for worker in scene.workers:
            reports = Reports(self._done, self._reduced, self._worker_ended)
            worker.begin(self._jobs.of(worker.number, scene.job), scene.reduces, reports)

    def _rounds(self) -> Iterator[Round]:
        """Yield the features of all vertices; with a cache most resemble those before."""
        scenario, subject = self._scene.scenario, self._scene.subject
        before: dict[Direction, NDArray[np.float32]] = {}
        for number in range(scenario.rounds):
            direction = subject.directions[number % len(subject.directions)]
            seed = [scenario.seed, self._session, number]
            features = subject.features(seed, scenario.width, scenario.surges)
            if scenario.cache and direction in before:
                features = subject.partly_new(seed, before[direction], features)
            before[direction] = features
            yield features, direction

    def _reduce_job(self, session: int) -> ReduceJob | None:
        scenario = self._scene.scenario
        if not scenario.reduces:
            return None
        return ReduceJob(
            session,
            (scenario.seed, self._session),
            scenario.reduces,
            scenario.workers,
            Pace(scenario.window, scenario.patience),
            plan_id(self._scene.subject.plan.manifest),
            Agreement(scenario.workers),
        )

    def _done(self, done: Done) -> None:
        self._done_by[self._session, done.round] += 1
        for check in self._checks:
            check.done(done)

    def _reduced(self, reduced: Reduced) -> None:
        self._reduced_by[self._session, reduced.index] += 1
        for check in self._checks:
            check.reduced(reduced)

    def _worker_ended(self) -> None:
        self._running -= 1
        if self._running:
            return
        self._scene.session_ends()
        for check in self._checks:
            check.session_ends()
        tasks = [task for worker in self._scene.workers for task in worker.tasks]
        self._errors += [f"{task.name}: {task.error}" for task in tasks if task.error]
        self._scene.controller.close_session()
        if self._session == self._scene.scenario.sessions:
            self._finished = True
            return
        pause = int(_PAUSE * self._random.random())
        self._scene.scheduler.after(pause, self._open_session)

    def _outcome(self) -> ScenarioOutcome:
        scene = self._scene
        incidents = Counter(incident.kind.value for _, incident in scene.happened)
        faults = {name: n for name, n in scene.fates.items() if name != "passed"}
        return ScenarioOutcome(
            violations=tuple(scene.violations),
            exchanges=sum(n == len(scene.workers) for n in self._done_by.values()),
            reduces=sum(n == len(scene.workers) for n in self._reduced_by.values()),
            seconds=scene.scheduler.seconds,
            events=scene.scheduler.events,
            frames=scene.fates.total(),
            faults=dict(sorted({**faults, **incidents}.items())),
            each_fault=tuple(scene.faults),
            errors=tuple(self._errors),
            digest=scene.trace.digest,
            trace=tuple(scene.trace.lines),
        )


def longest(scenario: Scenario) -> float:
    """Return the virtual seconds within which a scenario must end."""
    waits = sum(incident.seconds for incident in scenario.incidents)
    pauses = sum(tensor.pause for tensor in scenario.reduces)
    session = 10 * scenario.patience + 30.0 * scenario.rounds + pauses
    return scenario.sessions * (session + waits) + 60.0
