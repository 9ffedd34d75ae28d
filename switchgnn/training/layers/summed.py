"""Layers as `after(x, map(sum of before(x)))`, with a linear map, for any way to make the sums."""

from abc import ABC, abstractmethod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from switchgnn.training.partition import Partition

ALL_ROWS = slice(None)


class SummedLayer(ABC):
    """A layer that is ``after(x, map(sum of before(x)))``, where ``map`` is linear."""

    # whether each vertex is a neighbour of itself, exactly once; otherwise the self-loops of the
    # input stay as they are
    loops: bool = False

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of elements of an output."""

    @property
    def mapped_width(self) -> int | None:
        """The number of elements of a row after ``map``; None if there is no map."""
        return None

    @property
    def constant(self) -> bool:
        """Whether ``before`` returns the same rows for the same inputs in every pass."""
        return True

    def before(self, inputs: Tensor, _span: slice = ALL_ROWS) -> Tensor:
        """Return the rows to sum, [k, F], of the inputs [k, F] of the span."""
        return inputs

    def map(self, rows: Tensor) -> Tensor:
        """Return the rows after the linear map, [k, mapped_width], without a bias."""
        return rows

    @abstractmethod
    def after(self, inputs: Tensor, sums: Tensor, span: slice = ALL_ROWS) -> Tensor:
        """Return the outputs [k, width] of inputs [k, F] and their sums [k, mapped_width]."""

    def sums_first(self, rows: Tensor) -> bool:
        """Return whether summing rows [k, F] before the map exchanges fewer elements.

        Gradients are exchanged as well: of rows that need one, and in training always of mapped
        rows, because the weights of the map need one.
        """
        if self.mapped_width is None:
            return True
        passes = 1 + torch.is_grad_enabled()
        return rows.shape[1] * (1 + rows.requires_grad) <= self.mapped_width * passes


def local_edges(partition: Partition, *, loops: bool) -> NDArray[np.int64]:
    """Return the edges with both ends on this worker, int64[2, E]."""
    if not loops:
        return partition.edges
    rows = np.arange(len(partition.vertices))
    proper = partition.edges[:, partition.edges[0] != partition.edges[1]]
    return np.concatenate([proper, np.stack([rows, rows])], axis=1)
