# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Constants of a layer, wherever the rows are that it computes with."""

import torch
from torch import Tensor


class Anywhere:
    """Tensors that do not change, made on the CPU and copied once to the device that asks.

    A model may be moved before or after it is wrapped.

    Args:
        tensors: on the CPU.
    """

    def __init__(self, *tensors: Tensor) -> None:
        self._tensors = tensors
        self._there = tensors

    def on(self, device: torch.device) -> tuple[Tensor, ...]:
        """Return them on a device."""
        if self._there[0].device != device:
            self._there = tuple(each.to(device) for each in self._tensors)
        return self._there
