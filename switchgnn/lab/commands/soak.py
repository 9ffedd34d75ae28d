# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn soak`: runs with random faults, for as long as asked."""

import json
import random
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.options import OUTPUT, VIRTUAL_TIME, with_groups
from switchgnn.commands.run.job import RunOptions
from switchgnn.commands.shared.console import counted, plain_console, ran_as
from switchgnn.commands.shared.options import SiteOptions
from switchgnn.commands.shared.outputs import LogDirOption, VerboseOption, check_outputs, told_aloud
from switchgnn.commands.shared.workers import fork_nursery
from switchgnn.controller.controls.passage import DEFAULT_ECN_THRESHOLD
from switchgnn.host.pace import Pace
from switchgnn.host.wire.faults import DIRECTIONS
from switchgnn.lab.commands.soak_runs import Failure, SoakOptions, SoakReport
from switchgnn.lab.commands.soak_runs import soak as soak_runs
from switchgnn.lab.commands.soak_simulated import SimulatedOptions, soak_simulated
from switchgnn.planner.chosen import Asked
from switchgnn.planner.partition.leaf_spine import LeafSpine, even_leaf_spine
from switchgnn.topologies import Backend, Choice, cable_name

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
    choice: Choice,
    leaves_and_spines: tuple[int, int] | None = None,
    backend: Backend | None = None,
) -> RunOptions:
    """Return one run of a soak; the same seed and number give the same run.

    Args:
        seed: the seed of the soak.
        number: the number of the run, from 0.
        choice: the switch and the fabric.
        leaves_and_spines: their numbers, each leaf with at least one worker; None: a star.
        backend: what embedded switches run the program as; None: what the environment says.

    Returns:
        The run.
    """
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
        asked=Asked(send=source.choice(_SENDS)),
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


_SEEDS = 2**32
_MINUTES = 1.0


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Example: switchgnn soak --simulated --exchanges 3 --seed 7")
@with_groups
def soak(
    *,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="NUMBER",
            show_default=f"{_MINUTES:g}",
            help="Begin no run after so long.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            show_default="another each time",
            help="All runs follow from it.",
        ),
    ] = None,
    site: SiteOptions,
    simulated: Annotated[
        bool,
        typer.Option(
            "--simulated",
            rich_help_panel=VIRTUAL_TIME,
            help="Hosts, switches and controller in this process, in virtual time. With --seed "
            "and neither --exchanges nor --minutes that scenario alone.",
        ),
    ] = False,
    exchanges: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel=VIRTUAL_TIME,
            show_default=False,
            help="With --simulated: end behind so many.",
        ),
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option(
            metavar="WHICH",
            rich_help_panel=VIRTUAL_TIME,
            show_default=False,
            help="With --simulated: the only scenario: its file, JSON or TOML, or JSON.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            rich_help_panel=VIRTUAL_TIME,
            show_default=False,
            help="With --simulated: make what fails small, and draw it there.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print one JSON object.")
    ] = False,
    log_dir: LogDirOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Exchange over random graphs with random faults, again and again.

    Each run draws its workers, graph, slots, features and faults, and compares
    every sum with a reference. Ctrl-C ends it early; the summary comes in any
    case. Exit code 0 when every sum was exact, 1 when one was not, 2 when a run
    could not be done.
    """
    check_outputs({"--out": out, "--log-dir": log_dir})
    chosen = random.SystemRandom().randrange(_SEEDS) if seed is None else seed
    numbers = site.leaves_and_spines()
    longest = _MINUTES if minutes is None else minutes
    if simulated:
        if log_dir is not None:
            raise SwitchGNNError(
                "--simulated starts no processes that had logs: leave out --log-dir."
            )
        only = scenario is not None or (seed is not None and exchanges is None and minutes is None)
        asked = SimulatedOptions(
            chosen, exchanges, longest, numbers, site.backend, scenario, only, out
        )
        raise typer.Exit(soak_simulated(asked, as_json=as_json))
    if not (exchanges is None and scenario is None and out is None):
        raise SwitchGNNError(
            "--exchanges, --scenario and --out are for --simulated: give that, too."
        )
    options = SoakOptions(
        longest, site.target.value, site.fabric.value, chosen, numbers, site.backend, log_dir
    )
    console = plain_console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with (
        fork_nursery() as nursery,
        Progress(*columns, console=console) as progress,
        told_aloud(verbose=verbose),
    ):
        report = soak_runs(options, _Bar(progress, longest), nursery)
    if as_json:
        typer.echo(json.dumps(report.to_dict()))
    else:
        _print_report(plain_console(), report)
    if report.exit_code:
        raise typer.Exit(report.exit_code)


class _Bar:
    """A progress bar for the time, and a line for each run."""

    def __init__(self, progress: Progress, minutes: float) -> None:
        self._progress = progress
        self._started = self._run_started = time.monotonic()
        self._name = ""
        self._bar = progress.add_task("soak", total=60 * minutes)

    def begun(self, number: int, run: RunOptions) -> None:
        """Show the run."""
        self._name = f"run {number}: {summary_of(run)}"
        self._run_started = time.monotonic()

    def step(self, step: str, _done: float, _total: int) -> None:
        """Show the step of the run and the time that has passed."""
        self._progress.update(
            self._bar,
            description=f"{self._name}: {step.partition(':')[0]}",
            completed=time.monotonic() - self._started,
        )

    def ended(self, _number: int, _run: RunOptions, failure: Failure | None) -> None:
        """Print how the run ended."""
        seconds = time.monotonic() - self._run_started
        how = f"FAILED: {failure.reason}" if failure else "exact"
        self._progress.console.print(
            f"{self._name}: {how} ({seconds:.1f} s)", soft_wrap=True, markup=False, highlight=False
        )


def _print_report(console: Console, report: SoakReport) -> None:
    lines = [
        f"Soaked on: {report.reason}{ran_as(report)}.",
        f"{report.runs:,} runs, {report.rounds:,} rounds, {report.packets:,} packets in "
        f"{report.seconds:.0f} s{', interrupted' if report.interrupted else ''}; "
        f"seed {report.seed}",
        counted("Faults injected", report.faults_injected),
        counted("Repairs", report.repairs),
        f"Wrong sums: {report.wrong_sums:,}; runs that failed: {len(report.failures):,}.",
    ]
    for failure in report.failures:
        lines += [
            f"Run {failure.run}: {failure.reason}",
            f"  repeat it: {failure.command}",
            "  what is drawn is the same then; how packets of different workers meet is not",
            f"  much like it, in virtual time, where all repeats: {failure.simulated}",
        ]
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)
    if report.runs and not report.failures:
        console.print(Text("Every sum equals the reference.", "bold green"), soft_wrap=True)
