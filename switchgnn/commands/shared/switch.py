# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a switch has, as options: the same for `plan` and `simulate`."""

from typing import Annotated

import typer

from switchgnn.base.options import PLAN
from switchgnn.profiles import known_profiles


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
