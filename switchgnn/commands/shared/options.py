# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options that say whether workers heed marks: the same for `run` and `simulate`.

They are two, as the two names of one do not fit a terminal of 80 columns together.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.base.metrics import MetricsError, check_installed, parse_place
from switchgnn.base.options import CONGESTION, FAULTS, NETWORK, OUTPUT, PLAN
from switchgnn.host.direct.errors import FramingError
from switchgnn.host.direct.framing import Framing
from switchgnn.planner.chosen import KNOWN, Asked
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.lanes import AUTO, parse_lanes
from switchgnn.planner.partition.leaf_spine import LeafSpine, even_leaf_spine
from switchgnn.planner.partition.metis_leaf_spine import partition_for_leaf_spine
from switchgnn.planner.presets import PAPER, PRESETS
from switchgnn.profiles import known_profiles
from switchgnn.topologies import Backend, Limits, choose, usual_limits

ControlOption = Annotated[bool, typer.Option("--congestion-control", hidden=True)]
NoControlOption = Annotated[
    bool,
    typer.Option(
        "--no-congestion-control",
        rich_help_panel=CONGESTION,
        help="Do not send more slowly when packets come marked.",
    ),
]


def heeds_marks(*, control: bool, no_control: bool) -> bool:
    """Tell whether workers send more slowly when packets come marked; they do by default."""
    return control or not no_control


# Paragraphs of a help are lines of it.
_GRAMMAR = (
    "What goes wrong with frames: parts, separated by commas.",
    "A part is [LINK.][WAY.]KIND=PROBABILITY, or seed=N, from which all is drawn.",
    "KIND: loss, duplicate, reorder or corrupt.",
    "WAY: up, away from the workers, or down; without: both.",
    "LINK: w3, the link of worker 3; l0s1, the cable from leaf 0 to spine 1; workers or cables: "
    "all of that kind; without: all links.",
    "What says more of the link counts more, then what says the way.",
    "As loss=0.01,w3.up.loss=0.1,cables.loss=0,seed=7",
)
FaultsOption = Annotated[
    str,
    typer.Option(
        metavar="PARTS", rich_help_panel=FAULTS, show_default=False, help="\n\n".join(_GRAMMAR)
    ),
]


_LAST_PORT = 65_535

MetricsOption = Annotated[
    str | None,
    typer.Option(
        metavar="[ADDRESS:]PORT",
        rich_help_panel=OUTPUT,
        show_default=False,
        help="Worker w serves metrics to Prometheus on PORT + w of that address, or of loopback.",
    ),
]


def find_metrics(text: str | None, workers: int) -> tuple[str, int] | None:
    """Return where worker 0 serves metrics; None: nobody does.

    Args:
        text: what a user has written.
        workers: their number; each takes a port.

    Returns:
        An address and a port.

    Raises:
        MetricsError: it is no place, the ports are too few, or the package for it is missing.
    """
    if text is None:
        return None
    host, port = parse_place(text)
    if not 0 < port <= _LAST_PORT - workers + 1:
        raise MetricsError(
            f"Metrics of {workers} workers cannot be served from port {port} on: choose one from "
            f"1 to {_LAST_PORT - workers + 1}."
        )
    check_installed()
    return host, port


def _names() -> list[str]:
    """Return what a shell completes with."""
    return list(known_profiles())


SwitchOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        rich_help_panel=PLAN,
        show_default=False,
        autocompletion=_names,
        help=f"Within what a switch has: {', '.join(known_profiles())}, or a TOML file.",
    ),
]
TableMemoryOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        rich_help_panel=PLAN,
        show_default="all of the switch",
        help="The most that the tables of a switch may take, as 10MB.",
    ),
]


_INSTEAD = "In place of the strategy's choice."


def _any_of(part: str) -> str:
    return f"{', '.join(KNOWN[part])}. {_INSTEAD}"


def _strategies_names(names: Iterable[str]) -> Callable[[], list[str]]:
    """Return what a shell completes with."""
    known = list(names)

    def complete() -> list[str]:
        return known

    return complete


StrategyOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        rich_help_panel=PLAN,
        autocompletion=_strategies_names(PRESETS),
        help=f"Chooses all that follows; one of: {', '.join(PRESETS)}.",
    ),
]
SlotsOption = Annotated[
    int | None,
    typer.Option(
        min=2,
        max=2**32 - 1,
        metavar="N",
        rich_help_panel=PLAN,
        show_default="all of the switch",
        help="Aggregators that a block may use.",
    ),
]


@dataclass(frozen=True)
class StrategyOptions:
    """What takes the place of the choices of a strategy."""

    partition: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=PLAN,
            show_default=False,
            autocompletion=_strategies_names(KNOWN["partition"]),
            help=f"Who holds which vertex: {_any_of('partition')} On several leaves also "
            "metis-leaf-spine and cdfgnn; with PT-Scotch ptscotch:RANKS.",
        ),
    ] = None
    blocks: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=PLAN,
            show_default=False,
            autocompletion=_strategies_names(KNOWN["blocks"]),
            help=f"How blocks form: {_any_of('blocks')}",
        ),
    ] = None
    send: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=PLAN,
            show_default=False,
            autocompletion=_strategies_names(KNOWN["send"]),
            help=f"What workers send: {_any_of('send')}",
        ),
    ] = None
    order: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=PLAN,
            show_default=False,
            autocompletion=_strategies_names(KNOWN["order"]),
            help=f"In which order they send: {_any_of('order')}",
        ),
    ] = None
    assignment: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=PLAN,
            show_default=False,
            help="In place of a partition: the worker of each vertex, by line.",
        ),
    ] = None
    lanes: Annotated[
        str | None,
        typer.Option(
            metavar="auto|N",
            rich_help_panel=PLAN,
            show_default="auto, and 32 for simulate",
            help="Numbers of the widest frame: 8, 16, 32, 64, 128 or 256; auto: the fewest bytes.",
        ),
    ] = None

    def switch_only(self) -> str:
        """Return the options given that only the switch has a use for; empty: none of them."""
        given = {
            "--blocks": self.blocks,
            "--send": self.send,
            "--order": self.order,
            "--lanes": None if self.lanes == AUTO else self.lanes,
        }
        return ", ".join(name for name, value in given.items() if value is not None)

    def asked(self, preset: str = PAPER, leaf_spine: LeafSpine | None = None) -> Asked:
        """Return what is asked for.

        Args:
            preset: the strategy.
            leaf_spine: where the workers are; None: around one switch.

        Returns:
            It, with names that are known.

        Raises:
            PlannerError: a name is not known, or is for other leaves, or an assignment and a
                partition are given.
        """
        partition = partition_for_leaf_spine(self.partition, leaf_spine)
        return Asked(
            preset,
            partition,
            self.blocks,
            self.send,
            self.order,
            self.assignment,
            lanes=None if self.lanes in (None, AUTO) else parse_lanes(self.lanes, ()),
        ).checked()


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
