# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options that say which switches and network there are, for all commands that build some."""

from enum import Enum
from typing import Annotated

import typer

from switchgnn.commands.shared.panels import NETWORK
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.partition.leaf_spine import LeafSpine, even_leaf_spine
from switchgnn.topologies import Backend

_LEAVES, _SPINES = 2, 1


class Topology(str, Enum):
    """Values of --topology."""

    STAR = "star"
    LEAF_SPINE = "leaf-spine"


class TargetOption(str, Enum):
    """Values of --target."""

    AUTO = "auto"
    BMV2 = "bmv2"
    EMBEDDED = "embedded"


class FabricOption(str, Enum):
    """Values of --fabric."""

    AUTO = "auto"
    MININET = "mininet"
    LOOPBACK = "loopback"


TopologyOption = Annotated[
    Topology, typer.Option(rich_help_panel=NETWORK, help="One switch, or leaves below spines.")
]
LeavesOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        rich_help_panel=NETWORK,
        show_default=str(_LEAVES),
        help="Switches that the workers are attached to, of a leaf-spine.",
    ),
]
PlanLeavesOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        rich_help_panel=NETWORK,
        show_default="one, and no spines",
        help="Switches that the workers are attached to.",
    ),
]
SpinesOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        rich_help_panel=NETWORK,
        show_default=str(_SPINES),
        help="Switches above the leaves.",
    ),
]
TargetChoice = Annotated[
    TargetOption,
    typer.Option(
        "--target", rich_help_panel=NETWORK, help="The switch; auto: the best that is here."
    ),
]
FabricChoice = Annotated[
    FabricOption,
    typer.Option(
        "--fabric", rich_help_panel=NETWORK, help="The network; auto: the best that is here."
    ),
]
BackendOption = Annotated[
    Backend | None,
    typer.Option(
        rich_help_panel=NETWORK,
        show_default="$SWITCHGNN_BACKEND, or auto",
        help="What the embedded switch runs the program as: C++, Python, or C++ if there is a "
        "compiler.",
    ),
]
BandwidthOption = Annotated[
    float | None,
    typer.Option(
        min=0.1,
        metavar="MBIT/S",
        rich_help_panel=NETWORK,
        show_default="no limit",
        help="Of each link; with --fabric mininet.",
    ),
]
WindowOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        rich_help_panel=NETWORK,
        show_default="128 on the embedded switch and links of any speed, else 16",
        help="Features in flight per worker.",
    ),
]


def find_plan_leaf_spine(workers: int, leaves: int | None, spines: int | None) -> LeafSpine | None:
    """Return the leaf-spine of a plan, for which no topology is named; None for a star.

    Args:
        workers: their number.
        leaves: their number; None: a star.
        spines: their number; None: the default.

    Returns:
        The workers divided over the leaves, or None.

    Raises:
        PlannerError: a leaf-spine that cannot be, or spines without leaves.
    """
    if leaves is None and spines is not None:
        raise PlannerError("A star has no spines: add --leaves.")
    return None if leaves is None else even_leaf_spine(workers, leaves, spines or _SPINES)


def find_leaf_spine(
    topology: Topology, workers: int, leaves: int | None, spines: int | None
) -> LeafSpine | None:
    """Return the leaf-spine that is asked for; None for a star.

    Args:
        topology: the value of --topology.
        workers: their number.
        leaves: their number; None: the default.
        spines: their number; None: the default.

    Returns:
        The workers divided over the leaves, or None.

    Raises:
        PlannerError: a leaf-spine that cannot be, or options of a topology that was not asked
            for.
    """
    numbers = find_leaves_and_spines(topology, leaves, spines)
    return None if numbers is None else even_leaf_spine(workers, *numbers)


def find_leaves_and_spines(
    topology: Topology, leaves: int | None, spines: int | None
) -> tuple[int, int] | None:
    """Return how many leaves and spines there are; None for a star.

    Args:
        topology: the value of --topology.
        leaves: their number; None: the default.
        spines: their number; None: the default.

    Returns:
        Leaves and spines, or None.

    Raises:
        PlannerError: options of a topology that was not asked for.
    """
    if topology is Topology.LEAF_SPINE:
        return leaves or _LEAVES, spines or _SPINES
    if leaves is not None or spines is not None:
        raise PlannerError("A star has no leaves and spines: add --topology leaf-spine.")
    return None
