# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The state of a training on disk; each worker has its own file, since random numbers differ."""

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from torch import nn

from switchgnn.full_disk import why_not_written
from switchgnn.npy import ArraysError
from switchgnn.planner.arrays.whole_file import unfinished_file
from switchgnn.training.errors import TrainingError
from switchgnn.training.layers.dropout import dropout_calls, restore_dropout_calls
from switchgnn.zip_archive import check_not_packed

_FORMAT = "switchgnn-checkpoint-2"
_REMEDY = "train with the same options as before, or name another file"
# Epochs done, best accuracy, evaluations since then: of a new training.
_NOTHING = (0, -1.0, 0)


def save_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    epoch: int,
    best: float,
    tries: int,
    by_all: Callable[[bool], bool],
) -> None:
    """Write a checkpoint; if a worker cannot, the previous files of all workers stay.

    The previous one is kept beside it: a worker that is killed meanwhile may be one behind.

    Args:
        path: the file.
        model: the model, whose weights and dropout calls are saved.
        optimizer: the optimizer, whose state is saved.
        epoch: the number of epochs done.
        best: the best validation accuracy so far.
        tries: the number of evaluations since the best one.
        by_all: told whether this worker has written its own; tells whether all have.

    Raises:
        TrainingError: this worker cannot write its own.
    """
    content = {
        "format": _FORMAT,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "random": torch.get_rng_state(),
        "dropout": dropout_calls(model),
        "epoch": epoch,
        "best": best,
        "tries": tries,
    }
    # PyTorch would not say why it cannot write to a file.
    data = io.BytesIO()
    torch.save(content, data)
    problem: OSError | None = None
    with ExitStack() as stack:
        try:
            unfinished = stack.enter_context(unfinished_file(path))
            unfinished.file.write(data.getbuffer())
            unfinished.settle()
        except OSError as error:
            problem = error
        if by_all(problem is None):
            try:
                with suppress(FileNotFoundError):
                    path.replace(_previous(path))
                unfinished.put()
            except OSError as error:
                problem = error
    if problem is not None:
        why = why_not_written(problem, path)
        raise TrainingError(f"Cannot write the checkpoint {path}: {why}.") from problem


def load_common_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    least: Callable[[int], int],
    by_all: Callable[[bool], bool],
) -> tuple[int, float, int]:
    """Restore the newest checkpoint that all workers have, if there is one.

    Args:
        path: the file; the one before it is looked at, too.
        model: the model to restore.
        optimizer: the optimizer to restore.
        least: told this worker's newest epoch; tells the least of all workers.
        by_all: told whether this worker has that one; tells whether all have.

    Returns:
        As load_checkpoint.

    Raises:
        TrainingError: a file is no checkpoint or of another model, or the workers' are of
            different trainings.
    """
    files = {_read(file)["epoch"]: file for file in (_previous(path), path) if file.exists()}
    epoch = least(max(files, default=0))
    # Who has none yet was killed before its first: then the others have no more than one.
    if not by_all(epoch in files or (epoch == 0 and len(files) <= 1)):
        raise TrainingError(
            f"The workers' checkpoints {path}… are of different epochs, and not by one evaluation "
            "as where a training is killed. Remove them to start anew."
        )
    return load_checkpoint(files.get(epoch, path), model, optimizer) if epoch else _NOTHING


def load_checkpoint(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[int, float, int]:
    """Restore a checkpoint if there is one.

    Args:
        path: the file.
        model: the model to restore; it must have the shapes of the one that was saved.
        optimizer: the optimizer to restore.

    Returns:
        Epochs done, best validation accuracy, evaluations since then.

    Raises:
        TrainingError: the file is no checkpoint, or of another model.
    """
    if not path.exists():
        return _NOTHING
    content = _read(path)
    with _of_this_model(path):
        model.load_state_dict(content["model"])
        optimizer.load_state_dict(content["optimizer"])
        restore_dropout_calls(model, content["dropout"])
        torch.set_rng_state(content["random"])
        return int(content["epoch"]), float(content["best"]), int(content["tries"])


def _previous(path: Path) -> Path:
    return path.with_name(f"{path.name}.before")


def _read(path: Path) -> dict[str, Any]:
    try:
        # PyTorch would unpack whatever it finds.
        check_not_packed(path, _REMEDY)
    except ArraysError as error:
        raise TrainingError(f"This is no checkpoint: {error}.") from error
    with _of_this_model(path):
        # Only tensors and plain data are loaded, so that no pickle in the file is executed.
        content: dict[str, Any] = torch.load(path, weights_only=True)
        if content["format"] != _FORMAT:
            raise KeyError("format")
        return content | {"epoch": int(content["epoch"])}


@contextmanager
def _of_this_model(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise TrainingError(
            f"{path} is no checkpoint of this model ({type(error).__name__}): {_REMEDY}."
        ) from error
