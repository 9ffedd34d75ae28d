"""Sums over remote neighbours, exchanged in a thread while the worker computes.

Rows may be on any device: they are exchanged from the CPU, and the sums are copied back.
"""

import itertools
import threading
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn

from switchgnn.base.array_types import Float32s, Int64s
from switchgnn.host.links.transport import NO_TRAFFIC, Transport, add_traffic
from switchgnn.host.wire.link import Traffic
from switchgnn.planner.base.direction import Direction
from switchgnn.training.base.steps import SharedSteps
from switchgnn.training.exchange.cache import SkippedRows
from switchgnn.training.exchange.columns import Columns
from switchgnn.training.exchange.standby import Standby

# Seconds after which other workers may miss an answer.
_LONG = 0.05
Linear = Callable[[Tensor], Tensor]


@dataclass
class Ledger:
    """The exchanges of one worker so far."""

    expected: Traffic = NO_TRAFFIC  # their traffic on the link without losses
    plain: Traffic = NO_TRAFFIC  # the same if all columns of their rows were exchanged
    # their number, by direction and width
    exchanges: Counter[tuple[Direction, int]] = field(default_factory=Counter)
    kept: int = 0  # passes of a layer that reused kept sums and needed no exchange

    def enter(
        self, transport: Transport, width: int, direction: Direction, whole: int | None = None
    ) -> None:
        """Count one exchange of rows, which have `whole` columns if not all are exchanged."""
        traffic = transport.expected_traffic(width, direction)
        self.expected = add_traffic(self.expected, traffic)
        if whole is not None:
            traffic = transport.expected_traffic(whole, direction)
        self.plain = add_traffic(self.plain, traffic)
        self.exchanges[direction, width] += 1

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as plain data, for JSON."""
        return {
            "expected": self.expected._asdict(),
            "plain": self.plain._asdict(),
            "exchanges": [
                {"direction": direction.value, "width": width, "times": times}
                for (direction, width), times in self.exchanges.items()
            ],
            "kept": self.kept,
        }


@dataclass
class ExchangeClock:
    """Seconds of exchanges, and those of them in which the worker waited."""

    exchanging: float = 0.0
    waiting: float = 0.0


class RemoteSum:
    """Runs one exchange at a time, in the order of the calls, in a thread of its own.

    All workers must launch the same exchanges in the same order. Use it as a context manager.
    """

    def __init__(self, transport: Transport, *, keep: float = 1.0) -> None:
        self.clock = ExchangeClock()
        self.ledger = Ledger()
        self.new_tensor_id = itertools.count().__next__  # returns another such number at each call
        # the numbers of the tensors that layers exchange, see `Transport.aggregate`
        self.tensor_ids: dict[nn.Module, int] = {}
        self.names: dict[int | None, str] = {}  # the layers of these tensors, in messages
        # those that are exchanged; None: all
        self.columns = Columns(keep, self.new_tensor_id) if keep < 1 else None
        self.skipped: SkippedRows | None = None  # the rows that are sent less often; None: none
        self.transport = transport  # carries the rows
        self.standby: Standby | None = None  # carries them while the switch is silent
        self.steps = SharedSteps()  # has the exchanges among the operations of all workers
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="exchange")

    def __enter__(self) -> "RemoteSum":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.steps.leave()
        self._thread.shutdown(cancel_futures=True)

    @contextmanager
    def attending(self) -> Iterator[None]:
        """Answer other workers during a long block; see ``Transport.attend``."""
        over = threading.Event()

        def attend() -> None:
            if not over.wait(_LONG):
                (self.standby or self.transport).attend(over.is_set)

        attendant = self._thread.submit(attend)
        try:
            yield
        finally:
            over.set()
        attendant.result()

    def submit(
        self,
        rows: Tensor,
        direction: Direction,
        tensor_id: int | None = 0,
        whole: int | None = None,
    ) -> "Future[Float32s]":
        """Queue an exchange of [n, F]; the rows must not change until :meth:`result` returns.

        `tensor_id`: None: not sums are wanted but the rows, see `Transport.copies`. `whole`: all
        columns, where only some are exchanged.
        """
        what = f"layer {self.names[tensor_id]}" if tensor_id in self.names else "rows"
        words = f"the exchange of {what} ({direction.value}, {rows.shape[1]} columns)"
        self.steps.enter(words, self.attending)
        # From a GPU, the copy begins when the rows are computed, and the thread waits for its end.
        rows = rows.detach().to(torch.float32).contiguous()
        values, copied = rows.to("cpu", non_blocking=True), None
        if rows.is_cuda:
            copied = torch.cuda.current_stream(rows.device).record_event()
        return self._thread.submit(self._exchange, values, copied, direction, tensor_id, whole)

    def result(self, future: "Future[Float32s]", device: torch.device | str = "cpu") -> Tensor:
        """Wait for an exchange and return its sums on a device, float32[n, F]."""
        started = time.perf_counter()
        try:
            sums = self.steps.result(future)
        finally:
            if not future.done():
                self.transport.stop()
        self.clock.waiting += time.perf_counter() - started
        values = torch.from_numpy(sums)
        if torch.device(device).type == "cuda":
            return values.pin_memory().to(device, non_blocking=True)
        return values.to(device)

    def _exchange(
        self,
        values: Tensor,
        copied: "torch.cuda.Event | None",
        direction: Direction,
        tensor_id: int | None,
        whole: int | None,
    ) -> Float32s:
        if copied is not None:
            copied.synchronize()
        rows: Float32s = values.numpy()
        started = time.perf_counter()
        try:
            if tensor_id is None:
                sums = self.transport.copies(rows, direction)
            else:
                sums = (self.standby or self.transport).aggregate(rows, direction, tensor_id)
        finally:
            self.clock.exchanging += time.perf_counter() - started
        if self.standby is None or not self.standby.down:
            self.ledger.enter(self.transport, rows.shape[1], direction, whole)
        return sums


def with_adjoint(values: Tensor, there: Linear, back: Linear) -> Tensor:
    """Return ``there(values)``, whose gradient is ``back`` of that of the results, and so on.

    Each is the adjoint of the other: an exchange, of which autograd sees nothing.
    """
    found: Tensor = _Adjoint.apply(values, there, back)  # type: ignore[no-untyped-call]
    return found


class _Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, there: Linear, back: Linear) -> Tensor:  # noqa: ANN401
        ctx.ways = there, back
        return there(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:  # noqa: ANN401
        (gradient,), (there, back) = gradients, ctx.ways
        return with_adjoint(gradient, back, there), None, None


class KeptSum:
    """The sums of an input that does not change, kept after the first exchange.

    Where summing before the linear map sends wider rows, it pays off only after some passes, whose
    number is not known in advance. Rows are then sent mapped until as many elements have been sent
    as the wider rows have (the ski-rental rule), which is at most twice the optimum.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._inputs: weakref.ref[Tensor] | None = None
        self._version = 0
        self._sums: Tensor | None = None
        self._sent = 0

    def of(self, inputs: Tensor) -> Tensor | None:
        """Return the kept sums of these inputs, or None."""
        known = None if self._inputs is None else self._inputs()
        version = -1 if inputs.is_inference() else inputs._version
        if known is not inputs or version < 0 or version != self._version:
            self._inputs, self._version = weakref.ref(inputs), version
            self._sums, self._sent = None, 0
        if self._sums is not None:
            self._ledger.kept += 1
        return self._sums

    def keep(self, sums: Tensor) -> None:
        """Keep the sums of the inputs of the last call of :meth:`of`."""
        self._sums = sums

    def pays(self, elements: int) -> bool:
        """Return whether this many elements of a row have been sent already."""
        return self._sent >= elements

    def sent(self, elements: int) -> None:
        """Count elements of a row that are sent mapped in this pass."""
        self._sent += elements


