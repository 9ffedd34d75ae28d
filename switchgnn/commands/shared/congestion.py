# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options that say whether workers heed marks: the same for `run` and `simulate`.

They are two, as the two names of one do not fit a terminal of 80 columns together.
"""

from typing import Annotated

import typer

from switchgnn.base.options import CONGESTION

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
