"""Output of `switchgnn train`: a line per epoch, and tables at the end."""

import json
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any

import typer
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from switchgnn.base.interruptible import INTERRUPTED
from switchgnn.base.machine import Amount, size_text
from switchgnn.commands.shared.console import numbers_table, progress_bars
from switchgnn.host.registry import transport_kind
from switchgnn.jobs.train_report import TrainReport

# Smaller differences of losses are due to rounding in another order of addition.
_AGREE = 1e-4
# Changes of paths that are listed at the end.
_MOST_CHANGES = 8
# The least share of an epoch for which a link is busy that limits it.
_LIMITS = 0.5


class Epochs(Live):
    """A progress bar of epochs with a line of text below it, and JSON lines if asked for.

    Ctrl-C in its block shows what the training has reached, and exits with its code.
    """

    def __init__(
        self,
        console: Console,
        transport: str,
        epochs: int,
        *,
        checkpoint: Path | None = None,
        as_json: bool,
    ) -> None:
        self._transport = transport
        self._epochs = epochs
        self._checkpoint = checkpoint
        self._as_json = as_json
        self._progress = progress_bars(console)
        self._bar = self._progress.add_task(transport, total=epochs)
        self._words = Text(overflow="ellipsis", no_wrap=True)
        self._accuracy = ""
        self._events: list[dict[str, Any]] = []
        super().__init__(Group(self._progress, self._words), console=console)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        if not self.console.is_terminal:
            self.console.line()
        if isinstance(error, KeyboardInterrupt):
            self._show_reached()
            raise typer.Exit(INTERRUPTED) from None

    def takes(self, transport: str) -> None:
        """Note the transport that `auto` chooses."""
        self._transport = transport

    def step(self, name: str, _done: float, _total: int) -> None:
        """Show the name of a step before the first epoch."""
        before = self._words.plain
        self._say(name)
        # Steps that hang or end soon must be visible.
        if self._words.plain != before:
            self.refresh()

    def note(self, sentence: str) -> None:
        """Print a sentence above the bar, unless the output is JSON."""
        if not self._as_json:
            self.console.print(sentence, soft_wrap=True, highlight=False)

    def epoch(self, event: dict[str, Any]) -> None:
        """Show an epoch."""
        self._events.append(event)
        if self._as_json:
            typer.echo(json.dumps(event))
        accuracy = event["accuracy"]
        if accuracy and accuracy["validation"] is not None:
            self._accuracy = f", val {accuracy['validation']:.1%}"
        compute = event["seconds"] - event["waiting"] - event["all_reduce"]
        self._say(
            f"loss {event['loss']:.4f}{self._accuracy}; ms of worker 0: {_ms(compute)} compute, "
            f"{_ms(event['waiting'])} wait in exchanges of {_ms(event['exchange'])}, "
            f"{_ms(event['all_reduce'])} reduce"
        )
        self._progress.update(self._bar, completed=event["epoch"])

    def _show_reached(self) -> None:
        if self._as_json:
            known = [event["accuracy"]["test"] for event in self._events if event["accuracy"]]
            reached = {
                "event": "interrupted",
                "transport": self._transport,
                "epochs": len(self._events),
                "losses": [event["loss"] for event in self._events],
                "test_accuracy": known[-1] if known else None,
            }
            typer.echo(json.dumps(reached))
            return
        last = self._events[-1]["epoch"] if self._events else 0
        words = f"Interrupted over {self._transport} after {last:,} of {Amount(self._epochs):epoch}"
        if self._checkpoint is not None and self._checkpoint.exists():
            words += f"; the same command goes on from {self._checkpoint}"
        typer.echo(f"{words}.")

    def _say(self, words: str) -> None:
        self._words.plain = f"  {words}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.0f}"