class LocalSum:
    """Sums over the neighbours on this worker, as products with a sparse matrix.

    PyTorch multiplies CSR matrices with MKL, which takes indices of 32 bits. `edges`: int64[2, E],
    (source, destination), each as often as it occurs; `shape`: destinations and sources; `weights`:
    float32[E], or None for 1.
    """

    def __init__(
        self, edges: Int64s, shape: tuple[int, int], weights: Float32s | None = None
    ) -> None:
        source, destination = edges
        values = np.ones(len(source), dtype=np.float32) if weights is None else weights
        matrix = csr_matrix((values, (destination, source)), shape=shape)
        self.destinations = shape[0]
        self._matrices = {
            Direction.FORWARD: _tensor(matrix),
            Direction.BACKWARD: _tensor(matrix.T.tocsr()),
        }

    def sums(self, rows: Tensor, direction: Direction) -> Tensor:
        """Return the sums [destinations, F] of rows [sources, F]; the other way round backward."""
        # Not all devices have sparse products of shorter floats.
        dtype = torch.promote_types(rows.dtype, torch.float32)
        matrix = self._matrices[direction]
        if (matrix.device, matrix.dtype) != (rows.device, dtype):
            matrix = self._matrices[direction] = matrix.to(rows.device, dtype)
        with torch.autocast(rows.device.type, enabled=False):
            return (matrix @ rows.to(dtype)).to(rows.dtype)


