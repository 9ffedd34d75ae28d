# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The paper's figures from simulations: descriptions, a runner, CSV, pictures, one table.

`figures/` has a file per figure. `load_figures` reads them, `run_points` simulates what has no
result yet, and `write_figures` makes of the results what people look at.
"""

from switchgnn.experiments.cells import cells_of
from switchgnn.experiments.description import Figure
from switchgnn.experiments.errors import ExperimentError
from switchgnn.experiments.load import load_figures, parse_graphs, with_graphs
from switchgnn.experiments.outputs import write_figures
from switchgnn.experiments.point import Point
from switchgnn.experiments.runner import Outcome, run_points
from switchgnn.experiments.store import Store
from switchgnn.experiments.versions import current_versions

__all__ = [
    "ExperimentError",
    "Figure",
    "Outcome",
    "Point",
    "Store",
    "cells_of",
    "current_versions",
    "load_figures",
    "parse_graphs",
    "run_points",
    "with_graphs",
    "write_figures",
]
