"""The processes of one machine: they add up in shared memory, and one of them exchanges for all.

The memory has no name, and a process that ends is noticed at once, as its socket is closed.
"""

import mmap
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from threading import Event
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import private_folder
from switchgnn.host.compression import Compression
from switchgnn.host.errors import HostError
from switchgnn.host.pace import Pace
from switchgnn.host.registry import LocalTransport
from switchgnn.host.transport import Transport, check_rows
from switchgnn.planner.direction import Direction
from switchgnn.training.errors import LostWorkerError, TrainingError
from switchgnn.training.gradients import collective, timeout_of
from switchgnn.training.partition import Partition

# What the leader says; a failure is followed by a sentence.
_ALL_THERE, _DONE, _WAITING, _FAILED = "there", "done", "waiting", "failed: "
_MOST_BYTES, _MOST_LETTERS = 1 << 13, 1000
_FILES = 2  # they take turns, as others may still read the last results
_SIGNS = 4  # signs of life in the time in which one must come
_LONG = 0.05  # seconds after which workers of other machines may miss an answer
# Paths of sockets are short, unlike some of TMPDIR.
_SHORT_FOLDER = "/tmp"  # noqa: S108
# As `Compression.refuse` takes them.
BETWEEN_MACHINES = "between machines of several workers", "leave out cache and bits"
Memory = NDArray[np.uint8]


