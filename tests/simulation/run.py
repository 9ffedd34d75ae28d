"""One scenario from its beginning to its end."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.errors import SwitchGNNError
from switchgnn.controller.base.place import DEFAULT_JOB
from switchgnn.host.base.compression import Compression
from switchgnn.host.base.pace import Pace
from switchgnn.p4src.program import TOFINO
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.base.lanes import LANES, TOFINO_LANES
from tests.simulation.checks import all_checks
from tests.simulation.checks.apart import JobsApart
from tests.simulation.checks.check import Check
from tests.simulation.parts.controller import Order
from tests.simulation.parts.engines import Programs
from tests.simulation.parts.reducer import Agreement, Reduced, ReduceJob
from tests.simulation.parts.worker import Done, ExchangeJob, Reports, Round
from tests.simulation.scenario import (
    Fault,
    Incident,
    IncidentKind,
    IncidentRates,
    Scenario,
    ScenarioError,
)
from tests.simulation.scene import CRASH, Scene, Violation, what_crashed
from tests.simulation.subject import Subjects
from tests.simulation.timing import SECOND

_CONTROLLER = "controller"
_OF_WORKERS = (IncidentKind.STOP, IncidentKind.KILL, IncidentKind.JUMP, IncidentKind.BYZANTINE)


def arrange(scene: Scene) -> None:
    for incident in scene.scenario.incidents:
        known = _targets(incident.kind, scene)
        if incident.where not in known:
            raise ScenarioError(
                f"A {incident.kind.value} at {incident.where!r}, which does not exist: choose one "
                f"of {', '.join(dict.fromkeys(known))}."
            )
        scene.scheduler.mark(incident.event, partial(_happen, scene, incident))


def _targets(kind: IncidentKind, scene: Scene) -> list[str]:
    workers = [worker.name for worker in scene.workers]
    switches = [switch.name for switch in scene.switches]
    if kind is IncidentKind.SILENCE:
        return [*scene.wires, *(name.rpartition(".")[0] for name in scene.wires)]
    if kind is IncidentKind.RESTART:
        return [*switches, *workers, _CONTROLLER]
    if kind is IncidentKind.REMOVE:
        return [_CONTROLLER]
    return workers if kind in _OF_WORKERS else switches


def _happen(scene: Scene, incident: Incident) -> None:
    kind, where, seconds = incident.kind, incident.where, incident.seconds
    scene.trace.note(where, f"{kind.value} {seconds:g}")
    # A tear happens when frames leave next.
    if kind is not IncidentKind.TEAR:
        scene.happens(incident)
    if kind is IncidentKind.SILENCE:
        for name, wire in scene.wires.items():
            if where in (name, name.rpartition(".")[0]):
                wire.silence(seconds)
    elif where == _CONTROLLER:
        scene.controller.restart(seconds, removes=kind is IncidentKind.REMOVE)
    elif where.startswith("w"):
        _happen_to_worker(scene, int(where[1:]), kind, seconds)
    else:
        _happen_to_switch(scene, int(where[1:]), incident)


def _happen_to_worker(scene: Scene, number: int, kind: IncidentKind, seconds: float) -> None:
    worker = scene.workers[number]
    if kind is IncidentKind.KILL:
        worker.kill()
    elif kind is IncidentKind.BYZANTINE:
        scene.turn_byzantine(number, seconds)
    else:
        act = {
            IncidentKind.STOP: worker.stand_still,
            IncidentKind.JUMP: worker.clock.jump,
            IncidentKind.RESTART: worker.restart,
        }
        act[kind](seconds)


def _happen_to_switch(scene: Scene, number: int, incident: Incident) -> None:
    switch, seconds = scene.switches[number], incident.seconds
    if incident.kind is IncidentKind.SPILL:
        switch.spill()
    elif incident.kind is IncidentKind.PARTITION:
        scene.lines[number].cut(seconds)
    elif incident.kind is IncidentKind.TEAR:
        switch.tear(seconds, partial(scene.happens, incident))
    else:
        switch.restart(seconds)


# The most nanoseconds between two sessions.
_PAUSE = 50_000_000
# What clocks of the second job show when it begins, in nanoseconds.
_BEGIN = 1000 * SECOND


@dataclass(frozen=True)
class ScenarioOutcome:
    """The outcome of a scenario."""

    violations: tuple[Violation, ...]
    # exchanges, reduces: those that all workers have done
    exchanges: int = 0
    reduces: int = 0
    seconds: float = 0.0  # virtual time
    events: int = 0
    frames: int = 0  # on all lines
    faults: dict[str, int] = field(default_factory=dict)  # injected faults and incidents, by kind
    each_fault: tuple[Fault, ...] = ()  # those of single frames, in order
    errors: tuple[str, ...] = ()  # of workers that gave up
    # of the second job: see `JobsApart`
    held: dict[str, object] = field(default_factory=dict)
    digest: str = ""  # SHA-256 of the trace
    trace: tuple[str, ...] = ()  # its lines, if kept

    @property
    def summary(self) -> str:
        return (
            f"{self.exchanges} exchanges, {self.reduces} all-reduces, {self.frames:,} frames, "
            f"{self.seconds:.3f} virtual seconds; SHA-256 of the trace: {self.digest}"
        )


def run_scenario(
    scenario: Scenario,
    programs: Programs,
    subjects: Subjects,
    *,
    beside: Sequence[Check] = (),
    keeps_trace: bool = False,
) -> ScenarioOutcome:
    try:
        scene = Scene(scenario, subjects, programs, keeps_trace=keeps_trace)
        jobs = [_JobRun(scene, [*all_checks(scenario.rows), *beside])]
        if (second := scene.other) is not None:
            jobs.append(_JobRun(second, all_checks(second.scenario.rows)))
    except SwitchGNNError:
        raise
    except Exception as error:  # before anything has happened
        return ScenarioOutcome((Violation(CRASH, what_crashed(error)),))
    outcome = _run_jobs(jobs)
    if outcome.violations or not _first_has_faults(scenario):
        return outcome
    expected = run_scenario(_without_faults(scenario), programs, subjects).held
    if not outcome.held or expected.get("session") != outcome.held["session"]:
        return outcome
    names = [name for name, each in outcome.held.items() if each != expected[name]]
    if not names:
        return outcome
    what = f"without the faults of the first job, the second has other {', '.join(names)}"
    return replace(outcome, violations=(Violation(JobsApart.name, what),))


def _without_faults(scenario: Scenario) -> Scenario:
    calm = IncidentRates()
    return replace(scenario, incidents=(), faults=(), up=calm, down=calm, cables=calm)


def _first_has_faults(scenario: Scenario) -> bool:
    """Return whether only the first job has faults, and the switch has time for all."""
    if scenario.second is None or scenario.turns or scenario.queue_rate:
        return False
    shared = any(
        each.restarts_switch or each.kind is IncidentKind.SPILL
        for each in scenario.incidents
        if each.where == "s0"
    )
    return not shared and scenario != _without_faults(scenario)


def _run_jobs(jobs: "Sequence[_JobRun]") -> ScenarioOutcome:
    try:
        _happen_to_all(jobs)
        _clean_up(jobs)
    except SwitchGNNError:
        raise
    except Exception as error:  # a crash is a finding
        jobs[0].scene.violated(CRASH, what_crashed(error))
        with suppress(Exception):
            _clean_up(jobs)
    outcome = jobs[0].outcome()
    if len(jobs) == 1:
        return outcome
    second = jobs[1].outcome()
    found = [Violation(each.name, f"second job: {each.what}") for each in second.violations]
    return replace(
        outcome,
        violations=(*outcome.violations, *found),
        errors=outcome.errors + second.errors,
        held=second.held,
    )


def _happen_to_all(jobs: "Sequence[_JobRun]") -> None:
    scene = jobs[0].scene
    for job in jobs:
        job.begin()
    arrange(scene)
    for switch in scene.switches:
        switch.start()
    # The one that is installed first.
    for job in jobs[:: -1 if scene.scenario.second_first else 1]:
        job.open_session()
    limit = sum(longest(job.scene.scenario) for job in jobs)
    in_time = scene.scheduler.run(limit, lambda: all(job.finished for job in jobs))
    for job in jobs:
        job.conclude(in_time=in_time)


def _clean_up(jobs: "Sequence[_JobRun]") -> None:
    for job in jobs:
        for worker in job.scene.workers:
            worker.kill()
    jobs[0].scene.controller.end()


class _JobRun:
    """Drives the sessions of a job."""

    def __init__(self, scene: Scene, checks: Sequence[Check]) -> None:
        self.scene = scene
        self.finished = False
        self._checks = checks
        self._random = scene.source("sessions")
        self._session = 0
        self._unwatched = 0
        self._numbers: set[int] = set()
        self._running = 0
        self._done_by: Counter[tuple[int, int]] = Counter()
        self._reduced_by: Counter[tuple[int, int]] = Counter()
        self._errors: list[str] = []

    def begin(self) -> None:
        for check in self._checks:
            check.begin(self.scene)

    def conclude(self, *, in_time: bool) -> None:
        for check in self._checks:
            check.conclude(in_time=in_time)

    def open_session(self) -> None:
        self._session += 1
        if self.scene.unwatched > self._unwatched:
            # Its number is forgotten, so it may be used again.
            self._unwatched = self.scene.unwatched
            self._forget_late()
        name = "second" if self.scene.is_second else DEFAULT_JOB
        self.scene.controller.open_session(Order(name, self.scene.subject, self._begin_workers))

    def _forget_late(self) -> None:
        for wire in self.scene.wires.values():
            wire.forget_late()

    def _begin_workers(self, session: int) -> None:
        if session in self._numbers:
            self._forget_late()
        self._numbers.add(session)
        scene = self.scene
        scenario, subject = scene.scenario, scene.subject
        pace = Pace(scenario.window, scenario.patience)
        job = scene.job = ExchangeJob(
            *(session, tuple(self._rounds()), pace, subject.plan),
            compression=Compression(scenario.bits, scenario.cache),
            epsilon=scenario.epsilon,
        )
        scene.reduces = self._reduce_job(session, pace) if scenario.reduces else None
        scene.session_begins()
        for check in self._checks:
            check.session_begins()
        self._running = len(scene.workers)
        for worker in scene.workers:
            if scene.is_second:
                # Floats round the same whenever it begins.
                worker.clock.show(_BEGIN)
            reports = Reports(self._done, self._reduced, self._worker_ended)
            worker.begin(job, scene.reduces, reports)

    def _rounds(self) -> Iterator[Round]:
        """Yield the features of all vertices; with a cache most resemble those before."""
        scenario, subject = self.scene.scenario, self.scene.subject
        before: dict[Direction, NDArray[np.float32]] = {}
        for number in range(scenario.rounds):
            direction = subject.directions[number % len(subject.directions)]
            seed = [scenario.seed, self._session, number]
            features = subject.features(seed, scenario.width, scenario.surges)
            if scenario.cache and direction in before:
                features = subject.partly_new(seed, before[direction], features)
            before[direction] = features
            yield features, direction

    def _reduce_job(self, session: int, pace: Pace) -> ReduceJob:
        scenario = self.scene.scenario
        seed, plan = (scenario.seed, self._session), self.scene.subject.plan.manifest
        lanes = TOFINO_LANES if plan.program == TOFINO.digest() else LANES[-1]
        tensors, workers = scenario.reduces, scenario.workers
        shared = pace, plan.number, Agreement(workers), lanes
        return ReduceJob(session, seed, tensors, workers, *shared)

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
        scene = self.scene
        scene.session_ends()
        for check in self._checks:
            check.session_ends()
        tasks = [task for worker in scene.workers for task in worker.tasks]
        self._errors += [f"{task.name}: {task.error}" for task in tasks if task.error]
        self.finished = self._session == scene.scenario.sessions
        if not (scene.is_second or (self.finished and scene.other)):
            scene.controller.close_session()
        if not self.finished:
            scene.scheduler.after(int(_PAUSE * self._random.random()), self.open_session)

    def outcome(self) -> ScenarioOutcome:
        scene, all_of_them = self.scene, len(self.scene.workers)
        incidents = Counter(incident.kind.value for _, incident in scene.happened)
        faults = {name: n for name, n in scene.lines_state.fates.items() if name != "passed"}
        return ScenarioOutcome(
            violations=tuple(scene.violations),
            exchanges=sum(n == all_of_them for n in self._done_by.values()),
            reduces=sum(n == all_of_them for n in self._reduced_by.values()),
            seconds=scene.scheduler.seconds,
            events=scene.scheduler.events,
            frames=scene.lines_state.fates.total(),
            faults=dict(sorted({**faults, **incidents}.items())),
            each_fault=tuple(scene.lines_state.faults),
            errors=tuple(self._errors),
            digest=scene.trace.digest,
            trace=tuple(scene.trace.lines),
            held=next((each.held for each in self._checks if isinstance(each, JobsApart)), {}),
        )


def longest(scenario: Scenario) -> float:
    waits = sum(incident.seconds for incident in scenario.incidents)
    pauses = sum(tensor.pause for tensor in scenario.reduces)
    session = 10 * scenario.patience + 30.0 * scenario.rounds + pauses
    return scenario.sessions * (session + waits) + 60.0
