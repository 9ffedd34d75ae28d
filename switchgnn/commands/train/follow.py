# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Follows the epochs of a training: for Ctrl-C, and for TensorBoard."""

import json
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.table import Table

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.full_disk import why_not_written
from switchgnn.base.machine import how_to_install
from switchgnn.commands.shared.console import plain_console
from switchgnn.commands.train.report import TrainReport

_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it


class Reached:
    """Shows the progress of trainings if one is interrupted."""

    def __init__(
        self, reports: Sequence[TrainReport], epochs: int, checkpoint: Path | None, *, as_json: bool
    ) -> None:
        self._reports = reports
        self._epochs = epochs
        self._checkpoint = checkpoint
        self._as_json = as_json
        self._transport = ""
        self._events: list[dict[str, Any]] = []

    def takes(self, transport: str) -> None:
        """Note the transport that `auto` chooses."""
        self._transport = transport

    @contextmanager
    def over(self, transport: str) -> Iterator[None]:
        """Follow the training over a transport; on Ctrl-C, exit with its code."""
        self._transport, self._events = transport, []
        try:
            yield
        except KeyboardInterrupt:
            self._show()
            raise typer.Exit(_INTERRUPTED) from None

    def epoch(self, event: dict[str, Any]) -> None:
        """Note worker 0's event of an epoch."""
        self._events.append(event)

    def _show(self) -> None:
        if self._as_json:
            typer.echo(json.dumps(self._to_dict()))
            return
        console = plain_console(soft_wrap=True, highlight=False)
        console.print(self._sentence())
        if self._reports or self._events:
            console.print(self._table())

    def _sentence(self) -> str:
        last = self._events[-1]["epoch"] if self._events else 0
        words = f"Interrupted over {self._transport} after {last:,} of {self._epochs:,} epochs"
        if self._checkpoint is not None and self._checkpoint.exists():
            return f"{words}; the same command goes on from {self._checkpoint}."
        return f"{words}."

    def _table(self) -> Table:
        table = Table(title="What was reached", box=box.SIMPLE_HEAD)
        table.add_column("transport", no_wrap=True)
        for name in ("epochs", "loss", "test", "ms per epoch"):
            table.add_column(name, justify="right")
        for report in self._reports:
            table.add_row(*_row(report.transport, report.epochs))
        if self._events:
            table.add_row(*_row(self._transport, self._events))
        return table

    def _to_dict(self) -> dict[str, Any]:
        return {
            "event": "interrupted",
            "transport": self._transport,
            "epochs": len(self._events),
            "losses": [event["loss"] for event in self._events],
            "test_accuracy": _test_accuracy(self._events),
        }


def _row(transport: str, events: Sequence[dict[str, Any]]) -> list[str]:
    test = _test_accuracy(events)
    return [
        transport,
        f"{events[-1]['epoch']:,}" if events else "-",
        f"{events[-1]['loss']:.4f}" if events else "-",
        "-" if test is None else f"{test:.1%}",
        f"{statistics.median(event['seconds'] for event in events) * 1000:.0f}" if events else "-",
    ]


def _test_accuracy(events: Sequence[dict[str, Any]]) -> float | None:
    known = [event["accuracy"]["test"] for event in events if event["accuracy"]]
    return known[-1] if known else None


_TIMES = ("seconds", "exchange", "waiting", "all_reduce")


class EventsError(SwitchGNNError):
    """TensorBoard events could not be written."""


class TrainEvents:
    """Writes the epochs of one transport to FOLDER/TRANSPORT, as a context manager."""

    def __init__(self, folder: Path, transport: str) -> None:
        self._folder = folder
        try:
            from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415  slow, seldom used

            with self._writing():
                self._writer = SummaryWriter(str(folder / transport))
        except ImportError as error:
            raise EventsError(
                f"TensorBoard events need tensorboard: {how_to_install('tensorboard')}, "
                "or leave out --tensorboard."
            ) from error

    def __enter__(self) -> "TrainEvents":
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        try:
            with self._writing():
                # Closing alone does not report failed writes.
                self._writer.flush()
                self._writer.close()
        except EventsError:
            if error is None:
                raise

    def epoch(self, event: dict[str, Any]) -> None:
        """Write worker 0's event of an epoch."""
        values = {
            "loss": event["loss"],
            **{f"seconds/{name}": event[name] for name in _TIMES},
            **{f"accuracy/{name}": value for name, value in (event["accuracy"] or {}).items()},
            **{f"traffic/{name}": event["traffic"][name] for name in ("bytes_up", "bytes_down")},
        }
        with self._writing():
            for name, value in values.items():
                if value is not None:
                    self._writer.add_scalar(name, value, event["epoch"])

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = why_not_written(error, self._folder)
            raise EventsError(f"Cannot write events to {self._folder}: {why}.") from error
