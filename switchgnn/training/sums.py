# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sums over remote neighbours, exchanged in a thread while other things are computed.

Rows may be on any device; the thread of the exchange brings its sums back there.
"""

import threading
import time
import warnings
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from switchgnn.host.transport import NO_TRAFFIC, Transport, add_traffic
from switchgnn.host.wire.link import Traffic
from switchgnn.planner.direction import Direction


@dataclass
class Ledger:
    """The exchanges of one worker so far.

    Attributes:
        expected: what they should have put on the link, all together, without losses.
        exchanges: their number, by direction and width.
        kept: passes of a layer that reused kept sums and needed no exchange.
    """

    expected: Traffic = NO_TRAFFIC
    exchanges: Counter[tuple[Direction, int]] = field(default_factory=Counter)
    kept: int = 0

    def enter(self, transport: Transport, width: int, direction: Direction) -> None:
        """Count one exchange.

        Args:
            transport: the transport that carries it.
            width: the elements of a row.
            direction: forward or backward.
        """
        once = transport.expected_traffic(width, direction)
        self.expected = add_traffic(self.expected, once)
        self.exchanges[direction, width] += 1

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as plain data, for JSON."""
        exchanges = [
            {"direction": direction.value, "width": width, "times": times}
            for (direction, width), times in self.exchanges.items()
        ]
        return {
            "expected": self.expected._asdict(),
            "exchanges": exchanges,
            "kept": self.kept,
        }


Shape = tuple[int, ...]


class Event(Protocol):
    """The end of a copy."""

    def synchronize(self) -> None:
        """Wait until the copy is done."""

    def query(self) -> bool:
        """Tell whether the copy is done."""


class Lane(Protocol):
    """Copies from and to one device, beside what it computes."""

    def pinned(self, shape: Shape) -> Tensor:
        """Return new float32 memory on the host, which the device copies from and to by itself."""

    def down(self, rows: Tensor, pinned: Tensor) -> Event:
        """Begin to copy rows to the host, behind what the caller has had computed so far."""

    def up(self, pinned: Tensor) -> tuple[Tensor, Event]:
        """Begin to copy rows to the device; return where they will be."""

    def need(self, rows: Tensor, event: Event) -> None:
        """Let what the caller has computed from now on wait for a copy to the device."""


class CudaLane:
    """A lane to a GPU of NVIDIA.

    Args:
        device: which one.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        # Two of them: sums that have come must not wait behind rows that are not computed yet.
        self._down = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._up = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def pinned(self, shape: Shape) -> Tensor:
        """Return new float32 memory on the host, pinned."""
        return torch.empty(shape, dtype=torch.float32, pin_memory=True)

    def down(self, rows: Tensor, pinned: Tensor) -> Event:
        """Begin to copy rows to the host, behind what is on the current stream."""
        self._down.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._down):
            pinned.copy_(rows, non_blocking=True)
            event: torch.cuda.Event = self._down.record_event()
        # Their memory may be given to others only when they are copied.
        rows.record_stream(self._down)
        return event

    def up(self, pinned: Tensor) -> tuple[Tensor, Event]:
        """Begin to copy rows to the device; return where they will be."""
        with torch.cuda.stream(self._up):
            rows = pinned.to(self._device, non_blocking=True)
            return rows, self._up.record_event()

    def need(self, rows: Tensor, event: Event) -> None:
        """Let the current stream wait for a copy to the device."""
        current = torch.cuda.current_stream(self._device)
        assert isinstance(event, torch.cuda.Event)  # noqa: S101  it is one of this lane
        current.wait_event(event)
        # Their memory belongs to the other stream, which must not give it to others before.
        rows.record_stream(current)


class OnHost:
    """Rows on their way to the host.

    Args:
        values: where they will be.
        event: the end of the copy; None: they are there.
        give_back: called when nobody looks at them any more.
    """

    def __init__(self, values: Tensor, event: Event | None, give_back: Callable[[], None]) -> None:
        self._values = values
        self._event = event
        self._give_back = give_back

    @contextmanager
    def array(self) -> Iterator[NDArray[np.float32]]:
        """Wait for the rows; they are there until the end of the block."""
        if self._event is not None:
            self._event.synchronize()
        try:
            yield self._values.numpy()
        finally:
            self._give_back()


class OnDevice:
    """Rows on their way to a device.

    Args:
        rows: where they will be.
        need: lets what the caller has computed from now on wait for them.
    """

    def __init__(self, rows: Tensor, need: Callable[[], None]) -> None:
        self._rows = rows
        self._need = need

    def tensor(self) -> Tensor:
        """Return the rows; what is computed with them by the caller waits for them."""
        self._need()
        return self._rows


class Staging:
    """Copies rows between devices and the host; threads may share it.

    Args:
        lane: makes the lane of a device, when it is first needed.
    """

    def __init__(self, lane: Callable[[torch.device], Lane] = CudaLane) -> None:
        self._make = lane
        self._stages: dict[torch.device, _Stage] = {}
        self._lock = threading.Lock()

    def to_host(self, rows: Tensor) -> OnHost:
        """Begin to bring rows to the host, as float32.

        Args:
            rows: [n, F] on any device; they must stay as they are until they are there.

        Returns:
            The rows on their way.
        """
        rows = rows.detach().to(torch.float32).contiguous()
        if rows.device.type == "cpu":
            return OnHost(rows, None, _nothing)
        return self._stage(rows.device).to_host(rows)

    def to_device(self, rows: NDArray[np.float32], device: torch.device) -> OnDevice:
        """Begin to bring rows to a device.

        Args:
            rows: float32[n, F].
            device: any.

        Returns:
            The rows on their way.
        """
        values = torch.from_numpy(rows)
        if device.type == "cpu":
            return OnDevice(values, _nothing)
        return self._stage(device).to_device(values)

    def _stage(self, device: torch.device) -> "_Stage":
        with self._lock:
            if device not in self._stages:
                self._stages[device] = _Stage(self._make(device))
            return self._stages[device]


class _Stage:
    """The lane of a device, and the pinned memory beside it."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._pool = _Pool(lane)

    def to_host(self, rows: Tensor) -> OnHost:
        pinned = self._pool.take(tuple(rows.shape))
        event = self._lane.down(rows, pinned)
        return OnHost(pinned, event, lambda: self._pool.give(pinned, event))

    def to_device(self, values: Tensor) -> OnDevice:
        pinned = self._pool.take(tuple(values.shape))
        pinned.copy_(values)
        rows, event = self._lane.up(pinned)
        self._pool.give(pinned, event)
        return OnDevice(rows, lambda: self._lane.need(rows, event))


