"""Normalisations over the vertices of all workers, from sums that one all-reduce makes."""

from collections.abc import Callable
from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn

from switchgnn.training.base.errors import UnsupportedLayerError
from switchgnn.training.data.partition import Partition
from switchgnn.training.exchange.sums import with_adjoint
from switchgnn.training.layers.forward import Replaced
from switchgnn.training.layers.halo import Halo
from switchgnn.training.layers.summed import called_by

# Of a norm and its inputs [n, F]: what is subtracted from these, and what they are divided by.
_Parts = tuple[Tensor, Tensor]


class VertexSums:
    """Sums over the vertices of all workers, which make the same calls in the same order."""

    def __init__(self, add: Callable[[Tensor], Tensor], partition: Partition | None = None) -> None:
        self.add = add  # replaces a tensor by its sum over all workers, and returns it
        cut = partition is not None and partition.replicas is not None
        self._own = partition.own if partition is not None and cut else None

    def moments(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the number of rows of all workers, their sums, and the sums of their squares.

        Gradients are those of one process. `rows`: [n, ...], those of this worker. The results are
        float64[], [...] and [...], as the mean and the variance of float32 need more digits.
        """
        exact = rows.double()
        both = torch.stack([exact.sum(0), exact.square().sum(0)])
        flat = torch.cat([both.flatten(), both.new_full((1,), len(exact))])
        # The adjoint of a sum over all workers is such a sum.
        total = with_adjoint(flat, self._added, self._added)
        sums, squares = total[:-1].view_as(both).unbind()
        return total[-1].detach(), sums, squares

    def of_own(self, rows: Tensor) -> Tensor:
        """Return those of [n, ...] that count: no mirrors of a vertex cut."""
        return rows[: self._own]

    def _added(self, values: Tensor) -> Tensor:
        return self.add(values.clone())

    def mean_and_variance(
        self, rows: Tensor, *, flat: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the number of rows, their mean, and their biased variance, as `moments` does.

        `flat`: those of all numbers.
        """
        own = self.of_own(rows)
        count, sums, squares = self.moments(own.flatten() if flat else own)
        mean = sums / count
        return count, mean, (squares / count - mean.square()).clamp(min=0)


def _batch(norm: Any, sums: VertexSums, x: Tensor) -> _Parts:  # noqa: ANN401
    count, mean, variance = sums.mean_and_variance(x)
    if norm.training and norm.running_mean is not None:
        with torch.no_grad():
            momentum = norm.momentum
            if not isinstance(norm, pyg.InstanceNorm):
                norm.num_batches_tracked.add_(1)
                momentum = 1 / float(norm.num_batches_tracked) if momentum is None else momentum
            unbiased = variance * count / (count - 1)
            norm.running_mean.lerp_(mean.to(norm.running_mean.dtype), momentum)
            norm.running_var.lerp_(unbiased.to(norm.running_var.dtype), momentum)
    return mean, (variance + norm.eps).sqrt()


def _layer(norm: pyg.LayerNorm, sums: VertexSums, x: Tensor) -> _Parts:
    _, mean, variance = sums.mean_and_variance(x, flat=True)
    # As of `std`, the gradient of the root is 0 where all numbers are equal.
    return mean, variance.where(variance > 0, 1.0).sqrt() * (variance > 0) + norm.eps


def _graph(norm: pyg.GraphNorm, sums: VertexSums, x: Tensor) -> _Parts:
    _, mean, variance = sums.mean_and_variance(x)
    scale = norm.mean_scale.double()
    return mean * scale, (variance + ((1 - scale) * mean).square() + norm.eps).sqrt()


def _pair(norm: pyg.PairNorm, sums: VertexSums, x: Tensor) -> _Parts:
    _, mean, variance = sums.mean_and_variance(x)
    size = (norm.eps + variance.sum()).sqrt()
    if norm.scale_individually:
        size = norm.eps + (x - mean).norm(2, -1, keepdim=True)
    return mean, size / norm.scale


def _mean_subtraction(_: pyg.MeanSubtractionNorm, sums: VertexSums, x: Tensor) -> _Parts:
    count, mean, _variance = sums.mean_and_variance(x)
    return mean, torch.ones_like(count)


def _graph_size(_: pyg.GraphSizeNorm, sums: VertexSums, x: Tensor) -> _Parts:
    count = sums.moments(sums.of_own(x)[:, :0])[0]
    return torch.zeros_like(count), count.sqrt()


_NORMS: tuple[tuple[Any, Callable[[Any, VertexSums, Tensor], _Parts]], ...] = (
    *(
        (kind, _batch)
        for kind in (nn.BatchNorm1d, nn.SyncBatchNorm, pyg.BatchNorm, pyg.InstanceNorm)
    ),
    (pyg.LayerNorm, _layer),
    (pyg.GraphNorm, _graph),
    (pyg.PairNorm, _pair),
    (pyg.MeanSubtractionNorm, _mean_subtraction),
    (pyg.GraphSizeNorm, _graph_size),
)


def normalise_over_all(model: nn.Module, sums: VertexSums) -> None:
    """Make the normalisations of a model take the vertices of all workers.

    The model is changed in place; parameters and buffers keep their names.
    """
    for name, module in model.named_modules():
        for kind, parts in _NORMS:
            # A subclass with another forward is the user's own.
            if isinstance(module, kind) and type(module).forward is kind.forward:
                WholeNorm(module, called_by(name, module), parts, sums)


class WholeNorm(Replaced):
    """The forward pass of a normalisation over the vertices of all workers."""

    def __init__(
        self,
        module: nn.Module,
        called: str,
        parts: Callable[[Any, VertexSums, Tensor], _Parts],
        sums: VertexSums,
    ) -> None:
        super().__init__(module)
        self._called, self._parts, self._sums = called, parts, sums
        self.halo: Halo | None = None  # of the layer around it, whose rows include copies

    def compute(
        self, x: Tensor, batch: Tensor | None = None, *_: int | None, **_named: int | None
    ) -> Tensor:
        """Return [n, F] of [n, F]."""
        if batch is not None:
            raise UnsupportedLayerError(
                f"{self._called} was given several graphs: call it without `batch`, as the graph "
                "is one."
            )
        norm = self.module.module if isinstance(self.module, pyg.BatchNorm) else self.module
        evaluates = not norm.training and getattr(norm, "running_mean", None) is not None
        if evaluates or getattr(norm, "mode", "graph") == "node" or x.dim() != 2:
            found: Tensor = type(norm).forward(norm, x)
            return found
        copied = self.halo is not None and len(x) == self.halo.size
        shift, size = self._parts(norm, self._sums, x[: self.halo.rows] if copied else x)  # type: ignore[union-attr]
        x = (x - shift.to(x.dtype)) / size.to(x.dtype)
        weight = getattr(norm, "weight", None)
        return x if weight is None else x * weight + norm.bias