class Machine:
    """One process among those of its machine; the one with the lowest number leads.

    Args:
        worker: its number.
        processes: how many there are.
        peers: the sockets to all others at the leader, to the leader elsewhere, by worker.
        files: the shared memory.
        limit: the seconds that a process may take to its next step.
        leaders: the group of the leaders of all machines.
    """

    def __init__(
        self,
        worker: int,
        processes: int,
        peers: Mapping[int, socket.socket],
        files: Sequence[int],
        *,
        limit: float,
        leaders: Any = None,  # noqa: ANN401 - PyTorch has no type for groups
    ) -> None:
        self.worker, self.processes, self.leaders = worker, processes, leaders
        self.leads = worker % processes == 0
        self._peers, self._files, self._limit = peers, files, limit
        self._maps: list[Memory] = [np.empty(0, np.uint8)] * _FILES
        self._turn = 0
        self._helpers = ThreadPoolExecutor(2, thread_name_prefix="machine")
        for peer in peers.values():
            peer.settimeout(limit)

    def take(
        self,
        what: str,
        size: int,
        write: Callable[[Memory], None],
        lead: Callable[[Memory], None],
        aside: Callable[[Memory], Any] = lambda _: None,
        *,
        attend: Callable[[Callable[[], bool]], None] | None = None,
    ) -> tuple[Memory, Any]:
        """Take a step with the others; return the memory, valid until the next, and of `aside`.

        Args:
            what: the step in words, the same in all processes.
            size: the bytes of memory, the same in all processes.
            write: writes the values of this process.
            lead: at the leader, when all have written: writes the results.
            aside: what each process computes from the values of all meanwhile.
            attend: at the leader: see ``Transport.attend``.
        """
        memory = self._memory(size)
        write(memory)
        if self.leads:
            return memory, self._lead(what, lambda: lead(memory), lambda: aside(memory), attend)
        (leader,) = self._peers
        with suppress(BrokenPipeError, ConnectionResetError):  # its last words are still there
            self._peers[leader].send(what.encode())
        self._hear(leader)
        made = aside(memory)
        self._hear(leader)
        return memory, made

    def add(self, between: Callable[[Tensor], None], values: Tensor) -> None:
        """Replace values by their sums over all workers; the leaders add theirs up in between."""
        shape = self.processes + 1, values.numel()
        size = shape[0] * values.numel() * values.itemsize

        def rows(memory: Memory) -> Tensor:
            return torch.from_numpy(memory[:size]).view(values.dtype).view(shape)

        def write(memory: Memory) -> None:
            rows(memory)[self.worker % self.processes] = values.reshape(-1)

        def lead(memory: Memory) -> None:
            *each, total = rows(memory)
            between(total.copy_(sum(each)))

        memory, _ = self.take(f"adds up {shape[1]} numbers of {values.dtype}", size, write, lead)
        values.copy_(rows(memory)[-1].view_as(values))

    def close(self, error: BaseException | None = None) -> None:
        """Leave; the others hear of the error of this process, if any."""
        if error is not None:
            why = str(error) if isinstance(error, SwitchGNNError) else type(error).__name__
            if not isinstance(error, LostWorkerError):
                why = f"Worker {self.worker} has failed: {why}"
            self._tell(f"{_FAILED}{why[:_MOST_LETTERS]}")
        for peer in self._peers.values():
            with suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)  # wakes the helpers
            peer.close()
        self._helpers.shutdown()
        for file in self._files:
            os.close(file)

    def _memory(self, size: int) -> Memory:
        self._turn = 1 - self._turn
        if size > len(self._maps[self._turn]):
            file = self._files[self._turn]
            try:
                # All ask for it, and what others have written stays.
                os.posix_fallocate(file, 0, size)
                self._maps[self._turn] = np.frombuffer(mmap.mmap(file, size), np.uint8)
            except OSError as error:
                raise TrainingError(
                    f"Worker {self.worker} cannot share {size:,} bytes with the others of its "
                    f"machine: {error.strerror}; free memory, or take fewer workers per machine."
                ) from error
        return self._maps[self._turn]

    def _lead(
        self,
        what: str,
        lead: Callable[[], None],
        aside: Callable[[], Any],
        attend: Callable[[Callable[[], bool]], None] | None,
    ) -> object:
        arrived, over, led = self._helpers.submit(self._gather, what), Event(), Event()
        arrived.add_done_callback(lambda _: over.set())
        self._helpers.submit(self._give_signs, led)
        try:
            if attend is not None and not over.wait(_LONG):
                attend(over.is_set)
            arrived.result()
            self._tell(_ALL_THERE)
            made = self._helpers.submit(aside)
            lead()
            self._tell(_DONE)
        finally:
            led.set()
        return made.result()

    def _gather(self, what: str) -> None:
        """Wait until all others have written."""
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
                peer.send(word.encode())

    def _hear(self, worker: int) -> str:
        """Return the next word of another process, but no signs of life."""
        heard = _WAITING
        while heard == _WAITING:
            try:
                heard = _received(self._peers[worker])
            except TimeoutError:
                heard = (
                    f"{_FAILED}Worker {worker} has said nothing to worker {self.worker} of its "
                    f"machine for {self._limit:g} s: it is stopped, or computes for longer."
                )
            except OSError:  # closed here
                heard = ""
        if not heard:
            raise LostWorkerError(
                f"Worker {worker} has ended, so worker {self.worker} of the same machine stops: "
                f"look at the errors of worker {worker}."
            )
        if heard.startswith(_FAILED):
            raise LostWorkerError(heard.removeprefix(_FAILED))
        return heard


def _received(peer: socket.socket) -> str:
    try:
        return peer.recv(_MOST_BYTES).decode(errors="replace")
    except ConnectionResetError:  # it has not heard all, but what it said is still here
        return peer.recv(_MOST_BYTES).decode(errors="replace")


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
    leader, limit = worker - worker % each, timeout_of(pace)
    folder = private_folder("switchgnn-", _SHORT_FOLDER) if worker == leader else nullcontext()
    door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    door.settimeout(limit.total_seconds())
    with folder as own:
        found: list[Any] = [None] * partition.workers
        if own is not None:
            door.bind(str(own / "machine"))
            door.listen(each)
        with collective():
            dist.all_gather_object(found, own)
            first_ranks = [ranks[first] for first in range(0, partition.workers, each)]
            leaders = dist.new_group(first_ranks, timeout=limit, backend="gloo")
        peers, files = {leader: door}, [0]
        try:
            if own is not None:
                peers, files = _welcome(door, each)
            else:
                door.connect(str(found[ranks[leader]] / "machine"))
                door.send(str(worker).encode())
                files = socket.recv_fds(door, 1, _FILES)[1]
        except OSError as error:
            raise LostWorkerError(
                f"The processes on the machine of worker {worker} cannot meet: {error}; they must "
                f"share its folder {_SHORT_FOLDER}, and all be running."
            ) from error
    failed: BaseException | None = None
    machine = Machine(*(worker, each, peers, files), limit=limit.total_seconds(), leaders=leaders)
    try:
        yield machine
    except BaseException as error:
        failed = error
        raise
    finally:
        machine.close(failed)


