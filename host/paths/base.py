"""The paths of the blocks of a plan, and the times that they took."""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from switchgnn.planner.base.direction import Direction
from switchgnn.planner.plan.manifest import Manifest


class Path(Enum):
    """How the sums of a block are made."""

    SWITCH = "switch"  # the switch multicasts and adds up
    HOST = "host"  # hosts send each other whole rows, one copy for each worker
    HOST_PARTIAL = "host-partial"  # copies or partial sums, whichever are fewer
    # the same rows through Gloo, beside the switch; another part of a worker makes these sums
    GLOO = "gloo"


# One path per block of each direction of a plan, in the order of the block numbers.
BlockPaths = Mapping[Direction, tuple[Path, ...]]


class PathTime(NamedTuple):
    """What exchanges of one direction and width took on one path.

    `seconds`: the sum over `exchanges` of the time from the moment when all workers are in the
    exchange until the part of this worker over that path is complete. Where copies and partial
    sums travel in one round, each path has the share of its rows.
    """

    direction: Direction
    width: int
    path: Path
    seconds: float
    exchanges: int


def one_path(manifest: Manifest, path: Path) -> BlockPaths:
    """Return the paths of a plan whose blocks all have the same one."""
    return {
        Direction(name): (path,) * len(record.block_numbers)
        for name, record in manifest.directions.items()
    }
