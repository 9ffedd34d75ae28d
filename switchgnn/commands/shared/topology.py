# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options that say which switches and network there are, for all commands that build some."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated

import typer

from switchgnn.base.options import NETWORK
from switchgnn.host.direct.errors import FramingError
from switchgnn.host.direct.framing import Framing
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.partition.leaf_spine import LeafSpine, even_leaf_spine
from switchgnn.topologies import Backend, Limits, choose, usual_limits

_LEAVES, _SPINES = 2, 1
# As many as there may be workers, and so leaves.
_MOST_SPINES = 128


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
        max=_MOST_SPINES,
        metavar="N",
        rich_help_panel=NETWORK,
        show_default=str(_SPINES),
        help="Switches above the leaves.",
    ),
]
BandwidthOption = Annotated[
    float | None,
    typer.Option(
        min=0.1,
        metavar="MBIT/S",
        rich_help_panel=NETWORK,
        show_default="no limit",
        help="Of each link, in either direction.",
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


@dataclass(frozen=True)
class SiteOptions:
    """Which switches and network a command builds."""

    topology: Annotated[
        Topology, typer.Option(rich_help_panel=NETWORK, help="One switch, or leaves below spines.")
    ] = Topology.STAR
    leaves: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel=NETWORK,
            show_default=str(_LEAVES),
            help="Switches that the workers are attached to, of a leaf-spine.",
        ),
    ] = None
    spines: SpinesOption = None
    target: Annotated[
        TargetOption,
        typer.Option(
            "--target", rich_help_panel=NETWORK, help="The switch; auto: the best that is here."
        ),
    ] = TargetOption.AUTO
    fabric: Annotated[
        FabricOption,
        typer.Option(
            "--fabric", rich_help_panel=NETWORK, help="The network; auto: the best that is here."
        ),
    ] = FabricOption.AUTO
    backend: Annotated[
        Backend | None,
        typer.Option(
            rich_help_panel=NETWORK,
            show_default="$SWITCHGNN_BACKEND, or auto",
            help="What the embedded switch runs the program as: C++, Python, or C++ if there is a "
            "compiler.",
        ),
    ] = None

    def leaf_spine(self, workers: int) -> LeafSpine | None:
        """Return the leaf-spine that is asked for; None for a star.

        Args:
            workers: their number; they are divided over the leaves.

        Raises:
            PlannerError: a leaf-spine that cannot be, or options of a topology that was not asked
                for.
        """
        numbers = self.leaves_and_spines()
        return None if numbers is None else even_leaf_spine(workers, *numbers)

    def leaves_and_spines(self) -> tuple[int, int] | None:
        """Return how many leaves and spines there are; None for a star.

        Raises:
            PlannerError: options of a topology that was not asked for.
        """
        if self.topology is Topology.LEAF_SPINE:
            return self.leaves or _LEAVES, self.spines or _SPINES
        if self.leaves is not None or self.spines is not None:
            raise PlannerError("A star has no leaves and spines: add --topology leaf-spine.")
        return None

    def usual_limits(self, *, shaped: bool) -> Limits:
        """Return what may be on the way, where nobody says.

        Args:
            shaped: whether links are slower than the machine.

        Raises:
            FabricError: a target or fabric that is not here.
        """
        here = choose(self.target.value, self.fabric.value, self.backend)
        return usual_limits(here.target, here.fabric, shaped=shaped)


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


def known_mtu(text: str) -> str:
    """Return what ``--mtu`` takes, or refuse it as an option's value."""
    try:
        Framing.parse(text)
    except FramingError as error:
        raise typer.BadParameter(str(error)) from error
    return text
