# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Runs with random faults, one after another, for as long as asked."""

import json
import random
import shlex
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Protocol

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.interruptible import Interruption
from switchgnn.commands.run.job import COMPARING, run_job
from switchgnn.commands.run.report import RunOptions, RunReport
from switchgnn.commands.shared.report import RanOn
from switchgnn.controller.controls.congestion import DEFAULT_ECN_THRESHOLD
from switchgnn.host.links.faults import DIRECTIONS, Faults
from switchgnn.host.pace import Pace
from switchgnn.planner.partition.leaf_spine import LeafSpine, even_leaf_spine
from switchgnn.planner.presets import PlanRequest
from switchgnn.topologies import Backend, FabricChoice, cable_name, choose
from switchgnn.topologies.forkserver import Forkserver

_WORKERS = (2, 5)
_ROUNDS = (1, 3)
_SLOTS = (8, 16, 64, 256, 1024)
_SENDS = ("multicast", "cover")
_WIDTHS = (1, 31, 32, 33, 64, 100)
_RATES = {"loss": 0.10, "duplicate": 0.05, "reorder": 0.05, "corrupt": 0.01}
# A direction sometimes lacks a kind of fault: some mistakes only show without it.
_NO_FAULT = 0.25
_BAD_LINK = 0.25
_BAD_LINK_LOSS = 0.2


def draw_run(
    seed: int,
    number: int,
    choice: FabricChoice,
    leaves_and_spines: tuple[int, int] | None = None,
    backend: Backend | None = None,
) -> RunOptions:
    """Return one run of a soak; the same seed and number give the same run."""
    source = random.Random(f"{seed}/{number}")  # noqa: S311
    least = max(_WORKERS[0], leaves_and_spines[0] if leaves_and_spines else 0)
    workers = source.randint(least, least + _WORKERS[1] - _WORKERS[0])
    leaf_spine = even_leaf_spine(workers, *leaves_and_spines) if leaves_and_spines else None
    return RunOptions(
        graph=_graph(source),
        workers=workers,
        features=source.choice((source.choice(_WIDTHS), source.randint(1, 128))),
        rounds=source.randint(*_ROUNDS),
        slots=source.choice(_SLOTS),
        target=choice.target.value,
        fabric=choice.fabric.value,
        bandwidth=None,
        seed=source.randrange(2**16),
        grpc_port=0,
        ecn_threshold=DEFAULT_ECN_THRESHOLD,
        pace=Pace(),
        faults=_faults(source, workers, leaf_spine),
        asked=PlanRequest(send=source.choice(_SENDS)),
        leaf_spine=leaf_spine,
        backend=backend,
    )


def summary_of(run: RunOptions) -> str:
    """Return one line for progress messages."""
    width = "its own" if run.features is None else run.features
    return (
        f"{run.graph}, {run.workers} workers{_where(run)}, {run.slots} slots, {run.asked.send}, "
        f"{run.rounds} round{'s' if run.rounds != 1 else ''} of {width} features"
    )


def _where(run: RunOptions) -> str:
    if run.leaf_spine is None:
        return ""
    return f" on {run.leaf_spine.leaves} leaves and {run.leaf_spine.spines} spines"


def command_of(run: RunOptions) -> list[str]:
    """Return the command that repeats a drawn run; nothing is left to a default."""
    values = {
        "graph": run.graph,
        "workers": run.workers,
        "topology": "leaf-spine" if run.leaf_spine else None,
        "leaves": run.leaf_spine.leaves if run.leaf_spine else None,
        "spines": run.leaf_spine.spines if run.leaf_spine else None,
        "features": run.features,
        "rounds": run.rounds,
        "slots": run.slots,
        "send": run.asked.send,
        "target": run.target,
        "fabric": run.fabric,
        "backend": run.backend.value if run.backend else None,
        "window": run.pace.window,
        "patience": run.pace.patience,
        "ecn-threshold": run.ecn_threshold,
        "seed": run.seed,
        "faults": run.faults,
    }
    given = {name: value for name, value in values.items() if value is not None}
    words = (word for name, value in given.items() for word in (f"--{name}", str(value)))
    return ["switchgnn", "run", *words]


