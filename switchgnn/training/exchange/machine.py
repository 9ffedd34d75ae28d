"""The processes of one machine: they add up in shared memory, and one of them exchanges for all.

The memory has no name, and a process that ends is noticed at once, as its socket is closed.
"""

import mmap
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import timedelta
from threading import Event
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from switchgnn.base.array_types import Float32s
from switchgnn.base.errors import SwitchGNNError
from switchgnn.host import HostError, Pace
from switchgnn.host.base.compression import Compression
from switchgnn.host.base.operations import Operation
from switchgnn.host.links.transport import Transport, WorkerEnd, check_rows
from switchgnn.host.reduce.connection import ReduceConnection
from switchgnn.host.reduce.reduction import SUM, Call
from switchgnn.host.registry import LocalTransport, Opener
from switchgnn.planner.base.direction import Direction
from switchgnn.training.base.errors import LostWorkerError, TrainingError, collective
from switchgnn.training.data.partition import Partition

# What the leader says; a failure is followed by a sentence.
_ALL_THERE, _DONE, _WAITING, _FAILED = "there", "done", "waiting", "failed: "
_MOST_BYTES = 1 << 13
_FILES = 2  # they take turns, as others may still read the last results
_SIGNS = 4  # signs of life in the time in which one must come
_LONG = 0.05  # seconds after which workers of other machines may miss an answer


