"""Sums of gradients and counts over all workers, and broadcasts, with torch.distributed.

Gloo works on the CPU; tensors on other devices are copied.
"""

import itertools
import os
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import Store

from switchgnn.host.base.errors import named_workers
from switchgnn.host.base.pace import Pace
from switchgnn.host.reduce.reducer import Reducer
from switchgnn.host.reduce.reduction import SUM
from switchgnn.training.base.errors import (
    LostWorkerError,
    OutOfStepError,
    TrainingError,
    collective,
)
from switchgnn.training.base.steps import SharedSteps, give_up, leave_word, word_left
from switchgnn.training.exchange import process_group
from switchgnn.training.exchange.machine import Machine
from switchgnn.training.exchange.standby import Standby

# Weights are compared by these bits of a product, whose squares add up exactly in float32 for up to
# 1,024 workers. _SLICE is how many numbers of a parameter are compared at a time.
_BITS, _FROM, _SLICE = 7, (27, 34, 41, 48), 1 << 13
_ODD = 0x1E3779B97F4A7C15  # in a product by it, the highest bits depend on all
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32}
# The bytes of a TCP segment on Ethernet over those of its frame.
TCP_PAYLOAD = 1448 / 1514
TCP = (socket.AF_INET, socket.SOCK_STREAM)
_SO_MAX_PACING_RATE = 47  # of Linux; Python has no name for it
# Waits for the sums of some values, and returns them.
StartedSum = Callable[[], Tensor]
# A difference below this share of the average number is due to the rounding of other processors.
_ROUNDING = 0.01


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
        raise word_left() or lost from None
    except BaseException as error:
        leave_word(rank if worker is None else worker, error)
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


def pace_gloo(link: str, sharing: int = 1) -> bool:
    """Limit each TCP connection of this process to the rate of its worker's link, if it has one.

    Returns whether it has one. On loopback Gloo's connections pass no link of the fabric, so the
    kernel delays their segments. Each has the whole rate: in a ring a worker sends to one
    neighbour, and receives from one. `sharing`: the connections that share a link, those of a
    parameter server.
    """
    kind, *fields = link.split(":")
    if kind != "udp" or len(fields) < 5:  # without the MBIT of `open_link`
        return False
    rate = struct.pack("Q", int(TCP_PAYLOAD * float(fields[4]) * 1e6 / 8 / max(1, sharing)))
    for file in Path("/proc/self/fd").iterdir():
        # Files raise OSError, and sockets other than those of TCP ignore the rate.
        with suppress(OSError), socket.fromfd(int(file.name), *TCP) as each:
            each.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, rate)
    return True


def gradients_of(named: Iterable[tuple[str, nn.Parameter]]) -> list[Tensor]:
    """Return the gradients of parameters with names, zeros for none; refuse sparse ones."""
    gradients = []
    for name, parameter in named:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        if parameter.grad.is_sparse:
            raise TrainingError(
                f"The gradient of {name} is sparse, and workers add up whole ones: leave out "
                "sparse=True."
            )
        gradients.append(parameter.grad)
    return gradients


