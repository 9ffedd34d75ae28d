# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""All-reduces of PyTorch's tensors in the switch, each a ``Work`` of torch.distributed."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as WaitedTooLong
from datetime import timedelta
from typing import Any, Protocol

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from switchgnn.host.errors import HostError
from switchgnn.host.reduce.reduction import Call
from switchgnn.training.errors import AllReduceError

Values = NDArray[np.int32] | NDArray[np.float32]

# The type in which the switch gets the numbers of each type. What is not here stays outside.
ON_WIRE: Mapping[torch.dtype, torch.dtype] = {
    torch.int32: torch.int32,
    torch.float32: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float16: torch.float32,
}
# Callbacks of a program may wait for other all-reduces, as those of PowerSGD do, and each takes a
# thread for as long.
_MOST_THREADS = 256


class Connected(Protocol):
    """A worker's connection to the switch. All workers submit the same arrays in the same order."""

    def open(self, agree: Callable[[int], int]) -> None:
        """Begin where all workers can; ``agree`` returns the largest number of all workers."""

    def submit(self, values: Values, call: Call) -> "Future[Any]":
        """Queue an array, [N]; the result is its sum over all workers, or a HostError.

        The array must not change before.
        """

    def close(self, *, abort: bool = False) -> None:
        """Complete what is queued, or with ``abort`` give it up, and end the connection."""


# From the rank and the number of workers.
OpenReducer = Callable[[int, int], Connected]


def reason_against(tensors: Sequence[Tensor], op: object) -> str | None:
    """Return what the switch cannot reduce, or None if it can."""
    # From the left, as equality holds from one side only between a ReduceOp and its kinds.
    if not (op == dist.ReduceOp.SUM or op == dist.ReduceOp.AVG):  # noqa: PLR1714
        return f"the operation {name_of(op)}"
    for tensor in tensors:
        if tensor.layout is not torch.strided:
            return "sparse tensors"
        if tensor.dtype not in ON_WIRE:
            return f"tensors of {tensor.dtype}"
    return None


def name_of(op: object) -> str:
    """Return the name of a ReduceOp, such as ``MAX``."""
    names = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM")
    return next((name for name in names if op == getattr(dist.ReduceOp, name)), str(op))


class PendingWork(dist.Work):
    """All-reduces of some tensors, complete when the results are in all of them.

    Any thread may wait. An error is an AllReduceError; in the future it is a RuntimeError with the
    same words.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        super().__init__()
        self._tensors = list(tensors)
        self._done: Future[None] = Future()
        devices: list[int | str | torch.device] = [
            *{each.device for each in tensors if each.device.type != "cpu"}
        ]
        self._outcome: torch.futures.Future[Any] = torch.futures.Future(devices=devices)
        # C++ code, such as DDP's, sees errors that a callback raises, and not `set_exception`.
        self._future = self._outcome.then(_tensors_of)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for the results, without a limit if the timeout is 0.

        Raises:
            AllReduceError: the switch or another worker does not answer.
            RuntimeError: the time is over.
        """
        # C++ code gives 0 for none.
        seconds = timeout.total_seconds() if timeout else None
        try:
            self._done.result(seconds)
        except WaitedTooLong:
            raise RuntimeError(
                f"The all-reduce in the switch has taken longer than {seconds} s: raise the "
                "timeout, or look at the other workers."
            ) from None
        return True

    def is_completed(self) -> bool:
        """Return whether all results are in the tensors, or an error has come."""
        return self._done.done()

    def is_success(self) -> bool:
        """Return whether all results are in the tensors."""
        return self._done.done() and self._done.exception() is None

    def exception(self) -> BaseException | None:
        """Return the error that has come, if any."""
        return self._done.exception() if self._done.done() else None

    def result(self) -> list[Tensor]:
        """Return the tensors."""
        return self._tensors

    def synchronize(self) -> None:
        """Wait for the results."""
        self.wait()

    def get_future(self) -> "torch.futures.Future[Any]":
        """Return the future with the list of tensors."""
        return self._future

    def finish(self, fill: Callable[[], None]) -> None:
        """Put the results into the tensors with a function, and complete, or note its error."""
        try:
            fill()
        except Exception as error:
            failed = _as_torch_error(error)
            self._done.set_exception(failed)
            self._outcome.set_result(failed)
        else:
            self._done.set_result(None)
            self._outcome.set_result(self._tensors)


class SwitchAllReduce:
    """All-reduces in the order of the calls, which is the same at all workers.

    Attributes:
        arrays: how many arrays have been submitted.
    """

    def __init__(self, reducer: Connected) -> None:
        self.arrays = 0
        self._reducer = reducer
        self._pool = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="all-reduce")

    def start(self, tensors: Sequence[Tensor], *, average: bool, timeout: timedelta) -> PendingWork:
        """Begin to replace tensors by their sums, or means, over all workers.

        The tensors are of any shape, device and layout in memory, of the types in ON_WIRE. Means of
        integers are rounded towards 0. The work fails after the timeout without progress.
        """
        work = PendingWork(tensors)
        sums = [self._submit(tensor, average, timeout.total_seconds()) for tensor in tensors]

        def fill() -> None:
            for tensor, each in zip(tensors, sums, strict=True):
                tensor.detach().copy_(torch.from_numpy(each.result()).view(tensor.shape))

        left = _Countdown(len(sums), lambda: self._later(work, fill))
        for each in sums:
            each.add_done_callback(left.step)
        return work

    def close(self, *, abort: bool = False) -> None:
        """Complete all that has begun, or with ``abort`` let it fail, and end the connection."""
        self._reducer.close(abort=abort)
        self._pool.shutdown(wait=False)

    def _submit(self, tensor: Tensor, average: bool, seconds: float) -> "Future[Any]":
        call = Call(average, str(tensor.dtype).removeprefix("torch."), seconds)
        try:
            values = tensor.detach().to("cpu", ON_WIRE[tensor.dtype]).reshape(-1).contiguous()
            self.arrays += 1
            return self._reducer.submit(values.numpy(), call)
        except HostError as error:
            failed: Future[Any] = Future()
            failed.set_exception(error)
            return failed

    def _later(self, work: PendingWork, fill: Callable[[], None]) -> None:
        """Finish outside the thread that receives from the switch."""
        try:
            self._pool.submit(work.finish, fill)
        except RuntimeError:
            # The group or the program ends.
            work.finish(fill)


class _Countdown:
    """Calls a function at the last of some steps, from whichever thread."""

    def __init__(self, steps: int, then: Callable[[], None]) -> None:
        self._left = steps
        self._then = then
        self._lock = threading.Lock()
        if not steps:
            then()

    def step(self, _: object) -> None:
        with self._lock:
            self._left -= 1
            last = not self._left
        if last:
            self._then()


def _tensors_of(future: "torch.futures.Future[Any]") -> Any:  # noqa: ANN401
    outcome = future.value()
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def _as_torch_error(error: BaseException) -> AllReduceError:
    failed = AllReduceError(str(error), getattr(error, "workers", ()))
    failed.__cause__ = error
    return failed
