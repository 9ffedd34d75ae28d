# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sums over remote neighbours inside autograd, exchanged while other things are computed.

The forward pass launches an exchange, computes what needs no other worker, and then
lands the exchange: it waits for the sums. The backward pass does the same in reverse:
landing launches an exchange of the gradients over the transposed edges, and launching
waits for it. Autograd runs the latest operations first, so what was computed between
launch and landing is also differentiated between them.

Rows may be on any device; the thread of the exchange brings its sums back there.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from switchgnn.host.transport import Transport
from switchgnn.planner.direction import Direction
from switchgnn.training.staging import OnDevice, OnHost, Staging
from switchgnn.training.sums.ledger import Ledger

# What takes less time is over before anybody misses an answer.
_LONG = 0.05


@dataclass
class Clock:
    """Seconds of exchanges, and those of them in which the worker could do nothing else."""

    exchanging: float = 0.0
    waiting: float = 0.0


class _Flight:
    """One exchange of the forward pass and the one of the backward pass that belongs to it."""

    def __init__(self) -> None:
        self.there: Future[OnDevice] | None = None
        self.back: Future[OnDevice] | None = None


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

    def launch(self, rows: Tensor) -> "Launched":
        """Start the exchange of float32[n, F]; land it to get the sums."""
        flight = _Flight()
        launched: Tensor = _Launch.apply(rows, self, flight)  # type: ignore[no-untyped-call]
        return Launched(launched, self, flight)

    def submit(self, rows: Tensor, direction: Direction) -> "Future[OnDevice]":
        """Queue one exchange; the caller goes on with other things."""
        on_host = self._staging.to_host(rows)
        return self._thread.submit(self._exchange, on_host, direction, rows.device)

    def result(self, future: "Future[OnDevice] | None") -> Tensor:
        """Wait for an exchange and return its sums.

        Raises:
            SwitchGNNError: whatever stopped it.
        """
        assert future is not None  # noqa: S101  autograd runs a landing before its launch
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


@dataclass(frozen=True)
class Launched:
    """An exchange that is running."""

    rows: Tensor
    remote: RemoteSum
    flight: _Flight

    def land(self) -> Tensor:
        """Return float32[n, F], the sums over remote neighbours."""
        sums: Tensor = _Land.apply(  # type: ignore[no-untyped-call]
            self.rows, self.remote, self.flight
        )
        return sums


class _Launch(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, remote: RemoteSum, flight: _Flight) -> Tensor:  # noqa: ANN401
        ctx.remote, ctx.flight = remote, flight
        flight.there = remote.submit(rows, Direction.FORWARD)
        return rows.view_as(rows)

    @staticmethod
    def backward(ctx: Any, _placeholder: Tensor) -> tuple[Tensor, None, None]:  # noqa: ANN401
        return ctx.remote.result(ctx.flight.back), None, None


class _Land(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, remote: RemoteSum, flight: _Flight) -> Tensor:  # noqa: ANN401
        ctx.remote, ctx.flight = remote, flight
        sums = remote.result(flight.there)
        return sums.to(rows.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # noqa: ANN401
        ctx.flight.back = ctx.remote.submit(gradient, Direction.BACKWARD)
        # The gradient itself is returned by the backward pass of the launch.
        return gradient.new_zeros(()).expand_as(gradient), None, None
