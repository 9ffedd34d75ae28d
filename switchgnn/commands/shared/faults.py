# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The option that describes faults: the same for `run` and `train`."""

from typing import Annotated

import typer

from switchgnn.base.options import FAULTS

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
