"""Gradients in buckets, whose all-reduces overlap with exchanges and with the next forward pass.

As soon as a backward pass has all gradients of a bucket, its all-reduce begins, while the layers in
front still exchange theirs. A bucket whose sums have not come by the end of an epoch may take until
its first layer is used again, as in Hermod (see ``host/base/coflow.py``).
"""

import socket
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from torch_geometric.nn.models.basic_gnn import BasicGNN

from switchgnn.host.base.coflow import Coflow, TrafficClass
from switchgnn.training.exchange.gradients import TCP, GradientSums, StartedSum, gradients_of
from switchgnn.training.layers.forward import replaced
from switchgnn.training.layers.models import SummedForward

# Bytes of a bucket that are worth an all-reduce of their own.
LEAST_BYTES = 1 << 16
_TC_PRIO_BULK = 2  # of <linux/pkt_sched.h>


class Overlap(str, Enum):
    """What all-reduces of gradients overlap with."""

    CLASSES = "classes"  # with exchanges, which go first, as front layers do among buckets
    FIRST_COME = "first-come"  # with exchanges, all in one class
    NONE = "none"  # with nothing: one all-reduce after the backward pass


class _Bucket:
    """The parameters of some layers in succession, and the sum of their gradients under way."""

    def __init__(self, number: int, named: Sequence[tuple[str, nn.Parameter]]) -> None:
        self.number = number  # from 0, the front one
        self.named = named
        self.left = 0  # gradients that this backward pass has not made yet
        self.sum: StartedSum | None = None


def split_in_buckets(
    names: Sequence[str], sizes: Sequence[int], least: int = LEAST_BYTES
) -> list[list[int]]:
    """Return the parameters of each bucket, from back to front, as indices.

    `names`, `sizes`: of the parameters, the latter in bytes, in the order in which a backward pass
    makes their gradients. A bucket has whole layers, and ends when it has `least` bytes; the front
    one has what is left.
    """
    buckets: list[list[int]] = [[]]
    for index, name in enumerate(names):
        full = sum(sizes[each] for each in buckets[-1]) >= least
        if full and layer_of(name) != layer_of(names[index - 1]):
            buckets.append([])
        buckets[-1].append(index)
    return buckets


def layer_of(name: str) -> str:
    """Return the name of the layer of a parameter: `convs.0` of `convs.0.lin.weight`."""
    first, _, rest = name.partition(".")
    number = rest.partition(".")[0]
    return f"{first}.{number}" if number.isdigit() else first


