"""All parts of one scenario, and the lines between them."""

import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from types import TracebackType

from tests.simulation.byzantine import ByzantineWorker, generator_for, other_job
from tests.simulation.network import Deliver, Disturbance, LineState, ListedFaults, Wire, WireFaults
from tests.simulation.parts.control_line import ControlLine
from tests.simulation.parts.controller import VirtualController
from tests.simulation.parts.engines import Programs
from tests.simulation.parts.reducer import ReduceJob
from tests.simulation.parts.switch import VirtualSwitch
from tests.simulation.parts.worker import ExchangeJob, VirtualWorker
from tests.simulation.scenario import Incident, IncidentKind, IncidentRates, Scenario, ScenarioError
from tests.simulation.subject import Subjects
from tests.simulation.timing import Scheduler

_MICROSECOND = 1_000
CRASH = "crash"
_CHECKOUT = Path(__file__).parents[2]
_OURS = (_CHECKOUT / "switchgnn", Path(__file__).parent)
# Addresses of objects differ in each run.
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")


def what_crashed(error: BaseException) -> str:
    """Return the type, the message and the line of an error, the same in each process."""
    message = _ADDRESS.sub("0x...", str(error))
    what = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return f"{what}{_line_of(error.__traceback__)}"


def _line_of(traceback: TracebackType | None) -> str:
    """Return the last line in the product or the simulation in a traceback."""
    line = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        path = Path(code.co_filename)
        if any(path.is_relative_to(folder) for folder in _OURS):
            line = f", in {path.relative_to(_CHECKOUT)}, line {traceback.tb_lineno}, {code.co_name}"
        traceback = traceback.tb_next
    return line


@dataclass(frozen=True)
class Violation:
    """A violated invariant: its name and one sentence."""

    name: str
    what: str


def second_job(scenario: Scenario, second: Scenario, port: int) -> Scenario:
    """Return the second job of a scenario, with the switch and the incidents that it shares."""
    common = ("backend", "queue_depth", "queue_rate", "turns", "latency", "jitter")
    shared = [each for each in scenario.incidents if each.where in _SHARED]
    return replace(
        second,
        **{name: getattr(scenario, name) for name in common},
        incidents=tuple(shared),
        port=port,
    )


# What incidents concern both jobs.
_SHARED = ("s0", "controller")


