# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The paper's figures from simulations: descriptions, a runner, CSV, pictures, one table.

`figures/` has a file per figure. `load_figures` reads them, `run_points` simulates what has no
result yet, and `write_figures` makes of the results what people look at.
"""

from switchgnn.lab.experiments.description import ExperimentError, Figure
from switchgnn.lab.experiments.draw import write_figures
from switchgnn.lab.experiments.load import load_figures, parse_graphs, with_graphs
from switchgnn.lab.experiments.point import SimulationPoint, current_versions
from switchgnn.lab.experiments.runner import BatchOutcome, Store, run_points
from switchgnn.lab.experiments.table import cells_of

__all__ = [
    "BatchOutcome",
    "ExperimentError",
    "Figure",
    "SimulationPoint",
    "Store",
    "cells_of",
    "current_versions",
    "load_figures",
    "parse_graphs",
    "run_points",
    "with_graphs",
    "write_figures",
]
