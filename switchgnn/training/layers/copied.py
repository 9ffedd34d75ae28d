"""Layers that need the rows of remote neighbours themselves, and not just a sum: maxima, attention.

Workers send each other copies of these rows, and the layer runs as it is on a worker's own vertices
and the copies. Backward, the gradients of the copies return and are added up. So it is exact, if
messages depend on the two ends of an edge alone.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from switchgnn.planner.direction import Direction
from switchgnn.training.errors import UnsupportedLayerError
from switchgnn.training.layers.dropout import Anywhere
from switchgnn.training.sums import KeptSum, RemoteSum


class CopiedLayer:
    """The forward pass of a layer over a worker's vertices and copies of their neighbours.

    Args:
        called: its name in messages.
        layer: its own forward pass.
        rows: returns the inputs of a call with rows and edges; refuses those of another graph.
        remote: fetches the copies.
        edges: int64[2, E], from each copy to the rows that it is a neighbour of.
        kept: keeps the copies of inputs that do not change; None: they are fetched each time.
    """

    def __init__(
        self,
        called: str,
        layer: Callable[..., Any],
        rows: Callable[..., Tensor],
        remote: RemoteSum,
        edges: NDArray[np.int64],
        *,
        kept: KeptSum | None,
    ) -> None:
        self._called, self._layer, self._rows, self._remote = called, layer, rows, remote
        self._edges, self._kept = Anywhere(torch.from_numpy(edges)), kept

    def forward(self, x: Tensor, edge_index: Tensor, *others: object, **named: object) -> Tensor:
        """Return [n, F'], given the inputs [n, F] of this worker's vertices."""
        if any(each is not None for each in (*others, *named.values())):
            raise UnsupportedLayerError(
                f"{self._called} was called with more than rows and edges, which the other workers "
                "do not know: leave it out."
            )
        x = self._rows(x, edge_index)
        copies = self._copies_of(x)
        (between,) = self._edges.on(x.device)
        offset = torch.tensor([[len(x)], [0]], device=x.device)
        edges = torch.cat([edge_index, between + offset], dim=1)
        outputs: Tensor = self._layer(torch.cat([x, copies]), edges)
        return outputs[: len(x)]

    def _copies_of(self, x: Tensor) -> Tensor:
        kept = None if x.requires_grad else self._kept
        copies = None if kept is None else kept.of(x)
        if copies is None:
            copies = _Copies.apply(x, self._remote)  # type: ignore[no-untyped-call]
            # Hidden rows would look like constant inputs.
            if kept is not None and torch.is_grad_enabled():
                kept.keep(copies)
        return copies


class _Copies(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, remote: RemoteSum) -> Tensor:  # noqa: ANN401
        ctx.remote = remote
        return remote.result(remote.submit(rows, Direction.FORWARD, None)).to(rows.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        exchange = ctx.remote.submit(gradient, Direction.BACKWARD, None)
        return ctx.remote.result(exchange).to(gradient.dtype), None
