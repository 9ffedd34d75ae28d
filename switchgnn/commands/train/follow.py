"""Follows the epochs of a training: for Ctrl-C, and for TensorBoard."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.full_disk import writing
from switchgnn.base.machine import Amount, how_to_install

_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it


class Reached:
    """Reports the progress of trainings if one is interrupted."""

    def __init__(self, epochs: int, checkpoint: Path | None, *, as_json: bool) -> None:
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

    def _writing(self) -> AbstractContextManager[None]:
        return writing(self._folder, "events to ", EventsError)