def transports_table(reports: Sequence[TrainReport]) -> Table:
    """Compare transports: loss, accuracy, time and bytes."""
    title = "ms per epoch; bytes of all exchanges on all links, both ways"
    names = ("loss", "test", "ms", "vertices/s", "waiting", "reduce", "bytes", "of plan")
    first = Column("transport", no_wrap=True)
    table = numbers_table(title, first, numbers=names, box=box.SIMPLE_HEAD)
    for report in reports:
        test = report.test_accuracy
        table.add_row(
            report.transport,
            f"{report.losses[-1]:.4f}" if report.losses else "-",
            "-" if test is None else f"{test:.1%}",
            _ms(report.epoch_seconds),
            f"{report.vertices_per_second:,.0f}",
            _ms(report.split["waiting"]),
            _ms(report.split["all_reduce"]),
            size_text(report.total_bytes) if report.total_bytes else "-",
            f"{report.total_bytes / report.expected_bytes:.1%}" if report.expected_bytes else "-",
        )
    return table


def links_table(reports: Sequence[TrainReport]) -> Table | None:
    """Show the bytes of the exchanges on each link; return None without any."""
    networked = [report for report in reports if report.total_bytes]
    if not networked:
        return None
    end = "machine" if networked[0].workers_per_machine > 1 else "worker"
    title = f"kB of exchanges on each {end}'s link, up / down"
    # A title is broken to the width of its table.
    names = (end, *(report.transport for report in networked))
    table = numbers_table(title, numbers=names, box=box.SIMPLE_HEAD, min_width=len(title))
    for worker in range(len(networked[0].bytes_per_link)):
        links = [report.bytes_per_link[worker] for report in networked]
        table.add_row(
            str(worker), *(f"{link['up'] / 1e3:,.0f} / {link['down'] / 1e3:,.0f}" for link in links)
        )
    return table


def closing_line(reports: Sequence[TrainReport]) -> str | None:
    """Return the bytes of each transport, and whether the losses agree; None of one."""
    if len(reports) == 1:
        return None
    first, *others = reports
    words = [f"{first.transport} {_carried(first)}"]
    for report in others:
        times = report.total_bytes / first.total_bytes if first.total_bytes else 0
        much = f", {times:.1f} times as much" if times else ""
        words.append(f"{report.transport} {_carried(report)}{much}")
    line = f"Carried: {'; '.join(words)}."
    differences = largest_difference(reports)
    if not differences:
        return line
    worst = max(differences, key=lambda name: differences[name])
    off = f"{differences[worst]:.1e}"
    if differences[worst] <= _AGREE:
        return f"{line} The losses agree with those of one process, to {off}."
    return f"{line} The losses of {worst} differ from those of one process by up to {off}."


def _carried(report: TrainReport) -> str:
    return size_text(report.total_bytes) if report.total_bytes else "nothing"


def kept_line(reports: Sequence[TrainReport]) -> str | None:
    """Return how often sums were used again; None if never."""
    passes = max(report.kept for report in reports)
    if not passes:
        return None
    return (
        f"Sums of the unchanged features were exchanged once and used again {Amount(passes):time}; "
        "--no-precompute exchanges them each time."
    )


def path_lines(reports: Sequence[TrainReport]) -> list[str]:
    """Return the shares of the paths, and their last changes, where these may change."""
    lines = []
    for report in reports:
        if report.paths is None or report.changes is None:
            continue
        shares = ", ".join(f"{path} {share:.0%}" for path, share in report.path_shares.items())
        reduce = report.paths[-1].get("reduce")
        by = f" Gradients were added up by {reduce} at the end." if reduce else ""
        lines.append(f"Paths of {report.transport}: {shares} of the blocks.{by}")
        lines += [f"  {change['words']}" for change in report.changes[-_MOST_CHANGES:]]
        if (before := len(report.changes) - _MOST_CHANGES) > 0:
            lines.append(f"  {Amount(before):change} before are in the output of --json.")
    return lines


def saving_lines(reports: Sequence[TrainReport]) -> list[str]:
    """Return the bytes with and without compression, of each transport that compresses."""
    return [_saved(report) for report in reports if report.bytes_without]