class Scene:
    """The parts of a job of a scenario, not started yet; a second one is beside the first."""

    def __init__(
        self,
        scenario: Scenario,
        subjects: Subjects,
        programs: Programs,
        *,
        keeps_trace: bool = False,
        beside: "Scene | None" = None,
    ) -> None:
        self.scenario = scenario
        self.subject = subjects.of(scenario)
        self.scheduler = beside.scheduler if beside else Scheduler(keeps_trace=keeps_trace)
        self.trace = self.scheduler.trace
        self.happened: list[tuple[int, Incident]] = []  # with times in nanoseconds
        self.wires: dict[str, Wire] = {}  # all directions of all lines
        self.job: ExchangeJob | None = None  # of workers in this session; None before the first one
        self.reduces: ReduceJob | None = None  # None if there are none
        self.unwatched = 0  # switches restarted while no controller knew their session
        self.violations: list[Violation] = []
        self.spoilt: set[int] = set()  # vertices with sums of features of Byzantine workers
        self._byzantine: dict[int, ByzantineWorker] = {}
        self._starts = 0
        latency, jitter = scenario.latency * _MICROSECOND, scenario.jitter * _MICROSECOND
        self.lines_state = LineState(self.scheduler, self.source("ways"), latency, jitter)
        names = [f"{'x' if beside else 'w'}{number}" for number in range(scenario.workers)]
        self.workers = [
            VirtualWorker(number, name, self.subject, self.scheduler, self.source(name))
            for number, name in enumerate(names)
        ]
        if beside:
            self.switches, self.lines = beside.switches[:1], beside.lines[:1]
            self.controller = beside.controller
        else:
            self.switches = [
                VirtualSwitch(
                    number, programs, scenario, self.scheduler, random=self.source(f"s{number}")
                )
                for number in range(scenario.switches)
            ]
            self.lines = [ControlLine(switch, self.scheduler) for switch in self.switches]
            self.controller = VirtualController(
                self.subject, self.lines, subjects.program, self.scheduler
            )
        self._lay_lines()
        self.is_second = beside is not None
        # the other job; and it, if it is installed before
        self.other: Scene | None = beside
        self.before: Scene | None = None
        if scenario.second is not None:
            second = second_job(scenario, scenario.second, max(self.switches[0].wires) + 1)
            self.other = Scene(second, subjects, programs, beside=self)
            if scenario.second_first:
                self.before = self.other
            else:
                self.other.before = self
        self._attach_byzantine()

    def source(self, name: str) -> Random:
        """Return a separate generator for a part, so that parts do not influence each other."""
        return Random(f"{self.scenario.seed}/{name}")

    def honest(self, worker: int) -> bool:
        byzantine = self._byzantine.get(worker)
        return byzantine is None or not byzantine.began

    @property
    def worker_ports(self) -> dict[tuple[int, int], int]:
        topology = self.subject.topology
        numbers = range(len(self.workers))
        return {(topology.positions[it][0], topology.port(it)): it for it in numbers}

    @property
    def byzantine(self) -> set[int]:
        return {number for number, each in self._byzantine.items() if each.began}

    @property
    def lawless(self) -> bool:
        """Whether a worker has been Byzantine, and a switch was restarted in this session."""
        # Such a switch believes all: "Turns" in docs/recovery.md.
        starts = sum(switch.starts for switch in self.switches)
        return bool(self.byzantine) and starts > self._starts

    def session_begins(self) -> None:
        """Note that the switches know the turns of a new session."""
        self._starts = sum(switch.starts for switch in self.switches)

    def happens(self, incident: Incident) -> None:
        """Note an incident, which the second job shares if it is one of the switch."""
        shared = [self.other] if self.other and incident.where in _SHARED else []
        for scene in (self, *shared):
            scene.happened.append((self.scheduler.now, incident))
            scene.unwatched += incident.restarts_switch and not self.controller.watching
        # The workers know the session of the removed job only.
        self.unwatched += incident.kind is IncidentKind.REMOVE

    def session_ends(self) -> None:
        for each in self._byzantine.values():
            each.calm()

    def turn_byzantine(self, worker: int, seconds: float) -> None:
        self.spoilt |= self.subject.oracle.part_of(worker)
        self._byzantine[worker].rave(seconds)

    def violated(self, name: str, what: str) -> None:
        if all(known.name != name for known in self.violations):
            self.violations.append(Violation(name, what))
            self.trace.note("check", f"{name}: {what}")

    def _lay_lines(self) -> None:
        topology, scenario = self.subject.topology, self.scenario
        for worker in self.workers:
            switch = self.switches[topology.positions[worker.number][0]]
            port, link = topology.port(worker.number), worker.name
            worker.up = self._wire(f"{link}.up", scenario.up, partial(switch.arrive, port))
            switch.wires[port] = self._wire(f"{link}.down", scenario.down, worker.arrive)
        for name, lower, upper in self.subject.topology.cables:
            below, above = self.switches[lower.switch], self.switches[upper.switch]
            arrive_above = partial(above.arrive, upper.port)
            arrive_below = partial(below.arrive, lower.port)
            below.wires[lower.port] = self._wire(f"{name}.up", scenario.cables, arrive_above)
            above.wires[upper.port] = self._wire(f"{name}.down", scenario.cables, arrive_below)

        unknown = {fault.line for fault in scenario.faults} - set(self.wires)
        if unknown:
            raise ScenarioError(
                f"A fault on {min(unknown)!r}, which does not exist: choose one of "
                f"{', '.join(self.wires)}."
            )

    def _attach_byzantine(self) -> None:
        """Attach Byzantine workers, which observe frames from the beginning."""
        incidents = self.scenario.incidents
        names = {each.where for each in incidents if each.kind is IncidentKind.BYZANTINE}
        for worker in self.workers:
            if worker.name in names:
                number = worker.number
                source = self.source(f"mad/{worker.name}")
                generator = generator_for(self.scenario, self.subject, number, source)
                port = self.subject.topology.port(number)
                switch = self.switches[self.subject.topology.positions[number][0]]
                byzantine = self._byzantine[number] = ByzantineWorker(
                    number, generator, worker.up, port, scheduler=self.scheduler
                )
                second, blocks = self.other, self.subject.plan.manifest.blocks
                if second is not None and switch is second.switches[0]:
                    own = self.subject.topology.addresses(number)
                    there = second.scenario, second.subject
                    byzantine.other = other_job(*there, blocks, own, source)
                switch.onlookers.append(byzantine)

    def _wire(self, name: str, rates: IncidentRates, deliver: Deliver) -> Wire:
        listed = self.scenario.faults
        faults: WireFaults
        if listed and rates != IncidentRates():
            raise ScenarioError("A scenario has rates or single faults, not both: remove one.")
        if listed:
            faults = ListedFaults(fault for fault in listed if fault.line == name)
        else:
            faults = Disturbance(name, rates, self.source(name))
        wire = self.wires[name] = Wire(name, self.lines_state, faults, deliver)
        return wire
