# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sums over remote neighbours, exchanged in a thread while other things are computed.

Rows may be on any device; the thread of the exchange brings its sums back there.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

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
