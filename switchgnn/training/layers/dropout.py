"""Dropout that drops the same units however the vertices are split over workers.

Whether a unit is dropped follows from the seed, the epoch, the call in it, the vertex's id and the
column, by the mixing function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). So a resumed
training needs only the number of its epoch to draw the same numbers.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class Anywhere:
    """Constant tensors, copied once to the device of a model, which may move after wrapping."""

    def __init__(self, *tensors: Tensor) -> None:
        self._tensors = tensors
        self._there = tensors

    def on(self, device: torch.device) -> tuple[Tensor, ...]:
        """Return them on a device."""
        if self._there[0].device != device:
            self._there = tuple(each.to(device) for each in self._tensors)
        return self._there


_WEYL = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_UNIFORM_BITS = 24
# Numbers mixed at a time, which fit in the processor's cache.
_AT_ONCE = 1 << 14
# On other devices the limit only bounds the memory: some words of 8 bytes each.
_AT_ONCE_ELSEWHERE = 1 << 24


class VertexDropout(nn.Module):
    """Replaces an ``nn.Dropout`` whose input has a row per vertex.

    Args:
        share: the share of dropped units, 0 <= share < 1.
        vertices: int64[n], the id of each row in the whole graph.
        seed: the same on every worker, but different for each such module of a model.
    """

    def __init__(self, share: float, vertices: Tensor, seed: int) -> None:
        super().__init__()
        self.share = share
        self.epoch = 0
        self.calls = 0
        self._seed = seed
        self._vertices = Anywhere(vertices)
        self._rows = len(vertices)

    def forward(self, rows: Tensor) -> Tensor:
        """Return [n, ...] with units dropped and the others scaled, in training only."""
        if not self.training or self.share == 0:
            return rows
        if len(rows) != self._rows:
            # Without a row per vertex, the units cannot be the same on all workers.
            return nn.functional.dropout(rows, self.share)
        self.calls += 1
        kept = self._kept(rows.numel() // len(rows), rows.device).view_as(rows)
        return rows * kept / (1 - self.share)

    def _kept(self, columns: int, device: torch.device) -> Tensor:
        """Return which units stay, bool[n, columns]: those that draw the share or more."""
        least = math.ceil(float(np.float32(self.share)) * (1 << _UNIFORM_BITS))
        if device.type == "cpu":
            return torch.from_numpy(self._kept_on_cpu(columns, least))
        return self._kept_on(device, columns, least)

    def _kept_on_cpu(self, columns: int, least: int) -> NDArray[np.bool_]:
        (vertices,) = self._vertices.on(torch.device("cpu"))
        starts = _mix(vertices.numpy().astype(np.uint64) * _WEYL + self._call())
        steps = np.arange(1, columns + 1, dtype=np.uint64) * _WEYL
        kept = np.empty((len(starts), columns), dtype=np.bool_)
        at_once = max(1, _AT_ONCE // max(1, columns))
        for first in range(0, len(starts), at_once):
            part = slice(first, first + at_once)
            drawn = _mix(starts[part, np.newaxis] + steps)
            drawn >>= np.uint64(64 - _UNIFORM_BITS)
            np.greater_equal(drawn, np.uint64(least), out=kept[part])
        return kept

    def _kept_on(self, device: torch.device, columns: int, least: int) -> Tensor:
        """Draw the same in int64, which wraps around as well."""
        (vertices,) = self._vertices.on(device)
        weyl, call = _signed(_WEYL), _signed(self._call()[0])
        starts = _mix_signed(vertices * weyl + call)
        steps = torch.arange(1, columns + 1, device=device) * weyl
        kept = torch.empty((len(starts), columns), dtype=torch.bool, device=device)
        at_once = max(1, _AT_ONCE_ELSEWHERE // max(1, columns))
        for first in range(0, len(starts), at_once):
            part = slice(first, first + at_once)
            drawn = _mix_signed(starts[part, None] + steps)
            kept[part] = _shifted(drawn, 64 - _UNIFORM_BITS) >= least
        return kept

    def _call(self) -> NDArray[np.uint64]:
        """Return the offset of this call, uint64[1]."""
        seed = np.full(1, self._seed % (1 << 64), dtype=np.uint64)
        of_epoch = _mix(seed * _WEYL + np.uint64(self.epoch))
        return _mix(of_epoch * _WEYL + np.uint64(self.calls))


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix in place; overflow wraps around."""
    values ^= values >> np.uint64(30)
    values *= _FIRST
    values ^= values >> np.uint64(27)
    values *= _SECOND
    values ^= values >> np.uint64(31)
    return values


def _mix_signed(values: Tensor) -> Tensor:
    """Mix int64 as `_mix` does the same bits."""
    values = (values ^ _shifted(values, 30)) * _signed(_FIRST)
    values = (values ^ _shifted(values, 27)) * _signed(_SECOND)
    return values ^ _shifted(values, 31)


def _shifted(values: Tensor, bits: int) -> Tensor:
    """Shift to the right without the sign."""
    return (values >> bits) & ((1 << (64 - bits)) - 1)


def _signed(word: np.uint64) -> int:
    return int(word.astype(np.int64))


def drop_by_vertex(model: nn.Module, vertices: Tensor, seed: int) -> None:
    """Replace every ``nn.Dropout`` of a model; the ids of its rows are ``vertices``, int64[n]."""
    found = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if type(child) is nn.Dropout
    ]
    for number, (parent, name, child) in enumerate(found):
        own = VertexDropout(child.p, vertices, seed * 1000 + number)
        setattr(parent, name, own.train(child.training))


def begin_epoch(model: nn.Module, *, seed: int, epoch: int, worker: int) -> None:
    """Derive the random numbers of an epoch from the seed, the epoch and the worker alone."""
    state = np.random.SeedSequence((seed, epoch, worker)).generate_state(1, np.uint64)
    # Not torch.manual_seed: where CUDA was never used, that keeps a formatted stack for later.
    torch.default_generator.manual_seed(int(state[0]))
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(int(state[0]))
    for module in model.modules():
        if isinstance(module, VertexDropout):
            module.epoch, module.calls = epoch, 0
