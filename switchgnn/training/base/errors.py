"""The errors of training."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType

from switchgnn.base.errors import SwitchGNNError


class DatasetError(SwitchGNNError):
    """A data set, or a part of one on disk, cannot be used."""


class TrainingError(SwitchGNNError):
    """A training cannot be done as asked."""


class UnsupportedLayerError(TrainingError):
    """A layer cannot be computed with sums of per-source rows."""


class LostWorkerError(TrainingError):
    """Another worker has ended, or cannot be reached."""


class OutOfStepError(TrainingError):
    """Workers make different calls, or one has left before the others; `workers`: the others."""

    def __init__(self, message: str, workers: Iterable[int]) -> None:
        super().__init__(message)
        self.workers = tuple(workers)


def first_line(error: BaseException) -> str:
    """Return the type of an error and the first line of its message, without the full stop."""
    text = str(error).strip().partition("\n")[0].rstrip(".")[:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@contextmanager
def collective() -> Iterator[None]:
    """Raise LostWorkerError if the others cannot be reached in the block, as when one has ended."""
    try:
        yield
    except (RuntimeError, OSError):
        raise LostWorkerError(
            "Another worker has ended, cannot be reached, or computes for longer than the timeout, "
            "so this one stops: look at the errors of the others."
        ) from None


@contextmanager
def told_in_a_sentence() -> Iterator[None]:
    """Print a SwitchGNNError that leaves the block, and that nobody catches, without a traceback.

    SWITCHGNN_TRACEBACK in the environment prevents this; other errors go to the script's own hook.
    """
    try:
        yield
    except SwitchGNNError:
        hook = sys.excepthook

        def tell(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
            if isinstance(error, SwitchGNNError) and not os.environ.get("SWITCHGNN_TRACEBACK"):
                # At once, as several processes may write to one terminal.
                sys.stderr.write(f"{error.details}Error: {error}\n")
            else:
                hook(kind, error, at)

        sys.excepthook = tell
        raise


class ModelError(TrainingError):
    """The user's model raised an exception."""

    def __init__(self, message: str, details: str) -> None:
        super().__init__(message)
        self.details = details


class JobError(SwitchGNNError):
    """A job that cannot be written, read or joined."""


class AllReduceError(TrainingError, RuntimeError):
    """An all-reduce in the switch has failed; a RuntimeError as those of torch.distributed."""

    def __init__(self, message: str, workers: Iterable[int] = ()) -> None:
        super().__init__(message)
        # the numbers of the workers that the message blames; often empty
        self.workers = tuple(workers)
