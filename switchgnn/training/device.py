# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The device that a worker computes on. Help texts import this module, so PyTorch comes late."""

import os
from enum import Enum
from typing import TYPE_CHECKING

from switchgnn.training.errors import TrainingError

if TYPE_CHECKING:
    import torch
    from torch import nn


class DeviceName(str, Enum):
    """Values of --device."""

    CPU = "cpu"
    CUDA = "cuda"


def check_device(name: DeviceName) -> None:
    """Refuse a device that this machine does not have."""
    import torch  # noqa: PLC0415

    if name is DeviceName.CUDA and not torch.cuda.is_available():
        raise TrainingError(
            "There is no GPU here that PyTorch can use: leave --device out, or install a driver "
            "and a PyTorch with CUDA; `python -c 'import torch; print(torch.cuda.is_available())'` "
            "must print True."
        )


def own_device(name: DeviceName) -> "torch.device":
    """Return the device of this worker; workers of one machine take its GPUs in turn."""
    import torch  # noqa: PLC0415

    check_device(name)
    if name is DeviceName.CPU:
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())


def device_of(model: "nn.Module") -> "torch.device":
    """Return the device of a model's weights, or the CPU if it has none."""
    import torch  # noqa: PLC0415

    return next((each.device for each in model.parameters()), torch.device("cpu"))
