# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Exchanges a layer bin by bin, inside autograd.

In the forward pass a bin's rows are fed as soon as they exist, and its sums are taken when
they have arrived. In the backward pass it is the other way round: where sums were taken,
gradients are fed, and where rows were fed, their gradients are taken. Autograd runs the
latest operations first, so the backward pass visits the bins in reverse order. The forward
pass always finishes in its order, so the backward pass finishes in the reverse one.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from switchgnn.host.direct import DirectTransport, Stream
from switchgnn.host.direct.stream import Driver
from switchgnn.planner.direction import Direction
from switchgnn.training.bins.options import BinOptions
from switchgnn.training.sums.ledger import Ledger
from switchgnn.training.sums.remote_sum import Clock


class BinnedSum:
    """Sums over remote neighbours, bin by bin. Use it as a context manager.

    Args:
        transport: carries the rounds in a thread of its own.
        options: what overlaps.

    Attributes:
        ledger: the rounds and their traffic.
    """

    def __init__(self, transport: DirectTransport, options: BinOptions) -> None:
        self.options = options
        self._transport = transport
        self._background = transport.in_background()
        self._driver: Driver | None = None
        self._clock = Clock()
        self.ledger = Ledger()

    def __enter__(self) -> "BinnedSum":
        self._driver = self._background.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:  # noqa: ANN401
        try:
            if error[0] is None:
                self._transport.finish()
        finally:
            self._background.__exit__(*error)

    def attending(self) -> AbstractContextManager[None]:
        """Answer other workers during the block, if it takes long."""
        return self._driver.attending() if self._driver else nullcontext()

    @property
    def clock(self) -> Clock:
        """The seconds in which a round was running, and those of waiting, until now."""
        self._clock.exchanging = self._driver.seconds if self._driver else 0.0
        return self._clock

    def begin(self, width: int, direction: Direction) -> Stream:
        """Begin a round and return the stream of its rows."""
        self.ledger.enter(self._transport, width, direction)
        with self.waiting():
            return self._transport.begin(width, direction)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time of the block as waiting."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._clock.waiting += time.perf_counter() - started


class _OneWay:
    """One round of a layer, forward or backward.

    Args:
        remote: begins the round when the first rows are there.
        direction: forward or backward.
        order: int64[n], the worker's rows in the order in which they are computed.
    """

    def __init__(self, remote: BinnedSum, direction: Direction, order: NDArray[np.int64]) -> None:
        self._remote = remote
        self._direction = direction
        self._order = order
        self._stream: Stream | None = None
        self._held: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
        self._left = len(order)
        self._needs: dict[int, NDArray[np.int64]] = {}

    def feed(self, rows: Tensor, span: slice) -> None:
        """Send a bin's rows, or keep them until those of all bins are there."""
        values = np.ascontiguousarray(rows.detach().numpy(), dtype=np.float32)
        if self._stream is None:
            self._stream = self._remote.begin(values.shape[1], self._direction)
        self._held.append((self._order[span], values))
        self._left -= len(values)
        if self._remote.options.intra or not self._left:
            for places, held in self._held:
                self._stream.feed(places, held)
            self._held.clear()

    def first(self, spans: Sequence[slice]) -> int:
        """Wait for what one of several bins needs; return the index of the first that is ready."""
        stream = self._begun
        if not self._remote.options.inter:
            # Without the inter-layer pipeline every bin waits for the rows of all.
            with self._remote.waiting():
                stream.wait_any([stream.needs(self._order)])
            return 0
        for span in spans:
            if span.start not in self._needs:
                self._needs[span.start] = stream.needs(self._order[span])
        with self._remote.waiting():
            return stream.wait_any([self._needs[span.start] for span in spans])

    def sums(self, span: slice) -> Tensor:
        """Return a bin's sums when they are there."""
        if not self._remote.options.inter:
            self.first([span])
        with self._remote.waiting():
            return torch.from_numpy(self._begun.sums(self._order[span]))

    @property
    def _begun(self) -> Stream:
        assert self._stream is not None  # noqa: S101  a layer feeds rows before it waits
        return self._stream


class LayerRounds:
    """The exchanges of a layer: one in the forward pass and one in the backward pass.

    Args:
        remote: the sums over remote neighbours.
        order: int64[n], the worker's rows in the order in which they are computed.
    """

    def __init__(self, remote: BinnedSum, order: NDArray[np.int64]) -> None:
        self.there = _OneWay(remote, Direction.FORWARD, order)
        self.back = _OneWay(remote, Direction.BACKWARD, order)

    def feed(self, rows: Tensor, span: slice) -> Tensor:
        """Send a bin's rows; return a tensor of them that the sums can depend on."""
        fed: Tensor = _Feed.apply(rows, self, span)  # type: ignore[no-untyped-call]
        return fed

    def first(self, spans: Sequence[slice]) -> int:
        """Wait until one of several bins is ready, and return its index."""
        return self.there.first(spans)

    def add_remote(self, local: Tensor, span: slice) -> Tensor:
        """Return a bin's sums over all neighbours, given those over the local ones."""
        sums: Tensor = _AddRemote.apply(local, self, span)  # type: ignore[no-untyped-call]
        return sums


class _Feed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, rounds: LayerRounds, span: slice) -> Tensor:  # noqa: ANN401
        ctx.rounds, ctx.span = rounds, span
        rounds.there.feed(rows, span)
        return rows.view_as(rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # noqa: ANN401
        return gradient + ctx.rounds.back.sums(ctx.span), None, None


class _AddRemote(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, rounds: LayerRounds, span: slice) -> Tensor:  # noqa: ANN401
        ctx.rounds, ctx.span = rounds, span
        return local + rounds.there.sums(span)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # noqa: ANN401
        ctx.rounds.back.feed(gradient, ctx.span)
        return gradient, None, None