def _welcome(door: socket.socket, processes: int) -> tuple[dict[int, socket.socket], list[int]]:
    """Return the sockets to the other processes, by worker, and the memory that they have got."""
    files = [os.memfd_create("switchgnn") for _ in range(_FILES)]
    peers: dict[int, socket.socket] = {}
    with door:
        while len(peers) < processes - 1:
            peer, _ = door.accept()
            peer.settimeout(door.gettimeout())
            peers[int(peer.recv(_MOST_BYTES))] = peer
            socket.send_fds(peer, [b"m"], files)
    return dict(sorted(peers.items())), files


def _forwarded(name: str) -> Any:  # noqa: ANN401 - methods and properties
    return property(lambda self: getattr(self._between, name))


class MachineTransport(Transport):
    """Sums over the neighbours outside this worker, on its machine and on others.

    Args:
        machine: the processes of the machine.
        partition: the worker's part, with its place in the machine.
        between: at the leader, sums over the neighbours on other machines for all rows of this one.
    """

    attend, next_epoch, close = map(_forwarded, ("attend", "next_epoch", "close"))
    status, report, injected = map(_forwarded, ("status", "report", "injected"))
    traffic, expected_traffic = map(_forwarded, ("traffic", "expected_traffic"))

    def __init__(self, machine: Machine, partition: Partition, between: Transport | None) -> None:
        self._machine = machine
        self._between = between or LocalTransport(0)
        self._place, self._size = partition.place, len(partition.machine)
        row = np.full(self._size, -1)
        row[self._place] = np.arange(len(self._place))
        self._beside = {}
        for direction, (source, destination) in zip(
            (Direction.FORWARD, Direction.BACKWARD),
            (partition.beside, partition.beside[::-1]),
            strict=True,
        ):
            ends = row[destination], source
            own, ones = ends[0] >= 0, np.ones(len(source), np.float32)
            self._beside[direction] = csr_matrix(
                (ones[own], (ends[0][own], ends[1][own])), shape=(len(self._place), self._size)
            )

    def aggregate(
        self, rows: NDArray[np.float32], direction: Direction, tensor_id: int = 0
    ) -> NDArray[np.float32]:
        """Sum over the neighbours on other workers; see ``Transport``."""
        check_rows(rows, len(self._place), self._machine.worker)
        shape = (2, self._size, rows.shape[1])
        size = rows.itemsize * int(np.prod(shape))

        def both(memory: Memory) -> NDArray[np.float32]:
            """Return the rows of the machine, and their sums over other machines."""
            return memory[:size].view(np.float32).reshape(shape)

        def write(memory: Memory) -> None:
            both(memory)[0, self._place] = rows

        def lead(memory: Memory) -> None:
            try:
                both(memory)[1] = self._between.aggregate(both(memory)[0], direction, tensor_id)
            except HostError as error:
                raise HostError(
                    f"In the exchange between machines, each numbered as a worker: {error}",
                    error.workers,
                ) from error

        memory, sums = self._machine.take(
            f"sums {direction.value} rows of {rows.shape[1]} numbers, tensor {tensor_id}",
            *(size, write, lead),
            lambda memory: self._beside[direction] @ both(memory)[0],
            attend=self.attend,
        )
        sums += both(memory)[1, self._place]
        result: NDArray[np.float32] = sums
        return result

    def compress(self, compression: Compression) -> None:
        """Refuse a cache and fewer bits."""
        compression.refuse(*BETWEEN_MACHINES)
