# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The names of devices, for who does without PyTorch."""

from enum import Enum


class DeviceName(str, Enum):
    """Values of --device."""

    CPU = "cpu"
    CUDA = "cuda"
