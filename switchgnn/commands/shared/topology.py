# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options that say how many switches there are, for all commands that build some."""

from enum import Enum
from typing import Annotated

import typer

from switchgnn.planner.errors import PlannerError
from switchgnn.planner.partition.leaf_spine import Racks, even_racks

_LEAVES, _SPINES = 2, 1


class Topology(str, Enum):
    """Values of --topology."""

    STAR = "star"
    LEAF_SPINE = "leaf-spine"


TopologyOption = Annotated[Topology, typer.Option(help="One switch, or leaves below spines.")]
LeavesOption = Annotated[
    int | None,
    typer.Option(min=1, help=f"Switches that the workers hang on; default: {_LEAVES}."),
]
PlanLeavesOption = Annotated[
    int | None,
    typer.Option(min=1, help="Switches that the workers hang on; default: one, and no spines."),
]
SpinesOption = Annotated[
    int | None, typer.Option(min=1, help=f"Switches above the leaves; default: {_SPINES}.")
]


def find_plan_racks(workers: int, leaves: int | None, spines: int | None) -> Racks | None:
    """Return who hangs where, for a plan that names no topology; None for a star.

    Raises:
        PlannerError: racks that cannot be, or spines without leaves.
    """
    if leaves is None and spines is not None:
        raise PlannerError("A star has no spines: add --leaves.")
    return None if leaves is None else even_racks(workers, leaves, spines or _SPINES)


def find_racks(
    topology: Topology, workers: int, leaves: int | None, spines: int | None
) -> Racks | None:
    """Return who hangs where; None for a star.

    Raises:
        PlannerError: racks that cannot be, or options of a topology that was not asked for.
    """
    tiers = find_tiers(topology, leaves, spines)
    return None if tiers is None else even_racks(workers, *tiers)


def find_tiers(
    topology: Topology, leaves: int | None, spines: int | None
) -> tuple[int, int] | None:
    """Return how many leaves and spines there are; None for a star.

    Raises:
        PlannerError: options of a topology that was not asked for.
    """
    if topology is Topology.LEAF_SPINE:
        return leaves or _LEAVES, spines or _SPINES
    if leaves is not None or spines is not None:
        raise PlannerError("A star has no leaves and spines: add --topology leaf-spine.")
    return None
