# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Adds up gradients and counts of all workers over torch.distributed, and tells all what one knows.

Gloo gets tensors on the CPU, wherever those of the model are.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
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


Attending = Callable[[], AbstractContextManager[None]]


class Sums:
    """Adds up over all workers; with one worker there is nothing to add.

    Args:
        first: the rank of worker 0.
        attending: what goes on beside it: answers to workers that still exchange. Without
            them one that missed an acknowledgement would wait for us, and we for it.

    Attributes:
        seconds: the time spent adding so far.
    """

    def __init__(self, first: int = 0, attending: Attending = nullcontext) -> None:
        self.seconds = 0.0
        self._first = first
        self._attending = attending
        self._alone = not dist.is_initialized() or dist.get_world_size() == 1

    def add_gradients(self, parameters: Iterable[nn.Parameter], loss: Tensor) -> float:
        """Replace every gradient by the sum over all workers, in one message with the loss.

        Args:
            parameters: of the model.
            loss: of one element, this worker's share.

        Returns:
            The loss of all workers.
        """
        if self._alone:
            return float(loss.detach())
        used = [parameter for parameter in parameters if parameter.requires_grad]
        for parameter in used:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [parameter.grad for parameter in used if parameter.grad is not None]
        place = gradients[0].device if gradients else loss.device
        flat = torch.cat([each.reshape(-1).to(place) for each in (*gradients, loss.detach())])
        self.add(flat)
        start = 0
        for gradient in gradients:
            gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
            start += gradient.numel()
        return float(flat[start])

    def add(self, values: Tensor) -> Tensor:
        """Replace the values by their sums over all workers, and return them."""
        if not self._alone:
            started = time.perf_counter()
            _through_cpu(values, self._reduce)
            self.seconds += time.perf_counter() - started
        return values

    def spread(self, values: Tensor) -> Tensor:
        """Replace the values by those of worker 0, and return them."""
        if not self._alone:
            _through_cpu(values, self._broadcast)
        return values

    def spread_model(self, model: nn.Module) -> None:
        """Give all workers the weights of worker 0."""
        for tensor in (*model.parameters(), *model.buffers()):
            self.spread(tensor)

    def told(self, text: str) -> str:
        """Return the text of worker 0."""
        data = text.encode()
        length = int(self.spread(torch.tensor([len(data)])))
        said = torch.zeros(length, dtype=torch.uint8)
        said[: len(data)] = torch.tensor(list(data[:length]), dtype=torch.uint8)
        return bytes(self.spread(said).tolist()).decode() if length else ""

    def _reduce(self, values: Tensor) -> None:
        with self._attending(), collective():
            dist.all_reduce(values)

    def _broadcast(self, values: Tensor) -> None:
        with self._attending(), collective():
            dist.broadcast(values, self._first)


def _through_cpu(values: Tensor, change: Callable[[Tensor], None]) -> None:
    """Change the values in place where they are on the CPU, and a copy of them elsewhere."""
    here = values.detach().cpu()
    change(here)
    if values.device != here.device:
        values.detach().copy_(here)
