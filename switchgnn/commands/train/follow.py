"""Writes the epochs of a training for TensorBoard."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import writing
from switchgnn.base.machine import how_to_install

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
