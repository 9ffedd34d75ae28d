# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Along the edges, or against them: training needs sums of both."""

from collections.abc import Mapping
from enum import Enum

from switchgnn.planner.errors import PlannerError


class Direction(str, Enum):
    """Which neighbours an exchange sums.

    FORWARD sums a vertex's in-neighbours: the features of a layer. BACKWARD sums its
    out-neighbours, which are its in-neighbours on the transposed edges: the gradients.
    """

    FORWARD = "forward"
    BACKWARD = "backward"


# What can be asked for by name.
DIRECTIONS: Mapping[str, tuple[Direction, ...]] = {
    "forward": (Direction.FORWARD,),
    "both": (Direction.FORWARD, Direction.BACKWARD),
}


def find_directions(name: str) -> tuple[Direction, ...]:
    """Find directions by their name in DIRECTIONS."""
    try:
        return DIRECTIONS[name]
    except KeyError:
        raise PlannerError(
            f"no directions {name!r}; known: {', '.join(sorted(DIRECTIONS))}"
        ) from None