def _graph(source: random.Random) -> str:
    vertices = source.randint(8, 300)
    edges = source.randint(vertices // 2, min(vertices * (vertices - 1) // 2, 6 * vertices))
    made_up = f"random:{vertices}:{edges}:{source.randrange(2**16)}"
    return source.choice(("karate", "digits", made_up, made_up))


def _faults(source: random.Random, workers: int, leaf_spine: LeafSpine | None) -> str:
    words = []
    for direction in DIRECTIONS:
        for kind, most in _RATES.items():
            if source.random() >= _NO_FAULT:
                words.append(f"{direction}.{kind}={source.uniform(0, most):.4f}")
    if source.random() < _BAD_LINK:
        worker, direction = source.randrange(workers), source.choice(DIRECTIONS)
        words.append(f"w{worker}.{direction}.loss={source.uniform(0.1, _BAD_LINK_LOSS):.4f}")
    if leaf_spine and source.random() < _BAD_LINK:
        cable = cable_name(source.randrange(leaf_spine.leaves), source.randrange(leaf_spine.spines))
        loss = source.uniform(0.1, _BAD_LINK_LOSS)
        words.append(f"{cable}.{source.choice(DIRECTIONS)}.loss={loss:.4f}")
    words.append(f"seed={source.randrange(2**16)}")
    return ",".join(words)


# A link of which nothing is said by its name.
_ANY = "w1000000"


def scenario_words(run: RunOptions) -> list[str]:
    """Return the command for the scenario that has the graph, plan and rates of a drawn run.

    What goes wrong on single links alone is left out: a scenario has one rate for all of them.
    """
    faults, leaf_spine = Faults.parse(run.faults), run.leaf_spine
    up, down = (asdict(faults.of(_ANY, direction)) for direction in ("up", "down"))
    scenario = {
        "seed": run.seed,
        "graph": run.graph,
        "workers": run.workers,
        "leaves": leaf_spine.leaves if leaf_spine else 0,
        "spines": leaf_spine.spines if leaf_spine else 0,
        "slots": run.slots,
        "send": str(run.asked.send),
        "width": run.features or 1,
        "rounds": run.rounds,
        "window": run.pace.window,
        "patience": run.pace.patience,
        "up": up,
        "down": down,
        "cables": up if leaf_spine else {},
    }
    return [*shlex.split("python -m tests.simulation --scenario"), json.dumps(scenario)]


EXACT, WRONG, FAILED = 0, 1, 2
# After this number of failures a soak ends, because more would show nothing new.
_MOST_FAILURES = 5


@dataclass(frozen=True)
class SoakOptions:
    """How long to run, on what, and which runs.

    Attributes:
        minutes: the time after which no run is begun; there is at least one run.
        target, fabric: a choice or ``auto``.
        seed: the seed that all runs follow from.
        leaves_and_spines: their numbers; None: a star around one switch.
        backend: of embedded switches; None: as the environment sets it.
        log_dir: a folder for the logs of each run in one of its own; None: those
            of runs that fail are kept in temporary ones.
    """

    minutes: float
    target: str
    fabric: str
    seed: int
    leaves_and_spines: tuple[int, int] | None = None
    backend: Backend | None = None
    log_dir: Path | None = None


@dataclass(frozen=True)
class Failure:
    """A run that was not exact, or could not be done.

    Attributes:
        run: its number, from 0.
        reason: one sentence.
        command: the command that repeats what was drawn; how packets meet is different each time.
        simulated: the command for a scenario much like it in virtual time, where all repeats.
    """

    run: int
    reason: str
    command: str
    simulated: str


@dataclass(frozen=True, kw_only=True)
class SoakReport(RanOn):
    """A whole soak. Runs that failed or were interrupted count only as such.

    Attributes:
        backend: None also where no run came to its end.
        compile_seconds: of all compilations.
        seed: the seed that all runs follow from.
        seconds: how long it took.
        interrupted: whether it ended because it was asked to.
        runs, rounds, packets: what was compared with the reference, and its frames.
        wrong_sums: elements that differ from the reference.
        faults_injected: frames that a fault was injected into, by kind.
        repairs: how often the workers repaired or ignored something, by kind.
        failures: the runs that failed.
    """

    target: str
    fabric: str
    seed: int
    seconds: float
    interrupted: bool
    runs: int
    rounds: int
    packets: int
    wrong_sums: int
    faults_injected: dict[str, int]
    repairs: dict[str, int]
    failures: tuple[Failure, ...]

    @property
    def exit_code(self) -> int:
        """The exit code of the program; a wrong sum counts more than a failure."""
        if self.wrong_sums:
            return WRONG
        return FAILED if self.failures else EXACT


class SoakListener(Protocol):
    """Follows the progress of a soak."""

    def begun(self, number: int, run: RunOptions) -> None:
        """Note that a run begins."""

    def step(self, step: str, done: float, total: int) -> None:
        """Note that a step of the run begins or advances."""

    def ended(self, number: int, run: RunOptions, failure: Failure | None) -> None:
        """Note that a run has ended."""


@dataclass
class _SoakTotals:
    """The totals of all runs so far."""

    numbers: Counter[str] = field(default_factory=Counter)
    injected: Counter[str] = field(default_factory=Counter)
    repairs: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    backend: str | None = None
    backend_reason: str | None = None
    compile_seconds: float | None = None

    def add(self, report: RunReport) -> None:
        self.backend = report.backend
        self.backend_reason = report.backend_reason
        if report.compile_seconds is not None:
            self.compile_seconds = (self.compile_seconds or 0.0) + report.compile_seconds
        self.numbers["runs"] += 1
        self.numbers["rounds"] += report.rounds
        self.numbers["packets"] += report.frames_up + report.frames_down
        self.numbers["wrong_sums"] += report.wrong_sums
        self.injected.update(report.faults_injected)
        self.repairs.update(report.repairs)


def soak(
    options: SoakOptions, listener: SoakListener, nursery: Forkserver | None = None
) -> SoakReport:
    """Run until the time is over, Ctrl-C comes, or too much has failed."""
    choice = choose(options.target, options.fabric, options.backend)
    sums = _SoakTotals()
    started = time.monotonic()
    with Interruption() as interruption:
        for number in count():
            run = draw_run(options.seed, number, choice, options.leaves_and_spines, options.backend)
            listener.begun(number, run)
            try:
                logs = None if options.log_dir is None else options.log_dir / f"run-{number}"
                failure = _run_once(number, run, sums, listener, interruption, nursery, logs)
            except KeyboardInterrupt:
                break
            listener.ended(number, run, failure)
            over = time.monotonic() - started >= 60 * options.minutes
            if over or interruption.came or len(sums.failures) >= _MOST_FAILURES:
                break
    return _report(options, choice, sums, time.monotonic() - started, interruption.came)


def _run_once(
    number: int,
    run: RunOptions,
    sums: _SoakTotals,
    listener: SoakListener,
    interruption: Interruption,
    nursery: Forkserver | None,
    logs: Path | None,
) -> Failure | None:
    def step(name: str, done: float, total: int) -> None:
        if name == COMPARING:
            interruption.later()
        listener.step(name, done, total)

    reason = ""
    interruption.at_once()
    try:
        report = run_job(run, step, nursery=nursery, log_dir=logs)
    except Exception as error:  # a soak has to find errors of every kind
        if interruption.came:
            # The run is not to blame: an interrupted Mininet fails while it cleans up.
            raise KeyboardInterrupt from error
        reason = str(error) if isinstance(error, SwitchGNNError) else repr(error)
    else:
        sums.add(report)
        if not report.exact:
            reason = f"{report.wrong_sums:,} sums differ from the reference."
    finally:
        interruption.later()
    if not reason:
        return None
    commands = shlex.join(command_of(run)), shlex.join(scenario_words(run))
    failure = Failure(number, reason, *commands)
    sums.failures.append(failure)
    return failure


def _report(
    options: SoakOptions, choice: FabricChoice, sums: _SoakTotals, seconds: float, interrupted: bool
) -> SoakReport:
    return SoakReport(
        target=choice.target.value,
        fabric=choice.fabric.value,
        reason=choice.reason,
        backend=sums.backend,
        backend_reason=sums.backend_reason,
        compile_seconds=sums.compile_seconds,
        seed=options.seed,
        seconds=seconds,
        interrupted=interrupted,
        runs=sums.numbers["runs"],
        rounds=sums.numbers["rounds"],
        packets=sums.numbers["packets"],
        wrong_sums=sums.numbers["wrong_sums"],
        faults_injected=dict(sums.injected),
        repairs=dict(sums.repairs),
        failures=tuple(sums.failures),
    )
