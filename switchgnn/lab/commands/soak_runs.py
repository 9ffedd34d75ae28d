"""Runs with random faults, one after another, for as long as asked."""

import random
import shlex
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.interruptible import Interruption
from switchgnn.controller.controls.congestion import DEFAULT_ECN_THRESHOLD
from switchgnn.host.base.pace import Pace
from switchgnn.host.links.faults import DIRECTIONS
from switchgnn.jobs.report import RanOn
from switchgnn.jobs.run import COMPARING, RunOptions, RunReport, run_job
from switchgnn.planner.partition.leaf_spine import LeafSpine, even_leaf_spine
from switchgnn.planner.presets import PlanRequest
from switchgnn.topologies import Backend, Bmv2Log, FabricChoice, cable_name
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
        ecn_threshold=DEFAULT_ECN_THRESHOLD,
        pace=Pace(),
        faults=_faults(source, workers, leaf_spine),
        request=PlanRequest(send=source.choice(_SENDS)),
        leaf_spine=leaf_spine,
        backend=backend,
    )


def summary_of(run: RunOptions) -> str:
    """Return one line for progress messages."""
    width = "its own" if run.features is None else run.features
    over = run.leaf_spine
    where = f" on {over.leaves} leaves and {over.spines} spines" if over else ""
    return (
        f"{run.graph}, {run.workers} workers{where}, {run.slots} slots, {run.request.send}, "
        f"{run.rounds} round{'s' if run.rounds != 1 else ''} of {width} features"
    )


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
        "send": run.request.send,
        "target": run.target,
        "fabric": run.fabric,
        "backend": run.backend.value if run.backend else None,
        "window": run.pace.window,
        "timeout": run.pace.timeout,
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


EXACT, WRONG, FAILED = 0, 1, 2
# After this number of failures a soak ends, because more would show nothing new.
_MOST_FAILURES = 5


@dataclass(frozen=True)
class Failure:
    """A run that was not exact, or could not be done."""

    run: int  # its number, from 0
    reason: str  # one sentence
    command: str  # the command that repeats what was drawn; how packets meet is different each time


@dataclass(kw_only=True)
class SoakReport(RanOn):
    """A whole soak. Runs that failed or were interrupted count only as such."""

    target: str
    fabric: str
    seed: int  # all runs follow from it
    seconds: float = 0.0
    interrupted: bool = False  # whether it ended because it was asked to
    runs: int = 0
    rounds: int = 0
    packets: int = 0
    wrong_sums: int = 0  # elements that differ from the reference
    faults_injected: Counter[str] = field(default_factory=Counter)
    repairs: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """The exit code of the program; a wrong sum counts more than a failure."""
        if self.wrong_sums:
            return WRONG
        return FAILED if self.failures else EXACT

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data; before Python 3.12 `asdict` does not copy a Counter."""
        return {**vars(self), "failures": [vars(failure) for failure in self.failures]}

    def add(self, report: RunReport) -> None:
        """Add a run that came to its end."""
        self.backend = report.backend
        self.backend_reason = report.backend_reason
        if report.compile_seconds is not None:
            self.compile_seconds = (self.compile_seconds or 0.0) + report.compile_seconds
        self.runs += 1
        self.rounds += report.rounds
        self.packets += report.frames_up + report.frames_down
        self.wrong_sums += report.wrong_sums
        self.faults_injected.update(report.faults_injected)
        self.repairs.update(report.repairs)


# Called with a line about the current run, and whether that has ended.
Show = Callable[[str, bool], None]


def soak(
    choice: FabricChoice,
    seed: int,
    minutes: float,
    show: Show,
    forkserver: Forkserver | None = None,
    *,
    leaves_and_spines: tuple[int, int] | None = None,
    backend: Backend | None = None,
    bmv2_log: Bmv2Log = Bmv2Log.OFF,
    log_dir: Path | None = None,
) -> SoakReport:
    """Run until the time is over, Ctrl-C comes, or too much has failed.

    `minutes` is the time after which no run is begun; there is at least one. `show` is called with
    the progress. The logs of each run go to a folder of its own in `log_dir`; None: those of runs
    that fail are kept in temporary ones.
    """
    report = SoakReport(
        target=choice.target.value, fabric=choice.fabric.value, reason=choice.reason, seed=seed
    )
    started = time.monotonic()
    with Interruption() as interruption:
        for number in count():
            run = draw_run(seed, number, choice, leaves_and_spines, backend)
            run = replace(run, bmv2_log=bmv2_log)
            logs = None if log_dir is None else log_dir / f"run-{number}"
            try:
                _run_once(number, run, report, show, interruption, forkserver, logs)
            except KeyboardInterrupt:
                break
            over = time.monotonic() - started >= 60 * minutes
            if over or interruption.came or len(report.failures) >= _MOST_FAILURES:
                break
    report.seconds = time.monotonic() - started
    report.interrupted = interruption.came
    return report


def _run_once(
    number: int,
    run: RunOptions,
    report: SoakReport,
    show: Show,
    interruption: Interruption,
    forkserver: Forkserver | None,
    logs: Path | None,
) -> None:
    name, started = f"run {number}: {summary_of(run)}", time.monotonic()

    def step(step: str, _done: float, _total: int) -> None:
        if step == COMPARING:
            interruption.later()
        show(f"{name}: {step.partition(':')[0]}", False)

    reason = ""
    interruption.at_once()
    try:
        told = run_job(run, step, forkserver=forkserver, log_dir=logs)
    except Exception as error:  # a soak has to find errors of every kind
        if interruption.came:
            # The run is not to blame: an interrupted Mininet fails while it cleans up.
            raise KeyboardInterrupt from error
        reason = str(error) if isinstance(error, SwitchGNNError) else repr(error)
    else:
        report.add(told)
        if not told.exact:
            reason = f"{told.wrong_sums:,} sums differ from the reference."
    finally:
        interruption.later()
    if reason:
        report.failures.append(Failure(number, reason, shlex.join(command_of(run))))
    how = f"FAILED: {reason}" if reason else "exact"
    show(f"{name}: {how} ({time.monotonic() - started:.1f} s)", True)
