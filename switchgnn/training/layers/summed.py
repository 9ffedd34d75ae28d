# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A layer as one sum over neighbours, with what comes before it and after it.

A sum and a linear map can be exchanged, so a layer sums either its inputs or the mapped ones,
whichever are narrower.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

ALL_ROWS = slice(None)


class SummedLayer(ABC):
    """A layer that is ``after(x, map(sum of before(x)))``, where ``map`` is linear.

    Attributes:
        loops: whether each vertex is a neighbour of itself, exactly once; otherwise the
            self-loops of the input stay as they are.
    """

    loops: bool = False

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of elements of an output."""

    @property
    def mapped_width(self) -> int | None:
        """The number of elements of a row after ``map``; None: there is no map."""
        return None

    @property
    def constant(self) -> bool:
        """Whether ``before`` returns the same rows for the same inputs in every pass."""
        return True

    def before(self, inputs: Tensor, _span: slice = ALL_ROWS) -> Tensor:
        """Return the rows that are summed, [k, F].

        Args:
            inputs: [k, F], the layer's inputs of a span of rows.
            _span: the places of the k rows.
        """
        return inputs

    def map(self, rows: Tensor) -> Tensor:
        """Return the rows after the linear map, [k, mapped_width], without a bias."""
        return rows

    @abstractmethod
    def after(self, inputs: Tensor, sums: Tensor, span: slice = ALL_ROWS) -> Tensor:
        """Complete a layer.

        Args:
            inputs: [k, F], the layer's inputs of a span of rows.
            sums: [k, mapped_width], the mapped sums over all neighbours.
            span: the places of the k rows.

        Returns:
            The outputs, [k, width].
        """

    def sums_first(self, rows: Tensor) -> bool:
        """Return whether fewer elements travel where rows [k, F] are summed before the map.

        Rows that need a gradient travel back as well. Mapped rows always do in training,
        because the weights of the map need one.
        """
        if self.mapped_width is None:
            return True
        passes = 1 + torch.is_grad_enabled()
        return rows.shape[1] * (1 + rows.requires_grad) <= self.mapped_width * passes