class _Pool:
    """Pinned memory that nobody uses, by its shape, each with the last copy from or to it."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._free: defaultdict[Shape, list[tuple[Tensor, Event]]] = defaultdict(list)
        self._lock = threading.Lock()

    def take(self, shape: Shape) -> Tensor:
        """Return memory that no copy uses any more; new memory where there is none."""
        with self._lock:
            for place, (pinned, event) in enumerate(self._free[shape]):
                if event.query():
                    del self._free[shape][place]
                    return pinned
        return self._lane.pinned(shape)

    def give(self, pinned: Tensor, event: Event) -> None:
        """Take memory back, which the copy may still use."""
        with self._lock:
            self._free[tuple(pinned.shape)].append((pinned, event))


def _nothing() -> None:
    """There is nothing to wait for, and nothing to give back."""


# What takes less time is over before anybody misses an answer.
_LONG = 0.05


@dataclass
class Clock:
    """Seconds of exchanges, and those of them in which the worker could do nothing else."""

    exchanging: float = 0.0
    waiting: float = 0.0


class RemoteSum:
    """Runs one exchange at a time, in the order of the calls, in a thread of its own.

    All workers must launch the same exchanges in the same order. Use it as a context manager.

    Args:
        transport: carries the rows.
        staging: brings them from a device and the sums back; None: a new one.

    Attributes:
        clock: the time that the exchanges took.
        ledger: the exchanges and their traffic.
    """

    def __init__(self, transport: Transport, staging: Staging | None = None) -> None:
        self.clock = Clock()
        self.ledger = Ledger()
        self._transport = transport
        self._staging = staging or Staging()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="exchange")

    def __enter__(self) -> "RemoteSum":
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(cancel_futures=True)

    @contextmanager
    def attending(self) -> Iterator[None]:
        """Answer other workers during the block, if it takes long; see ``Transport.attend``.

        Raises:
            HostError: the link is gone.
        """
        over = threading.Event()

        def attend() -> None:
            if not over.wait(_LONG):
                self._transport.attend(over.is_set)

        attendant = self._thread.submit(attend)
        try:
            yield
        finally:
            over.set()
        attendant.result()

    def submit(self, rows: Tensor, direction: Direction) -> "Future[OnDevice]":
        """Queue one exchange of [n, F].

        The rows must not change until :meth:`result` has returned their sums.
        """
        on_host = self._staging.to_host(rows)
        return self._thread.submit(self._exchange, on_host, direction, rows.device)

    def result(self, future: "Future[OnDevice]") -> Tensor:
        """Wait for an exchange and return its sums, float32[n, F].

        Raises:
            SwitchGNNError: whatever stopped it.
        """
        started = time.perf_counter()
        sums = future.result()
        self.clock.waiting += time.perf_counter() - started
        return sums.tensor()

    def _exchange(self, rows: OnHost, direction: Direction, device: torch.device) -> OnDevice:
        with rows.array() as values:
            sums = self._sums(values, direction)
        return self._staging.to_device(sums, device)

    def _sums(self, rows: NDArray[np.float32], direction: Direction) -> NDArray[np.float32]:
        started = time.perf_counter()
        try:
            sums = self._transport.aggregate(rows, direction)
        finally:
            self.clock.exchanging += time.perf_counter() - started
        self.ledger.enter(self._transport, rows.shape[1], direction)
        return sums


class KeptSum:
    """The sums of an input that does not change, kept after the first exchange.

    Where summing before the linear map sends wider rows, it pays only after some passes, and their
    number is not known in advance. Rows are then sent mapped until as many elements have been sent
    as the wider rows have (the rule for ski rental), which is at most twice the optimum.

    Args:
        ledger: counts the passes that needed no exchange.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._inputs: weakref.ref[Tensor] | None = None
        self._version = 0
        self._sums: Tensor | None = None
        self._sent = 0

    def of(self, inputs: Tensor) -> Tensor | None:
        """Return the sums that were kept of these inputs, or None."""
        known = None if self._inputs is None else self._inputs()
        version = -1 if inputs.is_inference() else inputs._version
        if known is not inputs or version < 0 or version != self._version:
            self._inputs, self._version = weakref.ref(inputs), version
            self._sums, self._sent = None, 0
        if self._sums is not None:
            self._ledger.kept += 1
        return self._sums

    def keep(self, sums: Tensor) -> None:
        """Keep the sums of the inputs that :meth:`of` was called with last."""
        self._sums = sums

    def pays(self, elements: int) -> bool:
        """Return whether as many elements of a row of the same inputs have been sent already."""
        return self._sent >= elements

    def sent(self, elements: int) -> None:
        """Count the elements of a row that are sent mapped in this pass."""
        self._sent += elements


