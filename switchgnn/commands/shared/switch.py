# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The option that names the profile of a switch: the same for `plan` and `simulate`."""

from typing import Annotated

import typer

from switchgnn.options.panels import PLAN
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