class GradientBuckets:
    """Adds up gradients over all workers and steps the optimizer, bucket by bucket.

    A context manager. The first epoch makes one all-reduce of all gradients, and notes the order in
    which the backward pass makes them; worker 0's counts. Until :meth:`finish` returns, weights may
    lack a step, and gradients are not those of the model.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        sums: GradientSums,
        overlap: Overlap = Overlap.CLASSES,
    ) -> None:
        self._model, self._optimizer, self._sums = model, optimizer, sums
        self._overlap = overlap
        self._named = [each for each in model.named_parameters() if each[1].requires_grad]
        self._order: list[int] = []  # of gradients, while it is noted
        self._buckets: list[_Bucket] = []  # from back to front; empty: one all-reduce of all
        self._bucket_of: dict[int, _Bucket] = {}
        self._groups: dict[bool, dist.ProcessGroup] = {}  # of Gloo, by whether buckets are late
        self._epoch = 0
        self._hooks: list[RemovableHandle] = []
        if overlap is not Overlap.NONE and sums.starts:
            for index, (_, parameter) in enumerate(self._named):
                made = partial(self._made, index)
                self._hooks.append(parameter.register_post_accumulate_grad_hook(made))  # type: ignore[no-untyped-call]

    def __enter__(self) -> "GradientBuckets":
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            self.finish()
        elif self._buckets:
            self._sums.abandon(error, self._groups.values())
        self._remove_hooks()

    def step(self, loss: Tensor, shares: Tensor) -> tuple[float, ...]:
        """Go backward from a loss, step, and return the sums of some numbers over all workers.

        `shares`: see ``GradientSums.add_with_gradients``.
        """
        self._epoch += 1
        if not self._buckets:
            loss.backward()  # type: ignore[no-untyped-call]
            told = self._sums.add_with_gradients(self._model, shares)
            self._optimizer.step()
            if self._hooks:
                self._split()
            return told
        self.finish()  # of layers that this forward pass has left out
        numbers = self._sums.start_shares(self._model, shares)
        for bucket in self._buckets:
            bucket.left = len(bucket.named)
        loss.backward()  # type: ignore[no-untyped-call]
        for bucket in self._buckets:
            self._start(bucket)  # unless it has begun; these lack a gradient on all workers
        return numbers()

    def finish(self) -> None:
        """Wait for all sums and make the steps that are due, front layers first."""
        self._finish([*reversed(self._buckets)])

    def _made(self, index: int, _: Tensor) -> None:
        """Note a gradient, and begin all-reduces in their order, the same on all workers."""
        if not self._buckets:
            self._order.append(index)
            return
        self._bucket_of[index].left -= 1
        for bucket in self._buckets:
            if bucket.left > 0:
                break
            self._start(bucket)

    def _start(self, bucket: _Bucket) -> None:
        if bucket.sum is not None:
            return
        values = torch.cat([each.reshape(-1) for each in gradients_of(bucket.named)])
        for _, parameter in bucket.named:
            parameter.grad = None
        coflow, early = Coflow.bucket(self._epoch, bucket.number), max(1, len(self._buckets) // 2)
        late = coflow.traffic_class(early) is TrafficClass.LATE
        what = f"the gradients of bucket {bucket.number} ({len(values)} numbers"
        group = self._groups.get(late)
        bucket.sum = self._sums.start(values, what, group=group, switch=True, late=late)

    def _finish(self, buckets: Sequence[_Bucket], *_called: object) -> None:
        for bucket in buckets:
            if bucket.sum is None:
                continue
            started, bucket.sum = bucket.sum, None
            sums = torch.split(started(), [each.numel() for _, each in bucket.named])
            for (_, parameter), values in zip(bucket.named, sums, strict=True):
                parameter.grad = values.view_as(parameter).to(parameter)
            self._optimizer.step()  # of the parameters with a gradient: those of this bucket
            for _, parameter in bucket.named:
                parameter.grad = None

    def _split(self) -> None:
        """Make the buckets after the first epoch, if there are two of them at least."""
        made = [*self._order, *({*range(len(self._named))} - {*self._order})]
        order = self._sums.spread(torch.tensor(made)).tolist()
        named = [self._named[index] for index in order]
        sizes = [each.numel() * each.element_size() for _, each in named]
        groups = split_in_buckets([name for name, _ in named], sizes)
        if len(groups) < 2:
            self._remove_hooks()
            return
        for back, group in enumerate(groups):
            bucket = _Bucket(len(groups) - 1 - back, [named[index] for index in group])
            self._buckets.append(bucket)
            self._bucket_of |= {order[index]: bucket for index in group}
        if not self._sums.in_switch:
            for late, traffic in ((False, TrafficClass.EARLY), (True, TrafficClass.LATE)):
                classes = self._overlap is Overlap.CLASSES
                marked = traffic if classes else TrafficClass.EXCHANGE
                self._groups[late] = _open_group(self._sums, marked)
        self._wait_in_forward()

    def _wait_in_forward(self) -> None:
        """Wait for each bucket before its weights are used; in unknown models for all at once.

        Code of others may read weights before it calls their layer.
        """
        model = self._model
        if type(model).forward is not BasicGNN.forward or "forward" in vars(model):
            self._hooks.append(model.register_forward_pre_hook(lambda *_: self.finish()))
            return
        layers = defaultdict[str, list[_Bucket]](list)
        for bucket in self._buckets:
            for layer in {layer_of(name) for name, _ in bucket.named}:
                layers[layer].append(bucket)
        for layer, buckets in layers.items():
            module, wait = model.get_submodule(layer), partial(self._finish, buckets)
            forward = replaced(module)
            if isinstance(forward, SummedForward):
                forward.before_weights = wait
            else:
                self._hooks.append(module.register_forward_pre_hook(wait))

    def _remove_hooks(self) -> None:
        while self._hooks:
            self._hooks.pop().remove()


def _open_group(sums: GradientSums, traffic: TrafficClass) -> dist.ProcessGroup:
    """Return a group of Gloo whose packets are of a class."""
    before = _sockets()
    group = sums.open_group()
    for name in (opened := _sockets()).keys() - before.keys():
        # Those that have closed since, and other kinds, raise OSError.
        with suppress(OSError), socket.fromfd(opened[name], *TCP) as each:
            each.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, traffic.dscp << 2)
            if traffic is not TrafficClass.EXCHANGE:
                # The byte alone leaves them among ordinary packets in queues of the kernel.
                each.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, _TC_PRIO_BULK)
    return group


def _sockets() -> dict[str, int]:
    """Return the open sockets of this process, by names that are used once."""
    found = {}
    for file in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found[str(file.readlink())] = int(file.name)
    return {name: file for name, file in found.items() if name.startswith("socket:")}
