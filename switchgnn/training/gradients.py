# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Adds up gradients and counts of all workers over torch.distributed."""

import time
from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn


class Sums:
    """Adds up over all workers; with one worker there is nothing to add.

    Attributes:
        seconds: the time spent so far.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._alone = not dist.is_initialized() or dist.get_world_size() == 1

    def add_gradients(self, parameters: Iterable[nn.Parameter], loss: Tensor) -> float:
        """Replace every gradient by the sum over all workers, in one message with the loss.

        Args:
            parameters: of the model.
            loss: of one element, this worker's share.

        Returns:
            The loss of all workers.
        """
        if self._alone:
            return float(loss)
        used = [parameter for parameter in parameters if parameter.requires_grad]
        for parameter in used:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [parameter.grad for parameter in used if parameter.grad is not None]
        flat = torch.cat([each.reshape(-1) for each in (*gradients, loss.detach())])
        self.add(flat)
        place = 0
        for gradient in gradients:
            gradient.copy_(flat[place : place + gradient.numel()].view_as(gradient))
            place += gradient.numel()
        return float(flat[place])

    def add(self, values: Tensor) -> Tensor:
        """Replace the values by their sums over all workers, and return them."""
        if not self._alone:
            started = time.perf_counter()
            self._reduce(values)
            self.seconds += time.perf_counter() - started
        return values

    def least(self, value: int) -> int:
        """Return the least of the values of all workers."""
        if self._alone:
            return value
        return int(self._least(torch.tensor([value])))

    def _least(self, values: Tensor) -> Tensor:
        dist.all_reduce(values, op=dist.ReduceOp.MIN)
        return values

    def _reduce(self, values: Tensor) -> None:
        dist.all_reduce(values)
