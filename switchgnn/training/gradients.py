"""Sums of gradients and counts over all workers, and broadcasts, with torch.distributed.

Gloo works on the CPU; tensors on other devices are copied.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import Store

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.tasks import EventWriter, run_task
from switchgnn.host.pace import Pace
from switchgnn.host.reduce.reducer import Reducer
from switchgnn.host.reduce.worker import FLOATS, INTEGERS, AllReduceTask, tensor_of
from switchgnn.training.errors import LostWorkerError, TrainingError, collective
from switchgnn.training.machine import Machine

# The key of the first failure in the store, and the most letters of its message.
_FAILED, _MOST_LETTERS = "failed", 1000


def timeout_of(pace: Pace) -> timedelta:
    """Return how long workers wait for each other in a collective operation."""
    return timedelta(seconds=pace.timeout + pace.skew)


def share_cores(processes: int) -> None:
    """Limit PyTorch to this process's share of the cores that it may run on.

    More threads than cores slow training down by an order of magnitude. OMP_NUM_THREADS and a
    smaller number of threads take precedence.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        share = max(1, len(os.sched_getaffinity(0)) // processes)
        torch.set_num_threads(min(share, torch.get_num_threads()))


@contextmanager
def together(
    store: Store, rank: int, size: int, pace: Pace, *, worker: int | None = None
) -> Iterator[None]:
    """Join the group of all workers for the block."""
    dist.init_process_group(
        "gloo", store=store, rank=rank, world_size=size, timeout=timeout_of(pace)
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
    """Join the group of the workers of one machine, which meet in a file."""
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
    why = str(error) if isinstance(error, SwitchGNNError) else type(error).__name__
    # The store itself may be unreachable.
    with suppress(RuntimeError):
        store.compare_set(_FAILED, "", f"Worker {worker} has failed: {why}"[:_MOST_LETTERS])


def _word_left(store: Store) -> LostWorkerError | None:
    with suppress(RuntimeError):
        if store.check([_FAILED]):
            why = store.get(_FAILED).decode(errors="replace")
            return LostWorkerError("".join(each if each.isprintable() else " " for each in why))
    return None


class GradientSums:
    """Sums over all workers, and broadcasts from worker 0, whose rank is ``first``.

    `reducer`: adds up gradients of float32 in the switch; None: Gloo does. `machine`: the processes
    of the worker's machine, which add up first.
    """

    def __init__(
        self,
        first: int = 0,
        attending: Callable[[], AbstractContextManager[None]] = nullcontext,
        reducer: Reducer | None = None,
        machine: Machine | None = None,
    ) -> None:
        self.seconds = 0.0  # the time spent adding so far
        self.gradients = 0  # numbers that were added up as gradients so far
        self._reducer = reducer
        self._first = first
        self._attending = attending
        self._machine = machine
        self._alone = not dist.is_initialized() or dist.get_world_size() == 1

    def add_with_gradients(
        self, parameters: Iterable[nn.Parameter], shares: Tensor
    ) -> tuple[float, ...]:
        """Replace every gradient by its sum over all workers, and return the sums of some numbers.

        `shares`: [k], of about the size of gradients, as the switch adds them in the same groups.
        """
        shares = shares.detach()
        if self._alone:
            return tuple(map(float, shares))
        gradients = []
        for parameter in parameters:
            if parameter.requires_grad:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                gradients.append(parameter.grad)
        device = gradients[0].device if gradients else shares.device
        flat = torch.cat([each.reshape(-1).to(device) for each in (*gradients, shares)])
        self.gradients += flat.numel()
        self._add(flat, self._reduce if self._reducer is None else self._reduce_in_switch)
        sizes = [gradient.numel() for gradient in gradients]
        for gradient, total in zip(
            gradients, torch.split(flat[: -len(shares)], sizes), strict=True
        ):
            gradient.copy_(total.view_as(gradient))
        return tuple(map(float, flat[-len(shares) :]))

    def add(self, values: Tensor) -> Tensor:
        """Replace the values by their sums over all workers, and return them."""
        if not self._alone:
            self._add(values, self._reduce)
        return values

    def _add(self, values: Tensor, reduce: Callable[[Tensor], None]) -> None:
        started = time.perf_counter()
        if self._machine is None:
            _through_cpu(values, reduce)
        else:
            with self._attending():
                _through_cpu(values, partial(self._machine.add, reduce))
        self.seconds += time.perf_counter() - started

    def spread(self, values: Tensor) -> Tensor:
        """Replace the values by those of worker 0, and return them."""
        if not self._alone:
            _through_cpu(values, self._broadcast)
        return values

    def spread_model(self, model: nn.Module) -> None:
        """Give all workers the weights of worker 0."""
        for tensor in (*model.parameters(), *model.buffers()):
            self.spread(tensor)

    def spread_text(self, text: str) -> str:
        """Return the text of worker 0."""
        data = text.encode()
        length = int(self.spread(torch.tensor([len(data)])))
        if not length:
            return ""
        message = torch.zeros(length, dtype=torch.uint8)
        message[: len(data)] = torch.tensor(list(data[:length]), dtype=torch.uint8)
        return bytes(self.spread(message).tolist()).decode()

    def _reduce_in_switch(self, values: Tensor) -> None:
        if self._reducer is None or values.dtype != torch.float32:
            self._reduce(values)
            return
        values.copy_(torch.from_numpy(self._reducer.submit(values.numpy()).result()))

    def _reduce(self, values: Tensor) -> None:
        machine = self._machine
        with nullcontext() if machine else self._attending(), collective():
            dist.all_reduce(values, group=machine and machine.leaders)

    def _broadcast(self, values: Tensor) -> None:
        with self._attending(), collective():
            dist.broadcast(values, self._first)


def _through_cpu(values: Tensor, change: Callable[[Tensor], None]) -> None:
    """Change the values in place, by way of a copy where they are not on the CPU."""
    here = values.detach().cpu()
    change(here)
    if values.device != here.device:
        values.detach().copy_(here)


@dataclass(frozen=True)
class GlooTask:
    """The all-reduces of `switchgnn allreduce`, with Gloo's ring; `meeting`: the workers' file."""

    reduce: AllReduceTask
    workers: int
    meeting: Path


def run_gloo_worker(line: str) -> None:
    """Reduce the tensors of an ``AllReduceTask``; report the mean seconds of one of floats."""
    run_task(GlooTask, line, _run_gloo)


def _run_gloo(task: GlooTask, events: EventWriter) -> None:
    reduce = task.reduce
    share_cores(task.workers)
    with (
        together_in_file(task.meeting, reduce.config.worker, task.workers, reduce.pace),
        collective(),
    ):
        seconds = 0.0
        for kind in (INTEGERS, FLOATS):
            seconds = _time_gloo(reduce, kind)
    events.write("finished", seconds=seconds)


def _time_gloo(task: AllReduceTask, kind: str) -> float:
    passed = 0.0
    for index in range(task.rounds):
        made = tensor_of(
            kind, seed=task.seed, worker=task.config.worker, index=index, elements=task.elements
        )
        values = torch.from_numpy(made)
        dist.barrier()
        started = time.perf_counter()
        dist.all_reduce(values)
        passed += time.perf_counter() - started
    return passed / task.rounds
