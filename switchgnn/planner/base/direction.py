"""Sums along the edges, or against them: training needs both."""

from collections.abc import Mapping
from enum import Enum

from switchgnn.base.names import no_such
from switchgnn.planner.base.errors import PlannerError


class Direction(str, Enum):
    """The neighbours that an exchange sums.

    FORWARD sums in-neighbours: the features of a layer. BACKWARD sums out-neighbours: the
    gradients.
    """

    FORWARD = "forward"
    BACKWARD = "backward"

    @property
    def opposite(self) -> "Direction":
        """The other one."""
        return Direction.BACKWARD if self is Direction.FORWARD else Direction.FORWARD


DIRECTIONS: Mapping[str, tuple[Direction, ...]] = {
    "forward": (Direction.FORWARD,),
    "both": (Direction.FORWARD, Direction.BACKWARD),
}


def find_directions(name: str) -> tuple[Direction, ...]:
    """Look up a key of DIRECTIONS."""
    try:
        return DIRECTIONS[name]
    except KeyError:
        raise PlannerError(no_such("directions", name, sorted(DIRECTIONS))) from None
