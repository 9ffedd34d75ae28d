# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options that choose strategies: the same for `plan`, `run`, `train` and `simulate`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.base.options import PLAN
from switchgnn.planner.chosen import KNOWN, Asked
from switchgnn.planner.lanes import AUTO, parse_lanes
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.partition.metis import partition_for_leaf_spine
from switchgnn.planner.presets import PAPER, PRESETS

_INSTEAD = "In place of the strategy's choice."


def _any_of(part: str) -> str:
    return f"{', '.join(KNOWN[part])}. {_INSTEAD}"


def _names(names: Iterable[str]) -> Callable[[], list[str]]:
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
        autocompletion=_names(PRESETS),
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
            autocompletion=_names(KNOWN["partition"]),
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
            autocompletion=_names(KNOWN["blocks"]),
            help=f"How blocks form: {_any_of('blocks')}",
        ),
    ] = None
    send: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=PLAN,
            show_default=False,
            autocompletion=_names(KNOWN["send"]),
            help=f"What workers send: {_any_of('send')}",
        ),
    ] = None
    order: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=PLAN,
            show_default=False,
            autocompletion=_names(KNOWN["order"]),
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
