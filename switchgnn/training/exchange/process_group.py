"""torch.distributed with all-reduces in the switch: a process group, and a hook for DDP.

The group does all other operations with Gloo. :mod:`switchgnn.torch_backend` registers it.
"""

import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as WaitedTooLong
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C import _distributed_c10d as c10d

from switchgnn.host.base.errors import HostError
from switchgnn.host.reduce.connection import ReduceConnection, open_from_environment
from switchgnn.host.reduce.reduction import Call
from switchgnn.training.base.errors import AllReduceError
from switchgnn.training.exchange.machine import SharedConnection

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
OpenReducer = Callable[[int, int], ReduceConnection]
_SUM, _AVG, _MAX = dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX
_NO_TIME = timedelta(0)
_SUBGROUP = "groups that `new_group` has made"


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
            failed = AllReduceError(str(error), getattr(error, "workers", ()))
            failed.__cause__ = error
            self._done.set_exception(failed)
            self._outcome.set_result(failed)
        else:
            self._done.set_result(None)
            self._outcome.set_result(self._tensors)


class SwitchAllReduce:
    """All-reduces in the order of the calls, which is the same at all workers."""

    def __init__(self, reducer: ReduceConnection | SharedConnection) -> None:
        self.arrays = 0  # how many arrays have been submitted
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


def _forwarded(name: str) -> Callable[..., Any]:
    def forward(self: "SwitchProcessGroup", *args: object, **options: object) -> Any:  # noqa: ANN401
        return getattr(self._plain, name)(*args, **options)

    forward.__name__ = name
    return forward


class SwitchProcessGroup(dist.ProcessGroup):
    """All-reduces in the switch, and everything else with Gloo.

    The switch adds dense tensors of int32, float32, bfloat16 and float16, in the group of all
    workers. Other all-reduces go through Gloo, and the first for each reason warns.
    """

    def __init__(
        self, options: c10d._DistributedBackendOptions, reducer: ReduceConnection | None
    ) -> None:
        rank, size = options.group_rank, options.group_size
        # The constructor with a store makes no object that Python can extend.
        super().__init__(rank, size)  # type: ignore[call-arg]
        # how many all-reduces went through Gloo, by reason
        self.fallbacks: Counter[str] = Counter()
        store = c10d.PrefixStore("gloo", options.store)
        # PyTorch declares few of its methods.
        self._gloo: Any = dist.ProcessGroupGloo(store, rank, size, options.timeout)
        self._plain: Any = dist.ProcessGroup(store, rank, size)
        for group in (self, self._plain):
            for device in ("cpu", "cuda"):
                group._register_backend(
                    torch.device(device), dist.ProcessGroup.BackendType.GLOO, self._gloo
                )
            group._set_default_backend(dist.ProcessGroup.BackendType.GLOO)
        self._switch: SwitchAllReduce | None = None
        if reducer is not None:
            self._switch = start(reducer, self._largest, options.timeout)
            # A program that ends without `destroy_process_group` waits for nothing.
            self._end = weakref.finalize(self, self._switch.close, abort=True)

    @property
    def arrays(self) -> int:
        """How many arrays have gone to the switch."""
        return self._switch.arrays if self._switch else 0

    def getBackendName(self) -> str:  # noqa: N802 - C++ calls it
        """Return the name of the backend."""
        return "switchgnn"

    def allreduce(
        self,
        tensors: Sequence[Tensor] | Tensor,
        opts: Any = None,  # noqa: ANN401 - options, or a ReduceOp
        timeout: timedelta | None = None,
    ) -> dist.Work:
        """Begin to replace each tensor by its sum over all workers, or as the options ask."""
        return self._reduce(tensors, opts, c10d.AllreduceOptions, self._gloo.allreduce, timeout)

    def allreduce_coalesced(
        self,
        tensors: Sequence[Tensor],
        opts: Any = None,  # noqa: ANN401
    ) -> dist.Work:
        """Like :meth:`allreduce`, but for several tensors."""
        return self._reduce(
            tensors, opts, c10d.AllreduceCoalescedOptions, self._gloo.allreduce_coalesced
        )

    def shutdown(self) -> None:
        """Complete all-reduces that have begun, and end the connections."""
        if self._switch is not None and self._end.detach():
            self._switch.close()
        super().shutdown()

    # In a Python class, PyTorch holds the GIL while it calls its own code for these, and Gloo waits
    # there for the lock of its queue. A thread of Gloo releases the tensors of complete work with
    # that lock held, which needs the GIL: a deadlock. A plain group enqueues without the GIL.
    allgather = _forwarded("allgather")
    all_gather_single_coalesced = _forwarded("all_gather_single_coalesced")
    allgather_into_tensor_coalesced = _forwarded("allgather_into_tensor_coalesced")
    all_to_all_single = _forwarded("all_to_all_single")
    alltoall_base = _forwarded("alltoall_base")
    barrier = _forwarded("barrier")
    broadcast = _forwarded("broadcast")
    recv = _forwarded("recv")
    reduce_scatter = _forwarded("reduce_scatter")
    reduce_scatter_single_coalesced = _forwarded("reduce_scatter_single_coalesced")
    reduce_scatter_tensor_coalesced = _forwarded("reduce_scatter_tensor_coalesced")
    send = _forwarded("send")

    def _reduce(
        self,
        tensors: Sequence[Tensor] | Tensor,
        opts: Any,  # noqa: ANN401
        kind: Callable[[], Any],
        with_gloo: Callable[..., dist.Work],
        timeout: timedelta | None = None,
    ) -> dist.Work:
        tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        op = getattr(opts, "reduceOp", _SUM if opts is None else opts)
        # The options of a call that has no timeout have a negative one.
        own: Any = timeout or getattr(opts, "timeout", _NO_TIME)
        limit = own if own > _NO_TIME else timeout_of(self)
        reason = reason_against(tensors, op)
        if reason is None and self._switch is not None:
            return self._switch.start(tensors, average=op == _AVG, timeout=limit)
        self._fall_back(reason or _SUBGROUP)
        options = kind()
        options.reduceOp, options.timeout = _SUM if op == _AVG else op, limit
        work = with_gloo(tensors, options)
        return _averaged(work, tensors, self.size()) if op == _AVG else work

    def _fall_back(self, reason: str) -> None:
        if not self.fallbacks[reason]:
            warnings.warn(
                f"All-reduces of {reason} go through Gloo and not through the switch.", stacklevel=6
            )
        self.fallbacks[reason] += 1

    def _largest(self, number: int) -> int:
        found = torch.tensor([number], dtype=torch.int64)
        self._gloo.allreduce([found], _MAX).wait()
        return int(found)