class Machine:
    """One process among those of its machine; the one with the lowest number leads.

    `peers`: the sockets to all others at the leader, to the leader elsewhere, by worker; `files`:
    the shared memory; `limit`: the seconds that a process may take to its next step; `leaders`: the
    group of the leaders of all machines.
    """

    def __init__(
        self,
        worker: int,
        processes: int,
        peers: Mapping[int, socket.socket],
        files: Sequence[int],
        *,
        limit: float,
        leaders: dist.ProcessGroup | None = None,
    ) -> None:
        self.worker, self.processes, self.leaders = worker, processes, leaders
        self.leads = worker % processes == 0
        self._peers, self._files, self._limit = peers, files, limit
        self._maps = [np.empty(0, np.uint8)] * _FILES
        self._turn = 0
        self.helpers = ThreadPoolExecutor(2, thread_name_prefix="machine")
        for peer in peers.values():
            peer.settimeout(limit)

    def shared(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Return memory for the next step; all processes ask for the same."""
        size, self._turn = int(np.prod(shape)) * dtype.itemsize, 1 - self._turn
        if size > len(self._maps[self._turn]):
            file = self._files[self._turn]
            os.posix_fallocate(file, 0, size)  # what others have written stays
            self._maps[self._turn] = np.frombuffer(mmap.mmap(file, size), np.uint8)
        return torch.from_numpy(self._maps[self._turn][:size]).view(dtype).view(shape)

    @contextmanager
    def step(
        self, what: str, attend: Callable[[Callable[[], bool]], None] | None = None
    ) -> Iterator[None]:
        """Enter when all processes have written to the memory, leave when the leader leaves.

        `what`: in words, the same at all. `attend`: at the leader, see ``Transport.attend``.
        """
        if not self.leads:
            (leader,) = self._peers
            with suppress(BrokenPipeError, ConnectionResetError):  # its last words are still there
                self._peers[leader].send(what.encode())
            self._hear(leader)
            yield
            self._hear(leader)
            return
        over, led = Event(), Event()
        self.helpers.submit(self._give_signs, led)
        try:
            arrived = self.helpers.submit(self._gather, what)
            arrived.add_done_callback(lambda _: over.set())
            if attend is not None and not over.wait(_LONG):
                attend(over.is_set)
            arrived.result()
            self._tell(_ALL_THERE)
            yield
            self._tell(_DONE)
        finally:
            led.set()

    def add(self, between: Callable[[Tensor], None], values: Tensor) -> None:
        """Replace values by their sums over all workers; the leaders add theirs up in between."""
        *each, total = self.shared((self.processes + 1, values.numel()), values.dtype)
        each[self.worker % self.processes].copy_(values.reshape(-1))
        with self.step(f"adds up {values.numel()} numbers of {values.dtype}"):
            if self.leads:
                between(total.copy_(sum(each)))
        values.copy_(total.view_as(values))

    def close(self, error: BaseException | None = None) -> None:
        """Leave; the others hear of the error of this process, if any."""
        if error is not None:
            why = str(error) if isinstance(error, SwitchGNNError) else type(error).__name__
            if not isinstance(error, LostWorkerError):
                why = f"Worker {self.worker} has failed: {why}"
            self._tell(f"{_FAILED}{why}")
        for peer in self._peers.values():
            with suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)  # wakes the helpers
            peer.close()
        self.helpers.shutdown()
        files, self._files = self._files, ()
        for file in files:
            os.close(file)

    def _gather(self, what: str) -> None:
        for worker in self._peers:
            if (heard := self._hear(worker)) != what:
                raise TrainingError(
                    f"Worker {worker} {heard} where worker {self.worker} {what}: all workers must "
                    "make the same calls in the same order."
                )

    def _give_signs(self, led: Event) -> None:
        while not led.wait(self._limit / _SIGNS):
            self._tell(_WAITING)

    def _tell(self, word: str) -> None:
        for peer in self._peers.values():
            with suppress(OSError):  # the next step notices a process that has ended
                peer.send(word.encode()[:_MOST_BYTES])

    def _hear(self, worker: int) -> str:
        peer, heard = self._peers[worker], _WAITING
        while heard == _WAITING:
            try:
                heard = peer.recv(_MOST_BYTES).decode(errors="replace")
            except ConnectionResetError:  # what it has said is still there
                continue
            except TimeoutError:
                heard = (
                    f"{_FAILED}Worker {worker} has said nothing to worker {self.worker} of its "
                    f"machine for {self._limit:g} s: it is stopped, or computes for longer."
                )
        if not heard:
            heard = (
                f"{_FAILED}Worker {worker} has ended, so worker {self.worker} of the same machine "
                f"stops: look at the errors of worker {worker}."
            )
        if heard.startswith(_FAILED):
            raise LostWorkerError(heard.removeprefix(_FAILED))
        return heard


@contextmanager
def local_processes(
    partition: Partition, ranks: Sequence[int], pace: Pace
) -> Iterator[Machine | None]:
    """Join the processes of this machine for the block; None: there are no others.

    `ranks`: of each worker in the process group.
    """
    each, worker = partition.workers_per_machine, partition.worker
    if each == 1:
        yield None
        return
    limit = pace.timeout + pace.skew

    def agree(number: int) -> int:
        largest = torch.tensor([number])
        dist.all_reduce(largest, dist.ReduceOp.MAX)
        return int(largest)

    with collective():
        peers, files = _meet(worker, each, agree, limit)
        leaders = dist.new_group(
            list(ranks[::each]), timeout=timedelta(seconds=limit), backend="gloo"
        )
    failed: BaseException | None = None
    machine = Machine(*(worker, each, peers, files), limit=limit, leaders=leaders)
    try:
        yield machine
    except BaseException as error:
        failed = error
        raise
    finally:
        machine.close(failed)


def _meet(
    worker: int, each: int, agree: Callable[[int], int], limit: float
) -> tuple[dict[int, socket.socket], list[int]]:
    # A name without a file, which nobody can guess before.
    """Return the sockets and the memory of a `Machine`; `agree` returns the largest of numbers."""
    name = f"\0switchgnn-{agree(secrets.randbits(62))}-{worker // each}"
    door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    door.settimeout(limit)
    if worker % each:
        agree(0)
        door.connect(name)
        door.send(str(worker).encode())
        return {worker - worker % each: door}, socket.recv_fds(door, 1, _FILES)[1]
    with door:
        door.bind(name)
        door.listen(each)
        agree(0)
        files = [os.memfd_create("switchgnn") for _ in range(_FILES)]
        return dict(sorted(_accepted(door, files) for _ in range(each - 1))), files


def _accepted(door: socket.socket, files: Sequence[int]) -> tuple[int, socket.socket]:
    peer, _ = door.accept()
    peer.settimeout(door.gettimeout())
    worker = int(peer.recv(_MOST_BYTES))
    socket.send_fds(peer, [b"m"], files)
    return worker, peer


class SharedConnection:
    """All-reduces of the processes of a machine, one after another; see ``ReduceConnection``."""

    def __init__(self, connection: ReduceConnection, limit: float) -> None:
        self._connection, self._limit = connection, limit
        self._machine: Machine | None = None
        self._workers = 0
        self._order = ThreadPoolExecutor(1, thread_name_prefix="shared")

    def open(self, agree: Callable[[int], int]) -> None:
        """Meet the others of the machine; its leader connects to the switch."""
        worker, each = self._connection.rank, self._connection.per_machine
        peers, files = _meet(worker, each, agree, self._limit)
        if worker % each:
            agree(0)
        else:
            self._connection.open(agree)
        self._workers = agree(worker) + 1
        self._machine = Machine(worker, each, peers, files, limit=self._limit)

    def submit(self, values: NDArray[Any], call: Call = SUM) -> "Future[NDArray[Any]]":
        """Queue an array; see ``Reducer.submit``."""
        if self._machine is None:
            raise ValueError("The connection is not open: open it before.")
        return self._order.submit(self._reduce, self._machine, values, call)

    def _reduce(self, machine: Machine, values: NDArray[Any], call: Call) -> NDArray[Any]:
        sums = torch.from_numpy(values.copy())

        def between(total: Tensor) -> None:
            whole = self._connection.submit(total.numpy(), replace(call, average=False)).result()
            total.copy_(torch.from_numpy(whole))

        try:
            machine.add(between, sums)
        except BaseException as error:
            machine.close(error)
            raise
        if call.average:
            sums.div_(self._workers, rounding_mode=None if sums.is_floating_point() else "trunc")
        found: NDArray[Any] = sums.numpy()
        return found

    def close(self, *, abort: bool = False) -> None:
        """End both connections, after all that was queued or at once."""
        if abort and self._machine is not None:
            self._machine.close()
        self._order.shutdown(cancel_futures=abort)
        if self._machine is not None:
            self._machine.close()
        self._connection.close(abort=abort)


def _forwarded(name: str) -> Any:  # noqa: ANN401 - methods and properties
    return property(lambda self: getattr(self._between, name))


class MachineTransport(Transport):
    """Sums over the neighbours outside this worker, on its machine and on others.

    `between`: at the leader, sums over the neighbours on other machines for all rows of this one.
    """

    attend, next_epoch, close = map(_forwarded, ("attend", "next_epoch", "close"))
    status, report, injected = map(_forwarded, ("status", "report", "injected"))
    traffic, expected_traffic = map(_forwarded, ("traffic", "expected_traffic"))

    def __init__(self, machine: Machine, partition: Partition, between: Transport | None) -> None:
        self._machine = machine
        self._between = between or LocalTransport(0)
        self._place = partition.place
        shape = len(self._place), len(partition.machine)
        row = np.full(shape[1], -1)
        row[self._place] = np.arange(shape[0])
        self._beside = {}
        for direction, step in ((Direction.FORWARD, 1), (Direction.BACKWARD, -1)):
            source, destination = partition.beside[::step]
            to, own = row[destination], row[destination] >= 0
            ones = np.ones(len(to), np.float32)[own]
            self._beside[direction] = csr_matrix((ones, (to[own], source[own])), shape=shape)

    def aggregate(
        self,
        rows: Float32s,
        direction: Direction,
        tensor_id: int = 0,
        operation: Operation = Operation.SUM,
    ) -> Float32s:
        """Sum over the neighbours on other workers; see ``Transport``."""
        operation.refuse("A machine of several workers")
        machine, matrix = self._machine, self._beside[direction]
        check_rows(rows, len(self._place), machine.worker)
        width = rows.shape[1]
        every, sums = machine.shared((2, matrix.shape[1], width), torch.float32).numpy()
        every[self._place] = rows
        what = f"sums {direction.value} rows of {width} numbers, tensor {tensor_id}"
        with machine.step(what, self.attend):
            beside = machine.helpers.submit(lambda: matrix @ every)
            if machine.leads:
                try:
                    sums[:] = self._between.aggregate(every, direction, tensor_id)
                except HostError as error:
                    raise HostError(
                        f"In the exchange between machines, each numbered as a worker: {error}",
                        error.workers,
                    ) from error
        total: Float32s = beside.result() + sums[self._place]
        return total

    def compress(self, compression: Compression) -> None:
        """Refuse a cache and fewer bits."""
        compression.refuse("between machines of several workers", "leave out cache and bits")


@contextmanager
def opened(
    opener: Opener, end: WorkerEnd, partition: Partition, machine: Machine | None
) -> Iterator[Transport]:
    """Open a transport; with other processes on the machine, that of all at their leader."""
    if machine is None:
        with opener(end) as alone:
            yield alone
        return
    with opener(end) if machine.leads else nullcontext() as between:
        transport = MachineTransport(machine, partition, between)
        transport.compress(end.compression)
        yield transport
