# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""All parts of one scenario, and the lines between them."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from types import TracebackType

from switchgnn.controller import P4RuntimeClient
from switchgnn.controller.install import Share, install_each
from switchgnn.host.wire.faults import worker_link
from switchgnn.lab.virtual.byzantine import ByzantineWorker, generator_for
from switchgnn.lab.virtual.network import Deliver, Disturbance, Faults, ToldFaults, Ways, Wire
from switchgnn.lab.virtual.parts.control_line import ControlLine, VirtualConnection
from switchgnn.lab.virtual.parts.controller import InOrder, VirtualController
from switchgnn.lab.virtual.parts.engines import Programs
from switchgnn.lab.virtual.parts.switch import SwitchSettings, VirtualSwitch
from switchgnn.lab.virtual.parts.worker import Job, VirtualWorker
from switchgnn.lab.virtual.scenario import (
    DifferenceKind,
    Fault,
    Incident,
    IncidentKind,
    Rates,
    Scenario,
    ScenarioError,
)
from switchgnn.lab.virtual.subject import Subject, SwitchShare
from switchgnn.lab.virtual.timing import Scheduler, Trace, VirtualClock
from switchgnn.p4src import Program
from switchgnn.softswitch.p4runtime.service import P4RuntimeService

# The mark of a program that nobody here knows.
_OTHER_COOKIE = 1
# What is older than the first session, as the lower eight bits of sessions are compared.
_OLDEST = 255


class _AtOnce:
    """A way to a switch on which no time passes."""

    def __init__(self, switch: VirtualSwitch) -> None:
        self.switch = switch

    def pass_word(self, _until: int) -> bool:
        return self.switch.service is not None

    def reach(self, _seconds: float) -> P4RuntimeService:
        if self.switch.service is None:
            raise RuntimeError(f"Switch {self.switch.name} is off.")
        return self.switch.service


@dataclass(frozen=True, eq=False)
class FormerLife:
    """Gives a switch what it had before anybody knew of it.

    Attributes:
        program: what all switches run.
        scheduler: keeps the time.
    """

    program: Program
    scheduler: Scheduler

    def load_other_program(self, switch: VirtualSwitch) -> None:
        """Let it run what its controller does not take for its program, and serve no plan."""
        with self._client(switch) as client:
            client.set_pipeline(self.program, _OTHER_COOKIE)

    def install_older(self, switch: VirtualSwitch, share: SwitchShare, session: int) -> None:
        """Let it serve another plan, in a session that is older than one."""
        with self._client(switch) as client:
            install_each(
                [Share(share.plan, share.network, client)],
                program=self.program,
                session=session - 1 if session > 1 else _OLDEST,
                clock=VirtualClock(self.scheduler),
                pool=InOrder,
            )

    def _client(self, switch: VirtualSwitch) -> P4RuntimeClient:
        def connect(_address: str, _tls: object) -> VirtualConnection:
            return VirtualConnection(_AtOnce(switch), self.scheduler)

        return P4RuntimeClient(switch.name, connect=connect)


_MICROSECOND = 1_000


@dataclass(frozen=True, eq=False)
class Made:
    """What scenarios share, as it is made once.

    Attributes:
        program: what the switches run.
        programs: what it becomes.
    """

    program: Program
    programs: Programs


CRASH = "crash"
_PACKAGE = Path(__file__).parents[2]
# Where an object was is different each time.
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")


def what_crashed(error: BaseException) -> str:
    """Return the type, the message and the place of an error, the same in each process."""
    message = _ADDRESS.sub("0x...", str(error))
    what = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return f"{what}{_place(error.__traceback__)}"


def _place(traceback: TracebackType | None) -> str:
    """Return the last place in this package that an error has come through."""
    place = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        path = Path(code.co_filename)
        if path.is_relative_to(_PACKAGE):
            file = path.relative_to(_PACKAGE.parent)
            place = f", in {file}, line {traceback.tb_lineno}, {code.co_name}"
        traceback = traceback.tb_next
    return place


