# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Normalisations over the vertices of all workers, from sums that one all-reduce makes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn

from switchgnn.training.errors import UnsupportedLayerError
from switchgnn.training.layers.pyg_layers import called_by


class VertexSums:
    """Sums over the vertices of all workers, which make the same calls in the same order.

    Attributes:
        add: replaces a tensor by its sum over all workers, and returns it.
    """

    def __init__(self, add: Callable[[Tensor], Tensor]) -> None:
        self.add = add

    def moments(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the number of rows of all workers, their sums, and the sums of their squares.

        Gradients are those of one process. `rows`: [n, ...], those of this worker. The results are
        float64[], [...] and [...], as the mean and the variance of float32 need more digits.
        """
        count, sums, squares = _Moments.apply(rows, self)  # type: ignore[no-untyped-call]
        return count, sums, squares

    def mean_and_variance(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the number of rows, their mean, and their biased variance, as `moments` does."""
        count, sums, squares = self.moments(rows)
        mean = sums / count
        return count, mean, (squares / count - mean.square()).clamp(min=0)


class _Moments(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        rows: Tensor,
        sums: VertexSums,
    ) -> tuple[Tensor, Tensor, Tensor]:
        ctx.sums = sums
        ctx.save_for_backward(rows)
        exact = rows.double()
        both = torch.stack([exact.sum(0), exact.square().sum(0)])
        flat = torch.cat([both.flatten(), both.new_full((1,), len(rows))])
        total = sums.add(flat)
        count, (first, second) = total[-1].clone(), total[:-1].view_as(both).unbind()
        ctx.mark_non_differentiable(count)
        return count, first.clone(), second.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        (rows,) = ctx.saved_tensors
        by_sums, by_squares = ctx.sums.add(torch.stack(gradients[1:])).unbind()
        return (by_sums + 2 * rows.double() * by_squares).to(rows.dtype), None


def _batch_norm(norm: Any, sums: VertexSums, x: Tensor) -> Tensor:  # noqa: ANN401
    if x.dim() != 2 or not (norm.training or norm.running_mean is None):
        found: Tensor = type(norm).forward(norm, x)
        return found
    count, mean, variance = sums.mean_and_variance(x)
    if norm.training and norm.running_mean is not None:
        with torch.no_grad():
            momentum = norm.momentum
            if not isinstance(norm, pyg.InstanceNorm):
                norm.num_batches_tracked.add_(1)
                momentum = 1 / float(norm.num_batches_tracked) if momentum is None else momentum
            norm.running_mean.lerp_(mean.to(norm.running_mean.dtype), momentum)
            unbiased = variance * count / (count - 1)
            norm.running_var.lerp_(unbiased.to(norm.running_var.dtype), momentum)
    return _affine(norm, _less(x, mean) / (variance + norm.eps).sqrt().to(x.dtype))


def _pyg_batch_norm(norm: pyg.BatchNorm, sums: VertexSums, x: Tensor) -> Tensor:
    # Its own forward looks at the number of vertices of this worker.
    return _batch_norm(norm.module, sums, x)


def _layer_norm(norm: pyg.LayerNorm, sums: VertexSums, x: Tensor) -> Tensor:
    if norm.mode != "graph":
        found: Tensor = pyg.LayerNorm.forward(norm, x)
        return found
    _, mean, variance = sums.mean_and_variance(x.flatten())
    # As of `std`, the gradient of the root is 0 where all numbers are equal.
    deviation = variance.where(variance > 0, 1.0).sqrt() * (variance > 0)
    return _affine(norm, _less(x, mean) / (deviation + norm.eps).to(x.dtype))


def _graph_norm(norm: pyg.GraphNorm, sums: VertexSums, x: Tensor) -> Tensor:
    _, mean, variance = sums.mean_and_variance(x)
    scale = norm.mean_scale.double()
    around = variance + ((1 - scale) * mean).square()
    return _affine(norm, _less(x, mean * scale) / (around + norm.eps).sqrt().to(x.dtype))


def _pair_norm(norm: pyg.PairNorm, sums: VertexSums, x: Tensor) -> Tensor:
    _, mean, variance = sums.mean_and_variance(x)
    centred = _less(x, mean)
    size = (norm.eps + variance.sum()).sqrt().to(x.dtype)
    if norm.scale_individually:
        size = norm.eps + centred.norm(2, -1, keepdim=True)
    found: Tensor = norm.scale * centred / size
    return found


def _mean_subtraction(_: pyg.MeanSubtractionNorm, sums: VertexSums, x: Tensor) -> Tensor:
    return _less(x, sums.mean_and_variance(x)[1])


def _graph_size_norm(_: pyg.GraphSizeNorm, sums: VertexSums, x: Tensor) -> Tensor:
    return x * sums.moments(x[:, :0])[0].pow(-0.5).to(x.dtype)


def _less(x: Tensor, mean: Tensor) -> Tensor:
    return x - mean.to(x.dtype)


def _affine(norm: Any, x: Tensor) -> Tensor:  # noqa: ANN401
    return x if norm.weight is None else x * norm.weight + norm.bias


_NORMS: tuple[tuple[Any, Callable[[Any, VertexSums, Tensor], Tensor]], ...] = (
    (nn.BatchNorm1d, _batch_norm),
    (nn.SyncBatchNorm, _batch_norm),
    (pyg.BatchNorm, _pyg_batch_norm),
    (pyg.InstanceNorm, _batch_norm),
    (pyg.LayerNorm, _layer_norm),
    (pyg.GraphNorm, _graph_norm),
    (pyg.PairNorm, _pair_norm),
    (pyg.MeanSubtractionNorm, _mean_subtraction),
    (pyg.GraphSizeNorm, _graph_size_norm),
)


def normalise_over_all(model: nn.Module, sums: VertexSums) -> None:
    """Make the normalisations of a model take the vertices of all workers.

    The model is changed in place; parameters and buffers keep their names.
    """
    for name, module in model.named_modules():
        for kind, compute in _NORMS:
            # A subclass with another forward is the user's own.
            if isinstance(module, kind) and type(module).forward is kind.forward:
                whole = partial(_forward, called_by(name, module), partial(compute, module, sums))
                object.__setattr__(module, "forward", whole)
                break


def _forward(
    called: str,
    compute: Callable[[Tensor], Tensor],
    x: Tensor,
    batch: Tensor | None = None,
    *_sizes: int | None,
    **_named_sizes: int | None,
) -> Tensor:
    if batch is not None:
        raise UnsupportedLayerError(
            f"{called} was given several graphs: call it without `batch`, as the graph is one."
        )
    return compute(x)
