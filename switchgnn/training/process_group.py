# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""torch.distributed with all-reduces in the switch: a process group, and a hook for DDP.

The group does all other operations with Gloo. :mod:`switchgnn.torch_backend` registers it.
"""

import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import (
    AllreduceCoalescedOptions,
    AllreduceOptions,
    GradBucket,
    PrefixStore,
    _DistributedBackendOptions,
)

from switchgnn.host.reduce.connection import open_from_environment
from switchgnn.training.all_reduce import (
    Connected,
    OpenReducer,
    PendingWork,
    SwitchAllReduce,
    reason_against,
)

_SUM, _AVG, _MAX = dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX
_NO_TIME = timedelta(0)
_SUBGROUP = "groups that `new_group` has made"


def _forwarded(name: str) -> Callable[..., Any]:
    def forward(self: "SwitchProcessGroup", *args: object, **options: object) -> Any:  # noqa: ANN401
        return getattr(self._plain, name)(*args, **options)

    forward.__name__ = name
    return forward


class SwitchProcessGroup(dist.ProcessGroup):
    """All-reduces in the switch, and everything else with Gloo.

    The switch adds dense tensors of int32, float32, bfloat16 and float16, in the group of all
    workers. Other all-reduces go through Gloo, and the first for each reason warns.

    Attributes:
        fallbacks: how many all-reduces went through Gloo, by reason.
    """

    def __init__(self, options: _DistributedBackendOptions, reducer: Connected | None) -> None:
        rank, size = options.group_rank, options.group_size
        # The constructor with a store makes no object that Python can extend.
        super().__init__(rank, size)  # type: ignore[call-arg]
        self.fallbacks: Counter[str] = Counter()
        store = PrefixStore("gloo", options.store)
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
            self._switch = start(reducer, self._largest)
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
        return self._reduce(tensors, opts, AllreduceOptions, self._gloo.allreduce, timeout)

    def allreduce_coalesced(
        self,
        tensors: Sequence[Tensor],
        opts: Any = None,  # noqa: ANN401
    ) -> dist.Work:
        """As :meth:`allreduce`, for several tensors."""
        return self._reduce(
            tensors, opts, AllreduceCoalescedOptions, self._gloo.allreduce_coalesced
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
        """Return the largest number of all workers."""
        found = torch.tensor([number], dtype=torch.int64)
        self._gloo.allreduce([found], _MAX).wait()
        return int(found)


def timeout_of(group: Any) -> timedelta:  # noqa: ANN401 - PyTorch declares few of its methods
    """Return how long the operations of a group may take, as far as a call does not say."""
    return group._get_backend(group._device_types[0]).options._timeout  # type: ignore[no-any-return]


def start(reducer: Connected, largest: Callable[[int], int]) -> SwitchAllReduce:
    """Open the connections of all workers together; ``largest`` compares numbers of all."""
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

    Attributes:
        fallbacks: how many buckets went through the group, by reason.
    """

    def __init__(self, open_reducer: OpenReducer = open_from_environment) -> None:
        self.fallbacks: Counter[str] = Counter()
        self.workers = dist.get_world_size()
        reducer = open_reducer(dist.get_rank(), self.workers)
        self.switch = start(reducer, self._largest)

    def close(self) -> None:
        """Complete all-reduces that have begun, and end the connection to the switch."""
        self.switch.close()

    def _largest(self, number: int) -> int:
        found: list[Any] = [None] * self.workers
        dist.all_gather_object(found, number)
        return int(max(found))


def switch_hook(state: SwitchHook, bucket: GradBucket) -> torch.futures.Future[Tensor]:
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
        summing = dist.all_reduce(gradients, async_op=True)
        work = _averaged(summing, [gradients], state.workers)
    future: torch.futures.Future[Tensor] = work.get_future().then(lambda done: done.value()[0])
    return future
