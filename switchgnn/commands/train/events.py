# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""TensorBoard events of a training."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.full_disk import why_not_written
from switchgnn.base.machine import how_to_install

_TIMES = ("seconds", "exchange", "waiting", "all_reduce")
_ACCURACIES = ("train", "validation", "test")


class EventsError(SwitchGNNError):
    """TensorBoard events could not be written."""


class TrainEvents:
    """Writes the epochs of one transport to FOLDER/TRANSPORT. Use it as a context manager.

    Args:
        folder: the folder for `tensorboard --logdir`.
        transport: the name of the curve.

    Raises:
        EventsError: TensorBoard is missing, or the folder cannot be written.
    """

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

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        try:
            with self._writing():
                # Closing alone does not tell what could not be written.
                self._writer.flush()
                self._writer.close()
        except EventsError:
            if error is None:
                raise

    def epoch(self, event: dict[str, Any]) -> None:
        """Write worker 0's event of an epoch.

        Raises:
            EventsError: the events of earlier epochs could not be written.
        """
        with self._writing():
            self._write_all(event)

    def _write_all(self, event: dict[str, Any]) -> None:
        self._write("loss", event["loss"], event)
        for name in _TIMES:
            self._write(f"seconds/{name}", event[name], event)
        for name in _ACCURACIES:
            if event["accuracy"] and event["accuracy"][name] is not None:
                self._write(f"accuracy/{name}", event["accuracy"][name], event)
        for name in ("bytes_up", "bytes_down"):
            self._write(f"traffic/{name}", event["traffic"][name], event)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = why_not_written(error, self._folder)
            raise EventsError(f"Cannot write events to {self._folder}: {why}.") from error

    def _write(self, name: str, value: float, event: dict[str, Any]) -> None:
        self._writer.add_scalar(name, value, event["epoch"])
