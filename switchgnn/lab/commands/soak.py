# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn soak`: runs with random faults, for as long as asked."""

import json
import random
import time
from dataclasses import dataclass

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from switchgnn.base.options import option, with_groups
from switchgnn.commands.run.report import RunOptions
from switchgnn.commands.shared.console import counted, plain_console
from switchgnn.commands.shared.options import SiteOptions, json_option
from switchgnn.commands.shared.outputs import LogOptions, check_outputs, told_aloud
from switchgnn.commands.shared.workers import fork_nursery
from switchgnn.lab.commands.soak_runs import Failure, SoakOptions, SoakReport, summary_of
from switchgnn.lab.commands.soak_runs import soak as soak_runs

_SEEDS = 2**32

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True, kw_only=True)
class AskedSoak:
    """The options of `switchgnn soak`."""

    minutes: float = option(
        None, "NUMBER", "Begin no run after this many minutes.", default=1.0, min=0
    )
    seed: int | None = option(
        None, "N", "All runs follow from it.", min=0, shown="another each time"
    )
    site: SiteOptions
    as_json: bool = json_option()
    logs: LogOptions


@app.command(epilog="Example: switchgnn soak --minutes 0.1 --seed 7")
@with_groups
def soak(asked: AskedSoak) -> None:
    """Exchange repeatedly over random graphs with random faults.

    Each run draws its workers, graph, slots, features and faults, and compares
    every sum with a reference. Ctrl-C ends it early; the summary comes in any
    case. Exit code 0 when every sum was exact, 1 when one was not, 2 when a run
    could not be done.
    """
    check_outputs({"--log-dir": asked.logs.log_dir})
    seed = random.SystemRandom().randrange(_SEEDS) if asked.seed is None else asked.seed
    site = asked.site
    numbers = site.leaves_and_spines()
    options = SoakOptions(
        *(asked.minutes, site.target.value, site.fabric.value, seed, numbers, site.backend),
        asked.logs.log_dir,
    )
    console = plain_console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with (
        fork_nursery() as nursery,
        Progress(*columns, console=console) as progress,
        told_aloud(verbose=asked.logs.verbose),
    ):
        report = soak_runs(options, _Bar(progress, asked.minutes), nursery)
    if asked.as_json:
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
        f"Soaked on: {report.ran_on()}",
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
            "  a similar run in virtual time, from a checkout, which repeats exactly: "
            f"{failure.simulated}",
        ]
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)
    if report.runs and not report.failures:
        console.print(Text("Every sum equals the reference.", "bold green"), soft_wrap=True)
