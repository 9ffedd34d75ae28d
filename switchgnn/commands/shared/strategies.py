# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options that choose strategies: the same for `plan`, `run`, `train` and `simulate`."""

from pathlib import Path
from typing import Annotated

import typer

from switchgnn.planner.chosen import KNOWN
from switchgnn.planner.presets import PRESETS

_INSTEAD = "in place of the strategy's choice"


def _any_of(part: str) -> str:
    return f"{', '.join(KNOWN[part])}; {_INSTEAD}."


StrategyOption = Annotated[
    str, typer.Option(help=f"Chooses all that follows; one of: {', '.join(PRESETS)}.")
]
PartitionOption = Annotated[
    str | None,
    typer.Option(
        help=f"Who holds which vertex: {_any_of('partition')} On several leaves also "
        "metis-leaf-spine and cdfgnn; with PT-Scotch ptscotch:RANKS."
    ),
]
BlocksOption = Annotated[str | None, typer.Option(help=f"How blocks form: {_any_of('blocks')}")]
SendOption = Annotated[str | None, typer.Option(help=f"What workers send: {_any_of('send')}")]
OrderOption = Annotated[
    str | None, typer.Option(help=f"In which order they send: {_any_of('order')}")
]
AssignmentOption = Annotated[
    Path | None,
    typer.Option(help="In place of a partition: a file with the worker of each vertex, by line."),
]
