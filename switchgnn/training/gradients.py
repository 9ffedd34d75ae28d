# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Adds up gradients and counts of all workers over torch.distributed, and tells all what one knows.

Gloo gets tensors on the CPU, wherever those of the model are.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext

import torch
import torch.distributed as dist
from torch import Tensor, nn

from switchgnn.training.meeting import collective

Attending = Callable[[], AbstractContextManager[None]]


class Sums:
    """Adds up over all workers; with one worker there is nothing to add.

    Args:
        first: the rank of worker 0.
        attending: what goes on beside it: answers to workers that still exchange. Without
            them one that missed an acknowledgement would wait for us, and we for it.

    Attributes:
        seconds: the time spent adding so far.
    """

    def __init__(self, first: int = 0, attending: Attending = nullcontext) -> None:
        self.seconds = 0.0
        self._first = first
        self._attending = attending
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
            return float(loss.detach())
        used = [parameter for parameter in parameters if parameter.requires_grad]
        for parameter in used:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [parameter.grad for parameter in used if parameter.grad is not None]
        place = gradients[0].device if gradients else loss.device
        flat = torch.cat([each.reshape(-1).to(place) for each in (*gradients, loss.detach())])
        self.add(flat)
        start = 0
        for gradient in gradients:
            gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
            start += gradient.numel()
        return float(flat[start])

    def add(self, values: Tensor) -> Tensor:
        """Replace the values by their sums over all workers, and return them."""
        if not self._alone:
            started = time.perf_counter()
            _through_cpu(values, self._reduce)
            self.seconds += time.perf_counter() - started
        return values

    def spread(self, values: Tensor) -> Tensor:
        """Replace the values by those of worker 0, and return them."""
        if not self._alone:
            _through_cpu(values, self._broadcast)
        return values

    def spread_model(self, model: nn.Module) -> None:
        """Give all workers the weights of worker 0."""
        for tensor in (*model.parameters(), *model.buffers()):
            self.spread(tensor)

    def told(self, text: str) -> str:
        """Return the text of worker 0."""
        data = text.encode()
        length = int(self.spread(torch.tensor([len(data)])))
        said = torch.zeros(length, dtype=torch.uint8)
        said[: len(data)] = torch.tensor(list(data[:length]), dtype=torch.uint8)
        return bytes(self.spread(said).tolist()).decode() if length else ""

    def _reduce(self, values: Tensor) -> None:
        with self._attending(), collective():
            dist.all_reduce(values)

    def _broadcast(self, values: Tensor) -> None:
        with self._attending(), collective():
            dist.broadcast(values, self._first)


def _through_cpu(values: Tensor, change: Callable[[Tensor], None]) -> None:
    """Change the values in place where they are on the CPU, and a copy of them elsewhere."""
    here = values.detach().cpu()
    change(here)
    if values.device != here.device:
        values.detach().copy_(here)