class LocalSum:
    """Sums over the neighbours on this worker, as products with a sparse matrix.

    PyTorch multiplies CSR matrices with MKL, which takes indices of 32 bits. The transposed
    matrix of the backward pass is kept as well.

    Args:
        edges: int64[2, E], (source, destination); an edge that occurs twice counts twice.
        shape: the number of destinations and that of sources.
    """

    def __init__(self, edges: NDArray[np.int64], shape: tuple[int, int]) -> None:
        source, destination = edges
        ones = np.ones(len(source), dtype=np.float32)
        matrix = csr_matrix((ones, (destination, source)), shape=shape)
        self._matrices = {
            Direction.FORWARD: _tensor(matrix),
            Direction.BACKWARD: _tensor(matrix.T.tocsr()),
        }

    def sums(self, rows: Tensor, direction: Direction) -> Tensor:
        """Return the sums of rows, one for each end of an edge, [ends, F].

        Args:
            rows: [n, F], one for each start of an edge in this direction.
            direction: forward or backward.
        """
        # There are no sparse products of shorter floats everywhere.
        dtype = torch.promote_types(rows.dtype, torch.float32)
        matrix = self._matrices[direction]
        if (matrix.device, matrix.dtype) != (rows.device, dtype):
            matrix = self._matrices[direction] = matrix.to(rows.device, dtype)
        return (matrix @ rows.to(dtype)).to(rows.dtype)


def _tensor(matrix: csr_matrix) -> Tensor:
    with warnings.catch_warnings():
        # PyTorch calls its CSR tensors beta, and says that it does not check what SciPy made.
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr),
            torch.from_numpy(matrix.indices),
            torch.from_numpy(matrix.data),
            matrix.shape,
        )


class NeighbourSum:
    """Sums over all neighbours of each of this worker's vertices.

    The exchange runs while the local neighbours are added. The backward pass sums the gradients
    over the transposed edges in the same way; rows without a gradient have none.

    Args:
        local: sums over the neighbours on this worker.
        remote: sums over the others; None: there are none.
    """

    def __init__(self, local: LocalSum, remote: RemoteSum | None) -> None:
        self._local = local
        self._remote = remote

    def __call__(self, rows: Tensor) -> Tensor:
        """Return [n, F], the sums of [n, F].

        Raises:
            SwitchGNNError: the exchange failed.
        """
        sums: Tensor = _Sum.apply(rows, self)  # type: ignore[no-untyped-call]
        return sums

    def directed(self, rows: Tensor, direction: Direction) -> Tensor:
        """Return the sums over the neighbours of one direction, without autograd."""
        if self._remote is None:
            return self._local.sums(rows, direction)
        exchange = self._remote.submit(rows, direction)
        sums = self._local.sums(rows, direction)
        return sums.add_(self._remote.result(exchange))


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, neighbours: NeighbourSum) -> Tensor:  # noqa: ANN401
        ctx.neighbours = neighbours
        return neighbours.directed(rows, Direction.FORWARD)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        return ctx.neighbours.directed(gradient, Direction.BACKWARD), None
