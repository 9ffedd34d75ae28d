# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Dropout that drops the same units however the vertices are split over workers.

Which units are dropped follows from the seed, the call, the vertex's id and the column, by
the mixing function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), instead of from one
stream of random numbers per process.
"""

import torch
from torch import Tensor, nn

_WEYL = -0x61C8864680B583EB  # 0x9E3779B97F4A7C15 as a signed number
_FIRST = -0x40A7B892E31B1A47  # 0xBF58476D1CE4E5B9
_SECOND = -0x6B2FB644ECCEEE15  # 0x94D049BB133111EB
_UNIFORM_BITS = 24


class VertexDropout(nn.Module):
    """Takes the place of an ``nn.Dropout`` whose input has a row per vertex.

    Args:
        share: the share of the units that are dropped, 0 <= share < 1.
        vertices: int64[n], the id of each row in the whole graph.
        seed: the same on every worker, but different for each such module of a model.
    """

    def __init__(self, share: float, vertices: Tensor, seed: int) -> None:
        super().__init__()
        self.share = share
        self.calls = 0
        self._seed = seed
        self._vertices = vertices

    def forward(self, rows: Tensor) -> Tensor:
        """Return [n, ...] with units dropped and the others scaled, in training only."""
        if not self.training or self.share == 0:
            return rows
        if len(rows) != len(self._vertices):
            # Without a row per vertex, the units cannot be the same on all workers.
            return nn.functional.dropout(rows, self.share)
        self.calls += 1
        drawn = self._uniform(rows.numel() // len(rows))
        kept = (drawn >= self.share).view_as(rows)
        return rows * kept / (1 - self.share)

    def _uniform(self, columns: int) -> Tensor:
        """Return numbers from 0 to 1, float32[n, columns], by vertex and column."""
        call = _mix(torch.tensor([self._seed]) * _WEYL + self.calls)
        of_vertex = _mix(self._vertices * _WEYL + call)
        of_unit = _mix(of_vertex[:, None] + torch.arange(1, columns + 1) * _WEYL)
        return _upper(of_unit, 64 - _UNIFORM_BITS).float() / (1 << _UNIFORM_BITS)


def _mix(values: Tensor) -> Tensor:
    """Mix int64 values so that similar values give unrelated results; overflow wraps around."""
    values = (values ^ _upper(values, 30)) * _FIRST
    values = (values ^ _upper(values, 27)) * _SECOND
    return values ^ _upper(values, 31)


def _upper(values: Tensor, shift: int) -> Tensor:
    """Shift right and fill with zeros instead of copies of the sign."""
    return (values >> shift) & ((1 << (64 - shift)) - 1)


def drop_by_vertex(model: nn.Module, vertices: Tensor, seed: int) -> None:
    """Replace every ``nn.Dropout`` of a model by a VertexDropout, in place.

    Args:
        model: the model.
        vertices: int64[n], the id of each row in the whole graph.
        seed: the same on every worker.
    """
    found = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if type(child) is nn.Dropout
    ]
    for place, (parent, name, child) in enumerate(found):
        own = VertexDropout(child.p, vertices, seed * 1000 + place)
        setattr(parent, name, own.train(child.training))


def dropout_calls(model: nn.Module) -> list[int]:
    """Return how often each VertexDropout was called; with the seed that is its state."""
    return [module.calls for module in model.modules() if isinstance(module, VertexDropout)]


def restore_dropout_calls(model: nn.Module, calls: list[int]) -> None:
    """Continue with the state that :func:`dropout_calls` returned."""
    modules = [module for module in model.modules() if isinstance(module, VertexDropout)]
    for module, number in zip(modules, calls, strict=True):
        module.calls = number
