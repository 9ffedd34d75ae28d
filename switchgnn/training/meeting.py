# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Workers meet over torch.distributed, which adds up their gradients."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import Store

from switchgnn.base.errors import SwitchGNNError
from switchgnn.host.pace import Pace
from switchgnn.training.errors import LostWorkerError, TrainingError

# The key under which the first worker that fails leaves word, and the most letters of it.
_FAILED, _MOST_LETTERS = "failed", 1000


def patience_of(pace: Pace) -> timedelta:
    """Return how long workers wait for each other: they add gradients when each has its own."""
    return timedelta(seconds=pace.patience + pace.skew)


def share_cores(processes: int) -> None:
    """Limit PyTorch to this process's share of the cores that it may run on.

    More threads than cores slow training down by an order of magnitude. OMP_NUM_THREADS and a
    smaller number of threads that was set before are left as they are.

    Args:
        processes: how many processes run on these cores.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        share = max(1, len(os.sched_getaffinity(0)) // processes)
        torch.set_num_threads(min(share, torch.get_num_threads()))


@contextmanager
def collective() -> Iterator[None]:
    """Call torch.distributed within the block, which fails on all workers once one has ended.

    Raises:
        LostWorkerError: it failed.
    """
    try:
        yield
    except RuntimeError:
        raise LostWorkerError(
            "Another worker has ended or cannot be reached, so this one stops: look at the errors "
            "of the others."
        ) from None


@contextmanager
def together(
    store: Store, rank: int, size: int, pace: Pace, *, worker: int | None = None
) -> Iterator[None]:
    """Take part in the group of all workers within the block.

    Args:
        store: where they meet.
        rank: of this one.
        size: their number.
        pace: how long they wait for each other.
        worker: its number; None: its rank.

    Yields:
        Nothing.

    Raises:
        LostWorkerError: another worker has failed; the error names it if it has left word.
    """
    dist.init_process_group(
        "gloo", store=store, rank=rank, world_size=size, timeout=patience_of(pace)
    )
    try:
        yield
    except LostWorkerError as lost:
        raise _word_left(store) or lost from None
    except BaseException as error:
        _leave_word(store, rank if worker is None else worker, error)
        raise
    finally:
        dist.destroy_process_group()


@contextmanager
def together_in_file(file: Path, rank: int, size: int, pace: Pace) -> Iterator[None]:
    """Take part in the group of workers of one machine, who meet in a file.

    Args:
        file: in a folder of theirs alone.
        rank: of this one.
        size: their number.
        pace: how long they wait for each other.

    Yields:
        Nothing.

    Raises:
        TrainingError: it cannot be written.
    """
    with ExitStack() as stack:
        with collective():
            try:
                store = dist.FileStore(str(file), size)  # type: ignore[attr-defined]
                stack.enter_context(together(store, rank, size, pace))
            except dist.DistStoreError as error:
                raise TrainingError(
                    f"The workers cannot meet in {file}: {error}; make room there, or set TMPDIR "
                    "to a folder on another disk."
                ) from error
        yield


def _leave_word(store: Store, worker: int, error: BaseException) -> None:
    """Let the other workers know why this one ends, before they lose the connection to it."""
    why = str(error) if isinstance(error, SwitchGNNError) else type(error).__name__
    # It may be the store that cannot be reached.
    with suppress(RuntimeError):
        store.compare_set(_FAILED, "", f"Worker {worker} has failed: {why}"[:_MOST_LETTERS])


def _word_left(store: Store) -> LostWorkerError | None:
    """Return the error that names the worker that failed first, if it has left word."""
    with suppress(RuntimeError):
        if store.check([_FAILED]):
            word = store.get(_FAILED).decode(errors="replace")
            return LostWorkerError("".join(each if each.isprintable() else " " for each in word))
    return None
