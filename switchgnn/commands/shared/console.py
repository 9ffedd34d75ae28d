"""The console of all commands: names from users are printed as they are, brackets included."""

import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich import progress as bars
from rich.console import Console
from rich.table import Column, Table

from switchgnn.base.machine import Amount
from switchgnn.host.direct.framing import FRAGMENT
from switchgnn.host.registry import HOST, HOST_PARTIAL
from switchgnn.jobs.report import LeafSpineReport
from switchgnn.planner.plan.manifest import REPLICAS

# Steps that begin earlier are not worth a line.
_QUIET_SECONDS = 0.5


def plain_console(
    *, stderr: bool = False, highlight: bool = True, soft_wrap: bool = False
) -> Console:
    """Make a console without markup; colours are `rich.text.Text`."""
    console = Console(
        stderr=stderr, highlight=highlight, soft_wrap=soft_wrap, markup=False, emoji=False
    )
    if not (console.is_terminal or os.environ.get("COLUMNS")):
        console.width = 100_000  # Nothing is cut in a pipe.
    return console


def progress_bars(console: Console) -> bars.Progress:
    """Return the progress bars of a command."""
    return bars.Progress(
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        console=console,
    )


class StepBars:
    """Shows one progress bar per step."""

    def __init__(self, progress: bars.Progress) -> None:
        self._progress = progress
        self._bars: dict[str, bars.TaskID] = {}

    def __call__(self, step: str, done: float, total: int) -> None:
        """Show how far a step is; a new one ends the one before."""
        name, _, detail = step.partition(": ")
        if name not in self._bars:
            self.finish()
            self._bars[name] = self._progress.add_task(name, total=None)
        self._progress.update(
            self._bars[name],
            description=f"{name}: {detail}" if detail else name,
            completed=done,
            total=total or None,
        )

    def finish(self) -> None:
        """Show the last step as done."""
        for name, bar in list(self._bars.items())[-1:]:
            total = self._progress.tasks[bar].total or 1
            self._progress.update(bar, description=name, completed=total, total=total)


def counted(title: str, counts: dict[str, int]) -> str:
    """Return the counts that are not 0 as a sentence."""
    words = (f"{number:,} {name.replace('_', ' ')}" for name, number in counts.items() if number)
    return f"{title}: {', '.join(words) or 'none'}."


def captured_line(files: Sequence[Path]) -> str:
    """Return the folder and the size of recordings."""
    size = sum(each.stat().st_size for each in files if each.exists())
    links = f"{Amount(len(files)):link}: {files[0].parent}"
    return f"Packets of {links}, {size:,} bytes; none was left out."


class Steps:
    """Prints each step on stderr before it, unless the work has just begun. A context manager.

    Libraries such as METIS block Python: no spinner turns, and Ctrl-C would wait for them. So
    Ctrl-C ends the process at once. That is safe, as plans are moved into place in one step.
    """

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._before: Any = None

    def __enter__(self) -> "Steps":
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, signal.SIG_DFL)
        return self

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """Let Ctrl-C in the block clean up, as usual."""
        if self._before is None:
            yield
            return
        signal.signal(signal.SIGINT, self._before)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.SIG_DFL)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def tell(self, step: str) -> None:
        """Begin a step."""
        seconds = time.monotonic() - self._start
        if seconds >= _QUIET_SECONDS:
            typer.echo(f"{seconds:7.1f} s  {step}", err=True)


def numbers_table(title: str, *texts: Column | str, numbers: Iterable[str], **how: Any) -> Table:  # noqa: ANN401
    """Make a table with columns of texts and then of numbers; `how` as `rich.table.Table` has."""
    return Table(*texts, *(Column(each, justify="right") for each in numbers), title=title, **how)


def leaf_spine_table(
    report: LeafSpineReport, what: str = "Bytes", counted: str = "counted"
) -> Table:
    """Return bytes up and down: counted, planned, and of other ways."""
    frames = "fragments" if report.host_mtu == FRAGMENT else f"MTU {report.host_mtu:,}"
    switches = f"{Amount(report.leaves):leaf} and {Amount(report.spines):spine}"
    table = numbers_table(f"{what} between {switches}", numbers=("", "up", "down"))
    partial_down = report.host_partial_bytes_down
    rows: tuple[tuple[str, int | None, int | None], ...] = (
        (counted, report.bytes_up, report.bytes_down),
        ("planned", report.planned_bytes_up, report.planned_bytes_down),
        ("sums at spines only", report.single_bytes_up, report.single_bytes_down),
        (f"{HOST.name}, {frames}", report.host_bytes_up, report.host_bytes_down),
        (f"{HOST_PARTIAL.name}, {frames}", report.host_partial_bytes_up, partial_down),
    )
    for name, *columns in rows:
        table.add_row(name, *("-" if value is None else f"{value:,}" for value in columns))
    return table


def graph_text(vertices: int, edges: int, send: str | None) -> str:
    """Say how large a graph is, or the stars of a vertex cut, by what workers send."""
    if send == REPLICAS:
        return f"{Amount(vertices):replica}, {Amount(edges // 2):mirror}"
    return f"{Amount(vertices):vertex}, {Amount(edges):directed edge}"