def _saved(report: TrainReport) -> str:
    without = report.bytes_without or 0
    line = (
        f"{report.transport} with {report.compression}: {size_text(report.total_bytes)} instead "
        f"of {size_text(without)}, {report.total_bytes / without:.1%}"
    )
    if report.epsilon is not None and report.rows:
        line += (
            f"; {(report.skipped_rows or 0) / report.rows:.1%} of the rows were left out, and "
            f"epsilon was {report.epsilon:.3g} at the end"
        )
    return f"{line}."


def largest_difference(reports: Sequence[TrainReport]) -> dict[str, float]:
    """Return the largest difference of each transport's losses from those of ``local``, if any."""
    alone = (each for each in reports if not transport_kind(each.transport).networked)
    local = next(alone, None)
    if local is None:
        return {}
    return {
        report.transport: max(
            (abs(a - b) for a, b in zip(report.losses, local.losses, strict=False)), default=0.0
        )
        for report in reports
        if report is not local
    }


def verdict_lines(reports: Sequence[TrainReport]) -> list[str]:
    """Compare each plan of the switch with the fastest and the leanest path between hosts."""
    plans = [each for each in reports if transport_kind(each.transport).in_switch]
    hosts = [each for each in reports if transport_kind(each.transport).between_hosts]
    if not plans or not hosts or not all(each.epoch_bytes for each in (*plans, *hosts)):
        return []
    fastest = min(hosts, key=lambda report: report.epoch_seconds)
    leanest = min(hosts, key=lambda report: report.epoch_bytes)
    lines = []
    for ours in plans:
        lines += [
            f"Time of an epoch: {ours.transport} {_ms(ours.epoch_seconds)} ms; "
            f"{fastest.transport}, the fastest path between hosts, "
            f"{_ms(fastest.epoch_seconds)} ms. "
            + _compared(ours.epoch_seconds, fastest.epoch_seconds, "time"),
            f"Bytes of an epoch: {ours.transport} {size_text(ours.epoch_bytes)}; "
            f"{leanest.transport}, the leanest path between hosts, "
            f"{size_text(leanest.epoch_bytes)}. "
            + _compared(ours.epoch_bytes, leanest.epoch_bytes, "bytes"),
        ]
    return [*lines, " ".join(_why(report) for report in (*plans, fastest))]


def _compared(ours: float, theirs: float, of: str) -> str:
    if f"{ours / theirs:.2f}" == "1.00":
        return f"Both take the same {of}."
    verb = "wins" if ours < theirs else "loses"
    return f"The switch {verb}: it takes {ours / theirs:.2f} times the {of}."


def _why(report: TrainReport) -> str:
    """Return the share of the busiest link in an epoch, or the frames without a limit."""
    if report.bandwidth is None:
        return (
            f"Over {report.transport}, without a limit of links, an epoch takes "
            f"{report.epoch_frames:,.0f} frames of "
            f"{report.epoch_bytes / report.epoch_frames:,.0f} bytes, and workers wait "
            f"{_ms(report.split['waiting'])} ms for exchanges."
        )
    links = (
        (worker, direction, traffic[f"bytes_{direction}"])
        for worker, traffic in enumerate(report.epoch_traffic)
        for direction in ("up", "down")
    )
    worker, direction, size = max(links, key=itemgetter(2))
    needed = size * 8 / (report.bandwidth * 1e6)
    share = needed / report.epoch_seconds
    end = "machine" if report.workers_per_machine > 1 else "worker"
    limit = "the network is the limit" if share >= _LIMITS else "the network is not the limit"
    return (
        f"The busiest link of {report.transport} ({end} {worker}, {direction}) needs "
        f"{_ms(needed)} ms of an epoch for {size_text(size)} at "
        f"{report.bandwidth:g} Mbit/s, {share:.0%}: {limit}."
    )
