# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers of several seeds."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """A number, and what other seeds have.

    Attributes:
        mean: of all seeds.
        least, most: of them.
    """

    mean: float
    least: float
    most: float


def spread_of(values: Sequence[float]) -> Spread:
    """Of at least one value."""
    return Spread(sum(values) / len(values), min(values), max(values))