@dataclass(frozen=True)
class Violation:
    """Something that is not as it must be.

    Attributes:
        name: of the invariant.
        what: one sentence.
    """

    name: str
    what: str


class Scene:
    """The parts of a scenario. Nothing happens before somebody starts them.

    Attributes:
        scenario, subject: as given.
        scheduler, trace: time, and what has happened.
        fates: frames on lines by what became of them.
        faults: what has happened to single frames.
        happened: incidents, with the times in nanoseconds.
        wires: all directions of all lines, by name.
        switches, workers, lines, controller: the parts.
        job: what workers do in this session; None before the first one.
        unwatched: switches that were restarted while no controller knew their session.
        spoilt: vertices of whose sums features are a part that are not the scenario's: of mad
            workers, and of one whose magnitude differs.
        violations: what is not as it must be.
    """

    def __init__(
        self,
        scenario: Scenario,
        subject: Subject,
        made: Made,
        other: Callable[[], Subject],
        *,
        keeps_trace: bool = False,
    ) -> None:
        self.scenario = scenario
        self.subject = subject
        self.scheduler = Scheduler()
        self.trace = Trace(self.scheduler, keeps=keeps_trace)
        self.fates: Counter[str] = Counter()
        self.faults: list[Fault] = []
        self.happened: list[tuple[int, Incident]] = []
        self.wires: dict[str, Wire] = {}
        self.job: Job | None = None
        self.unwatched = 0
        self.violations: list[Violation] = []
        self.spoilt: set[int] = set()
        self._other = other
        self._different = {difference.worker for difference in scenario.differences}
        if scenario.other_plan:
            self._different.update(range(scenario.workers))
        for difference in scenario.differences:
            if difference.kind is DifferenceKind.MAGNITUDE:
                self.spoilt |= subject.oracle.part_of(difference.worker)
        self._mad: dict[int, ByzantineWorker] = {}
        self._starts = 0
        self._ways = Ways(
            self.scheduler,
            self.trace,
            self.source("ways"),
            scenario.latency * _MICROSECOND,
            scenario.jitter * _MICROSECOND,
            self.fates,
            self.faults,
        )
        settings = SwitchSettings(scenario.queue_depth, scenario.queue_rate, scenario.turns)
        self.switches = [
            VirtualSwitch(
                number,
                made.programs,
                settings,
                self.scheduler,
                self.trace,
                random=self.source(f"s{number}"),
            )
            for number in range(len(subject.shares))
        ]
        self.workers = [
            VirtualWorker(number, subject, self.scheduler, self.trace, self.source(f"w{number}"))
            for number in range(scenario.workers)
        ]
        self.lines = [ControlLine(switch, self.scheduler) for switch in self.switches]
        installed = other() if scenario.other_plan else subject
        self.controller = VirtualController(
            installed, self.lines, made.program, self.scheduler, self.trace
        )
        self._former_life = FormerLife(made.program, self.scheduler)
        self._lay_lines()
        self._invite_madness()

    def source(self, name: str) -> Random:
        """Return a generator of its own for a part, so that parts do not disturb each other."""
        return Random(f"{self.scenario.seed}/{name}")  # noqa: S311

    def honest(self, worker: int) -> bool:
        """Tell whether a worker was started as the others, and has not been mad so far."""
        mad = self._mad.get(worker)
        return worker not in self._different and (mad is None or not mad.began)

    @property
    def misfits(self) -> set[int]:
        """The workers that are not honest."""
        return {worker.number for worker in self.workers if not self.honest(worker.number)}

    @property
    def lawless(self) -> bool:
        """Whether somebody has been mad, and a switch was restarted in this session.

        It did not know whose turn it is, and believes all: "Turns" in docs/protocol.md.
        """
        began = any(mad.began for mad in self._mad.values())
        return began and sum(switch.starts for switch in self.switches) > self._starts

    @property
    def served(self) -> tuple[Subject, ...]:
        """All whose plans switches serve at some time in this scenario."""
        incidents = self.scenario.incidents
        relapses = any(incident.kind is IncidentKind.RELAPSE for incident in incidents)
        other = self.scenario.other_plan or relapses
        return (self.subject, self._other()) if other else (self.subject,)

    def has_relapsed(self, switch: int) -> bool:
        """Tell whether a switch has come back with another plan, in a session that is over."""
        where = self.switches[switch].name
        return any(
            incident.kind is IncidentKind.RELAPSE and incident.where == where
            for _, incident in self.happened
        )

    def session_begins(self) -> None:
        """Note that the switches know the turns of a new session."""
        self._starts = sum(switch.starts for switch in self.switches)

    def session_ends(self) -> None:
        """Let nobody be mad any more."""
        for mad in self._mad.values():
            mad.calm()

    def go_mad(self, worker: int, seconds: float) -> None:
        """Let a worker send what it likes for that long."""
        self.spoilt |= self.subject.oracle.part_of(worker)
        self._mad[worker].rave(seconds)

    def come_back_with_another_program(self, switch: int, seconds: float) -> None:
        """Restart a switch; what it runs then is not what its controller loads."""
        restarted = self.switches[switch]
        restarted.restart(seconds, partial(self._former_life.load_other_program, restarted))

    def come_back_with_another_plan(self, switch: int, seconds: float) -> None:
        """Restart a switch; it serves another plan then, in a session that is over."""
        restarted, share = self.switches[switch], self._other().shares[switch]

        def install() -> None:
            session = self.controller.session
            self._former_life.install_older(restarted, share, session)

        restarted.restart(seconds, install)

    def violated(self, name: str, what: str) -> None:
        """Take note that something is not as it must be, once for each name."""
        if all(known.name != name for known in self.violations):
            self.violations.append(Violation(name, what))
            self.trace.note("check", f"{name}: {what}")

    def _lay_lines(self) -> None:
        site, scenario = self.subject.site, self.scenario
        for worker in self.workers:
            switch = self.switches[site.places[worker.number][0]]
            port, link = site.port(worker.number), worker_link(worker.number)
            worker.up = self._wire(f"{link}.up", scenario.up, partial(switch.arrive, port))
            switch.wires[port] = self._wire(f"{link}.down", scenario.down, worker.arrive)
        for name, lower, upper in self.subject.site.cables:
            below, above = self.switches[lower.switch], self.switches[upper.switch]
            arrive_above = partial(above.arrive, upper.port)
            arrive_below = partial(below.arrive, lower.port)
            below.wires[lower.port] = self._wire(f"{name}.up", scenario.cables, arrive_above)
            above.wires[upper.port] = self._wire(f"{name}.down", scenario.cables, arrive_below)

        unknown = {fault.line for fault in scenario.faults} - set(self.wires)
        if unknown:
            raise ScenarioError(
                f"A fault on {min(unknown)!r}, which is not there: take one of "
                f"{', '.join(self.wires)}."
            )

    def _invite_madness(self) -> None:
        """Let those who will be mad see what passes, from the beginning."""
        places = {each.where for each in self.scenario.incidents if each.kind is IncidentKind.MAD}
        for worker in self.workers:
            if worker.name in places:
                number = worker.number
                source = self.source(f"mad/{worker.name}")
                generator = generator_for(self.scenario, self.subject, number, source)
                port = self.subject.site.port(number)
                mad = self._mad[number] = ByzantineWorker(
                    number, generator, worker.up, port, scheduler=self.scheduler, trace=self.trace
                )
                switch = self.switches[self.subject.site.places[number][0]]
                switch.onlookers.append(mad)

    def _wire(self, name: str, rates: Rates, deliver: Deliver) -> Wire:
        told = self.scenario.faults
        faults: Faults
        if told and rates != Rates():
            raise ScenarioError("A scenario has rates or single faults, not both: take one away.")
        if told:
            faults = ToldFaults(fault for fault in told if fault.line == name)
        else:
            faults = Disturbance(name, rates, self.source(name))
        wire = self.wires[name] = Wire(name, self._ways, faults, deliver)
        return wire