class ParameterServer:
    """Adds up at the first worker of a group of Gloo, as in CDFGNN's Algorithm 1.

    That worker's link carries the numbers of each other worker, and the sums to each of them.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)  # as tags; `give_up` takes 0
        self._pool = ThreadPoolExecutor(thread_name_prefix="parameter-server")

    def start(self, values: Tensor, group: dist.ProcessGroup | None) -> dist.Work:
        """Begin to replace values by their sums; all workers start the same sums in one order."""
        work, number = process_group.PendingWork([values]), next(self._numbers)
        everyone = group or dist.group.WORLD
        self._pool.submit(work.finish, partial(_sum_at_first, values, everyone, number))
        return work


def _sum_at_first(values: Tensor, group: Any, tag: int) -> None:  # noqa: ANN401
    # PyTorch declares few methods of a group. A worker's number there is that in the group.
    if group.rank():
        group.send([values], 0, tag).wait()
        group.recv([values], 0, tag).wait()
        return
    received = {other: torch.empty_like(values) for other in range(1, group.size())}
    arriving = [group.recv([each], other, tag) for other, each in received.items()]
    for work, each in zip(arriving, received.values(), strict=True):
        work.wait()
        values += each
    for work in [group.send([values], other, tag) for other in received]:
        work.wait()


class GradientSums:
    """Sums over all workers, and broadcasts from worker 0, whose rank is ``first``.

    `reducer`: adds up gradients of float32 in the switch; None: Gloo does. `machine`: the processes
    of the worker's machine, which add up first. `steps`: the worker's; None: nothing is compared
    with the other workers. `standby`: adds up while the switch is silent; None: nothing does.
    `server`: whether a parameter server adds up instead of Gloo.
    """

    def __init__(
        self,
        first: int = 0,
        attending: Callable[[], AbstractContextManager[None]] = nullcontext,
        reducer: Reducer | None = None,
        machine: Machine | None = None,
        steps: SharedSteps | None = None,
        *,
        standby: Standby | None = None,
        server: bool = False,
    ) -> None:
        self.seconds = 0.0  # the time spent adding so far
        self.in_switch = reducer is not None  # whether the reducer is used
        # whether the last gradients were added in the switch, and the seconds of that
        self.latest = False, 0.0
        self._reducer, self._standby = reducer, standby
        self._server = ParameterServer() if server else None
        self._first = first
        self._attending = attending
        self._machine = machine
        self._steps = steps or SharedSteps()
        self._compares = steps is not None
        self._compared = 0  # how often weights have been compared
        self._alone = not dist.is_initialized() or dist.get_world_size() == 1

    @property
    def starts(self) -> bool:
        """Whether sums can be started that others overtake: not by processes of one machine."""
        return not self._alone and self._machine is None

    def add_with_gradients(self, model: nn.Module, shares: Tensor) -> tuple[float, ...]:
        """Replace every gradient by its sum over all workers, and return the sums of some numbers.

        `shares`: [k], of about the size of gradients, as the switch adds them in the same groups.

        Raises:
            OutOfStepError: another worker has other weights, or has made other calls.
        """
        shares = shares.detach()
        if self._alone:
            return tuple(map(float, shares))
        gradients = gradients_of(each for each in model.named_parameters() if each[1].requires_grad)
        device = gradients[0].device if gradients else shares.device
        # It makes a sum of numbers of fewer bits one of float32.
        digest = self._digest(model)
        flat = torch.cat([each.reshape(-1).to(device) for each in (*gradients, shares, *digest)])
        sizes = [gradient.numel() for gradient in gradients]
        offset = sum(sizes)
        reduce = self._reduce_in_switch if self.in_switch else self._reduce
        before = self.seconds
        self._add(flat, reduce, f"the gradients ({offset + len(shares)} numbers")
        self.latest = self.in_switch, self.seconds - before
        for gradient, total in zip(gradients, torch.split(flat[:offset], sizes), strict=True):
            gradient.copy_(total.view_as(gradient))
        return self._compared_sums(model, flat[offset:], len(shares))

    def start_shares(self, model: nn.Module, shares: Tensor) -> Callable[[], tuple[float, ...]]:
        """Begin to add up some numbers over Gloo, before a backward pass of the model.

        Returns what waits for their sums, and raises, as :meth:`add_with_gradients`.
        """
        flat = torch.cat([each.cpu() for each in (shares.detach(), *self._digest(model))])
        started = self.start(flat, f"the losses ({len(shares)} numbers")
        return lambda: self._compared_sums(model, started(), len(shares))

    def start(
        self,
        values: Tensor,
        what: str,
        *,
        group: dist.ProcessGroup | None = None,
        switch: bool = False,
        late: bool = False,
    ) -> StartedSum:
        """Begin to replace values by their sums over all workers; what is returned waits for them.

        All workers start the same sums in the same order. `group`: of Gloo; None: that of all.
        `switch`: whether the switch adds up, and `late`: whether all others go first there.
        """
        started = time.perf_counter()
        self._steps.enter(f"the all-reduce of {what} of {values.dtype})", self._attending)
        here = values.detach().cpu()
        done: Callable[[], bool]
        wait: Callable[[], object]
        if switch and self.in_switch and self._reducer is not None and here.dtype == torch.float32:
            future = self._reducer.submit(here.numpy(), SUM, late=late)
            done, wait = future.done, lambda: here.copy_(torch.from_numpy(future.result()))
        else:
            with collective():
                work = self._all_reduce(here, group)
            done, wait = work.is_completed, partial(self._steps.wait, work)
        self.seconds += time.perf_counter() - started

        def finished() -> Tensor:
            began = time.perf_counter()
            with nullcontext() if done() else self._attending(), collective():
                wait()
            if values.device != here.device:
                values.copy_(here)
            self.seconds += time.perf_counter() - began
            return values

        return finished

    def open_group(self) -> dist.ProcessGroup:
        """Return another group of all workers, over connections of its own."""
        with self._attending(), collective():
            limit = process_group.timeout_of(dist.group.WORLD)
            group: dist.ProcessGroup = dist.new_group(timeout=limit, backend="gloo")
            return group

    def abandon(self, error: BaseException, groups: Iterable[dist.ProcessGroup]) -> None:
        """End the sums that are under way in some groups of Gloo and in that of all workers."""
        if not isinstance(error, LostWorkerError):
            leave_word(self._steps.worker, error)
        for group in (*groups, None):
            give_up(group)

    def _compared_sums(self, model: nn.Module, sums: Tensor, count: int) -> tuple[float, ...]:
        """Return the first sums; the others are of digests, and say whether weights are equal."""
        told = sums.tolist()
        if told[count:] and not _same(told[count:]):
            self._find_difference(model)
        return tuple(told[:count])

    def _digest(self, model: nn.Module) -> tuple[Tensor, ...]:
        """Return 1, whole numbers and their squares, each time of another slice; see `_same`."""
        if not self._compares or self.in_switch:
            return ()
        parameters = sorted(model.parameters(), key=Tensor.numel, reverse=True)
        turn, total = self._compared, self._steps.checksum
        if parameters:
            flat = parameters[turn % len(parameters)].detach().reshape(-1)
            bits = flat.view(_INTEGERS.get(flat.element_size(), torch.int64))
            start = turn // len(parameters) * _SLICE % max(1, len(bits))
            total += int(bits[start : start + _SLICE].sum())
        self._compared += 1
        numbers = [total * _ODD >> bit & (1 << _BITS) - 1 for bit in _FROM]
        squares = (number**2 for number in numbers)
        return (torch.tensor([1, *numbers, *squares], dtype=torch.float32),)

    def _find_difference(self, model: nn.Module) -> None:
        """Raise OutOfStepError on all workers, where weights or calls differ but by rounding."""
        for name, parameter in model.named_parameters():
            own, apart = parameter.detach().double(), torch.zeros(self._steps.workers)
            first = self.spread(own.clone())
            most = _ROUNDING * float(first.abs().sum()) / max(1, first.numel())
            same = torch.allclose(own, first, rtol=0, atol=most, equal_nan=True)
            apart[self._steps.worker] = not same
            if others := self.add(apart).nonzero().flatten().tolist():
                raise OutOfStepError(
                    f"The weights of {named_workers(others)} differ from those of worker 0, first "
                    f"in {name}: call worker.spread(model) after reset_parameters(), or draw the "
                    "same random numbers everywhere (torch.manual_seed).",
                    others,
                )
        self._steps.agree()
        self._compares = False

    def add(self, values: Tensor) -> Tensor:
        """Replace the values by their sums over all workers, and return them."""
        if not self._alone:
            self._add(values, self._reduce, f"({values.numel()} numbers")
        return values

    def _add(self, values: Tensor, reduce: Callable[[Tensor], None], what: str) -> None:
        started = time.perf_counter()
        self._steps.enter(f"the all-reduce of {what} of {values.dtype})", self._attending)
        if self._machine is None:
            _through_cpu(values, reduce)
        else:
            with self._attending():
                _through_cpu(values, partial(self._machine.add, reduce))
        self.seconds += time.perf_counter() - started

    def spread(self, values: Tensor) -> Tensor:
        """Replace the values by those of worker 0, and return them."""
        if not self._alone:
            words = f"the broadcast of {list(values.shape)} numbers of {values.dtype}"
            self._steps.enter(words, self._attending)
            _through_cpu(values, self._broadcast)
        return values

    def spread_model(self, model: nn.Module) -> None:
        """Give all workers the weights and buffers of worker 0."""
        for tensor in (*model.parameters(), *model.buffers()):
            self.spread(tensor)

    def spread_bytes(self, data: bytes) -> bytes:
        """Return the bytes of worker 0."""
        length = int(self.spread(torch.tensor([len(data)])))
        if not length:
            return b""
        shared = torch.frombuffer(bytearray(data or bytes(length)), dtype=torch.uint8)
        return self.spread(shared).numpy().tobytes()

    def _reduce_in_switch(self, values: Tensor) -> None:
        if self._reducer is None or values.dtype != torch.float32:
            self._reduce(values)
            return
        if self._standby is None:
            total = self._reducer.submit(values.numpy()).result()
        else:
            total = self._standby.reduce(values.numpy(), self._reducer)
        values.copy_(torch.from_numpy(total))

    def _reduce(self, values: Tensor) -> None:
        machine = self._machine
        with nullcontext() if machine else self._attending(), collective():
            group = None if machine is None else machine.leaders
            self._steps.wait(self._all_reduce(values, group))

    def _all_reduce(self, values: Tensor, group: dist.ProcessGroup | None) -> dist.Work:
        if self._server is not None:
            return self._server.start(values, group)
        work: dist.Work = dist.all_reduce(values, group=group, async_op=True)
        return work

    def _broadcast(self, values: Tensor) -> None:
        with self._attending(), collective():
            self._steps.wait(dist.broadcast(values, self._first, async_op=True))


def _same(sums: list[float]) -> bool:
    workers, half = sums[0], len(sums) // 2 + 1
    pairs = zip(sums[1:half], sums[half:], strict=True)
    return all(total * total == workers * squares for total, squares in pairs)


def _through_cpu(values: Tensor, change: Callable[[Tensor], None]) -> None:
    """Change the values in place, by way of a copy where they are not on the CPU."""
    here = values.detach().cpu()
    change(here)
    if values.device != here.device:
        values.detach().copy_(here)
