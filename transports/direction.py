# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Which way an exchange sums."""

from enum import Enum


class Direction(Enum):
    """The edges that an exchange sums over.

    FORWARD sums over in-neighbours; BACKWARD over the transposed edges, as the gradients of
    a forward sum need it.
    """

    FORWARD = "forward"
    BACKWARD = "backward"