def _tensor(matrix: csr_matrix) -> Tensor:
    with warnings.catch_warnings():
        # PyTorch warns that CSR tensors are in beta, and that it does not check these.
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
    over the transposed edges in the same way, and so on for its own gradients.

    `partial`: makes the partial sums that are sent instead of rows; None: rows are sent. `against`:
    whether `local` has the edges from target to source, so remote ones are summed so, too.
    """

    def __init__(
        self,
        local: LocalSum,
        remote: RemoteSum | None,
        partial: LocalSum | None = None,
        *,
        against: bool = False,
    ) -> None:
        self._local = local
        self._remote = remote
        self._partial = partial
        self._against = against

    def __call__(self, rows: Tensor, tensor_id: int = 0, *, whole: bool = False) -> Tensor:
        """Return the sums [n, F] of rows [n, F], one for each vertex of this worker.

        `whole`: all columns are exchanged, even where only some are chosen.
        """
        remote = self._remote
        columns = None if remote is None or whole else remote.columns
        scored = columns is not None and columns.scoring and torch.is_grad_enabled()
        there, back = (partial(self._directed, way, tensor_id, columns) for way in Direction)
        skipped = None if remote is None else remote.skipped
        if scored and not rows.requires_grad:
            # They need a gradient for their scores alone, so it is not exchanged.
            rows, skipped = rows.detach().requires_grad_(), None
            back = partial(self._local.sums, direction=Direction.BACKWARD)
        takers = [each for each in (columns if scored else None, skipped) if each is not None]
        if takers and rows.requires_grad:
            values, rows = rows.detach(), rows.view_as(rows)

            def note(gradient: Tensor) -> None:
                for taker in takers:
                    taker.note(tensor_id, values, gradient.detach())

            rows.register_hook(note)  # type: ignore[no-untyped-call]
        return with_adjoint(rows, there, back)

    def _directed(
        self, direction: Direction, tensor_id: int, columns: Columns | None, rows: Tensor
    ) -> Tensor:
        """Return the sums over the neighbours of one direction, without autograd."""
        local = partial(self._local.sums, rows, direction)
        if self._remote is None:
            return local()
        chosen = None if columns is None else columns.of(tensor_id, rows.shape[1])
        if self._remote.skipped is not None and direction is Direction.FORWARD:
            self._remote.skipped.before(
                tensor_id, tensor_id if chosen is None else chosen.tensor_id
            )
        way = direction.opposite if self._against else direction
        if chosen is None:
            exchange = self._remote.submit(self._to_send(rows, direction), way, tensor_id)
            sums, found = local(), self._received(exchange, rows, direction)
            if columns is not None and direction is Direction.FORWARD:
                columns.note_sums(tensor_id, found)
            return sums.add_(found)
        kept = chosen.columns.to(rows.device)
        sent = self._to_send(rows[:, kept], direction)
        exchange = self._remote.submit(sent, way, chosen.tensor_id, rows.shape[1])
        sums = local()
        found = self._received(exchange, rows, direction)
        return sums.index_add_(1, kept, found.to(sums.dtype))

    def _to_send(self, rows: Tensor, direction: Direction) -> Tensor:
        if self._partial is None:
            return rows
        if direction is Direction.FORWARD:
            return torch.cat([rows, self._partial.sums(rows, direction)])
        # Backward no partial sum has a remote neighbour that needs it.
        return torch.cat([rows, rows.new_zeros(self._partial.destinations, rows.shape[1])])

    def _received(self, exchange: "Future[Float32s]", rows: Tensor, direction: Direction) -> Tensor:
        assert self._remote is not None  # noqa: S101 - the exchange is one of its own
        found = self._remote.result(exchange, rows.device)
        if self._partial is None or direction is Direction.FORWARD:
            return found[: len(rows)]
        return self._partial.sums(found[len(rows) :], Direction.BACKWARD)


class ReplicaSum(NeighbourSum):
    """Sums over all neighbours, where a vertex cut gives each edge to one worker.

    Each replica adds up its own edges, and the exchange adds up the replicas: all get equal sums.
    Backward, the gradients of the replicas are added up before they go along the edges.
    `shared`: bool[n], the replicas of vertices with others.
    """

    def __init__(self, local: LocalSum, remote: RemoteSum | None, shared: Tensor) -> None:
        super().__init__(local, remote)
        self._shared = shared[:, None]

    def _directed(
        self, direction: Direction, tensor_id: int, columns: Columns | None, rows: Tensor
    ) -> Tensor:
        if direction is Direction.FORWARD:
            return self._complete(self._local.sums(rows, direction), direction, tensor_id)
        return self._local.sums(self._complete(rows, direction, tensor_id), direction)

    def _complete(self, rows: Tensor, direction: Direction, tensor_id: int) -> Tensor:
        if self._remote is None:
            return rows
        found = self._remote.result(self._remote.submit(rows, direction, tensor_id), rows.device)
        self._shared = self._shared.to(rows.device)
        return torch.where(self._shared, found.to(rows.dtype), rows)
