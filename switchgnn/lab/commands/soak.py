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
from switchgnn.commands.run.report import RunOptions
from switchgnn.commands.shared.console import counted, plain_console, ran_as
from switchgnn.commands.shared.options import SiteOptions
from switchgnn.commands.shared.outputs import LogDirOption, VerboseOption, check_outputs, told_aloud
from switchgnn.commands.shared.workers import fork_nursery
from switchgnn.lab.commands.soak_runs import Failure, SoakOptions, SoakReport, summary_of
from switchgnn.lab.commands.soak_runs import soak as soak_runs
from switchgnn.lab.commands.soak_simulated import SimulatedOptions, soak_simulated

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
            help="Begin no run after this many minutes.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", show_default="another each time", help="All runs follow from it."
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
            help="With --simulated: end after this many exchanges.",
        ),
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option(
            metavar="WHICH",
            rich_help_panel=VIRTUAL_TIME,
            show_default=False,
            help="With --simulated: run this scenario only: a JSON or TOML file, or JSON.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            rich_help_panel=VIRTUAL_TIME,
            show_default=False,
            help="With --simulated: shrink failing scenarios, and draw them in this folder.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print one JSON object.")
    ] = False,
    log_dir: LogDirOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Exchange repeatedly over random graphs with random faults.

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
            raise SwitchGNNError("--simulated starts no processes with logs: remove --log-dir.")
        only = scenario is not None or (seed is not None and exchanges is None and minutes is None)
        asked = SimulatedOptions(
            chosen, exchanges, longest, numbers, site.backend, scenario, only, out
        )
        raise typer.Exit(soak_simulated(asked, as_json=as_json))
    if not (exchanges is None and scenario is None and out is None):
        raise SwitchGNNError("--exchanges, --scenario and --out need --simulated.")
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
            "  random draws are the same then, but not the order of packets of different workers",
            f"  a similar run in virtual time, which repeats exactly: {failure.simulated}",
        ]
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)
    if report.runs and not report.failures:
        console.print(Text("Every sum equals the reference.", "bold green"), soft_wrap=True)
