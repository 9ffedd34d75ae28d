"""PyTorch in commands: what is said where it is missing, and what is imported before a fork."""

import ctypes
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.machine import how_to_install
from switchgnn.commands.shared.workers import command_forkserver
from switchgnn.topologies.forkserver import Forkserver

# Threads of OpenMP that wait for each other would spin, and switch and workers share the cores.
# https://gcc.gnu.org/onlinedocs/libgomp/OMP_005fWAIT_005fPOLICY.html
ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE"}
_PYTORCH, _PYG = "torch", "torch_geometric"
_WORKER = "switchgnn.training.train_worker"
_NVIDIA_DRIVER, _AMD_DEVICE = "libcuda.so.1", Path("/dev/kfd")


def require_training(what: str, *packages: str) -> None:
    """Raise an error that names the extra unless the packages are installed; import nothing."""
    for name in packages or (_PYTORCH, _PYG):
        if find_spec(name) is None:
            raise _missing(what, name)


def import_training(module: str, what: str) -> Any:  # noqa: ANN401
    """Import a module of `switchgnn.training` that needs PyTorch for something."""
    try:
        return importlib.import_module(f"switchgnn.training.{module}")
    except ImportError as error:
        raise _missing(what, error.name) from error


def _missing(what: str, name: str | None) -> SwitchGNNError:
    return SwitchGNNError(
        f"{what} needs PyTorch and PyTorch Geometric, but {name} is missing: "
        f"{how_to_install('training')}."
    )


def forks_lose_the_gpu() -> bool:
    """Return whether PyTorch Geometric, imported before a fork, makes PyTorch fail after it.

    Its import initialises the driver of the GPU, which a forked process cannot use. This function
    loads the driver's library without initialising it.
    """
    version = importlib.import_module(f"{_PYTORCH}.version")
    if getattr(version, "hip", None):
        return _AMD_DEVICE.exists()
    if not version.cuda:
        return False
    try:
        ctypes.CDLL(_NVIDIA_DRIVER)
    except OSError:
        return False
    return True


def imported_before_forks() -> tuple[str, ...]:
    """Return the modules that a forkserver of training workers may import."""
    return (_PYTORCH,) if forks_lose_the_gpu() else (_WORKER,)


@contextmanager
def training_forkserver() -> Iterator[Forkserver]:
    """Import PyTorch and PyTorch Geometric, and yield a running forkserver of training workers.

    It is forked before PyTorch computes anything here: a fork of a process with threads of OpenMP
    waits for them forever. https://github.com/pytorch/pytorch/issues/17199
    """
    require_training("Training")
    os.environ.update(ENVIRONMENT)
    for name in imported_before_forks():
        importlib.import_module(name)
    with command_forkserver() as forkserver:
        import_training("train_worker", "Training")
        yield forkserver
