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
from switchgnn.commands.shared.console import counted, plain_console
from switchgnn.commands.shared.options import FabricOptions, json_option
from switchgnn.commands.shared.outputs import LogOptions, check_outputs
from switchgnn.jobs.logs import told_aloud
from switchgnn.jobs.workers import command_forkserver
from switchgnn.lab.commands.soak_runs import Show, SoakReport
from switchgnn.lab.commands.soak_runs import soak as soak_runs
from switchgnn.topologies import choose

_SEEDS = 2**32

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True, kw_only=True)
class SoakOptions:
    """The options of `switchgnn soak`."""

    minutes: float = option(
        None, "NUMBER", "Begin no run after this many minutes.", default=1.0, min=0
    )
    seed: int | None = option(
        None, "N", "Draw all runs from this seed.", min=0, shown="another each time"
    )
    network: FabricOptions
    as_json: bool = json_option()
    logs: LogOptions


@app.command(epilog="Example: switchgnn soak --minutes 0.1 --seed 7")
@with_groups
def soak(asked: SoakOptions) -> None:
    """Exchange repeatedly over random graphs with random faults.

    Each run draws its workers, graph, slots, features and faults, and compares
    every sum with a reference. Ctrl-C ends it early; the summary comes in any
    case. Exit code 0 when every sum was exact, 1 when one was not, 2 when a run
    could not be done.
    """
    check_outputs({"--log-dir": asked.logs.log_dir})
    seed = random.SystemRandom().randrange(_SEEDS) if asked.seed is None else asked.seed
    network = asked.network
    choice = choose(network.target.value, network.fabric.value, network.backend)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with (
        command_forkserver() as forkserver,
        Progress(*columns, console=plain_console(stderr=True)) as progress,
        told_aloud(verbose=asked.logs.verbose),
    ):
        report = soak_runs(
            choice,
            seed,
            asked.minutes,
            _shown_on(progress, asked.minutes),
            forkserver,
            leaves_and_spines=network.leaves_and_spines(),
            backend=network.backend,
            bmv2_log=network.bmv2_log,
            log_dir=asked.logs.log_dir,
        )
    if asked.as_json:
        typer.echo(json.dumps(report.to_dict()))
    else:
        _print_report(plain_console(), report)
    if report.exit_code:
        raise typer.Exit(report.exit_code)


def _shown_on(progress: Progress, minutes: float) -> Show:
    """Show a bar for the time, and print a line for each run."""
    started = time.monotonic()
    bar = progress.add_task("soak", total=60 * minutes)

    def show(line: str, ended: bool) -> None:
        if ended:
            progress.console.print(line, soft_wrap=True, markup=False, highlight=False)
        else:
            progress.update(bar, description=line, completed=time.monotonic() - started)

    return show


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
        ]
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)
    if report.runs and not report.failures:
        console.print(Text("Every sum equals the reference.", "bold green"), soft_wrap=True)