def timeout_of(group: Any) -> timedelta:  # noqa: ANN401 - PyTorch declares few of its methods
    """Return how long the operations of a group may take, as far as a call does not say."""
    return group._get_backend(group._device_types[0]).options._timeout  # type: ignore[no-any-return]


def start(
    reducer: ReduceConnection | SharedConnection, largest: Callable[[int], int], limit: timedelta
) -> SwitchAllReduce:
    """Open the connections of all workers together; ``largest`` compares numbers of all.

    `limit`: how long a worker may compute before it takes part.
    """
    if isinstance(reducer, ReduceConnection) and reducer.per_machine > 1:
        reducer = SharedConnection(reducer, limit.total_seconds())
    try:
        reducer.open(largest)
    except BaseException:
        reducer.close(abort=True)
        raise
    return SwitchAllReduce(reducer)


def _averaged(sums: dist.Work, tensors: Sequence[Tensor], size: int) -> dist.Work:
    """Divide sums when they are there; those of integers are rounded towards 0, as in NCCL."""
    work = PendingWork(tensors)

    def divide(future: "torch.futures.Future[Any]") -> None:
        future.value()  # raises its error
        for tensor in tensors:
            whole = not (tensor.is_floating_point() or tensor.is_complex())
            tensor.detach().div_(size, rounding_mode="trunc" if whole else None)

    sums.get_future().add_done_callback(lambda future: work.finish(lambda: divide(future)))
    return work


class SwitchHook:
    """The state of :func:`switch_hook`: all-reduces in the switch beside a group of its own.

    Make one at each worker after ``init_process_group``, in the same order, and close it.
    """

    def __init__(self, open_reducer: OpenReducer = open_from_environment) -> None:
        self.fallbacks: Counter[str] = Counter()  # buckets that went through the group, by reason
        self.workers = dist.get_world_size()
        reducer = open_reducer(dist.get_rank(), self.workers)
        self.switch = start(reducer, self._largest, timeout_of(dist.group.WORLD))

    def close(self) -> None:
        """Complete all-reduces that have begun, and end the connection to the switch."""
        self.switch.close()

    def _largest(self, number: int) -> int:
        found: list[Any] = [None] * self.workers
        dist.all_gather_object(found, number)
        return int(max(found))


def switch_hook(state: SwitchHook, bucket: c10d.GradBucket) -> torch.futures.Future[Tensor]:
    """Average a bucket of gradients of DistributedDataParallel in the switch.

    ``model.register_comm_hook(SwitchHook(), switch_hook)`` serves programs whose group has another
    backend. Gradients of a type that the switch cannot add go through the default group.
    """
    gradients = bucket.buffer()
    reason = reason_against([gradients], _AVG)
    if reason is None:
        limit = timeout_of(dist.group.WORLD)
        work: dist.Work = state.switch.start([gradients], average=True, timeout=limit)
    else:
        state.fallbacks[reason] += 1
        work = _averaged(dist.all_reduce(gradients, async_op=True), [gradients], state.workers)
    future: torch.futures.Future[Tensor] = work.get_future().then(lambda done: done.value()[0])
    return future
