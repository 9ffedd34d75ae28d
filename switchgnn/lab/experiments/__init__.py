"""The paper's figures from simulations: what they are, a runner, CSV, pictures, one table.

`paper.py` has a function per figure. `run_points` simulates what has no result yet, and
`write_figures` makes of the results what people look at.
"""

from switchgnn.lab.experiments.draw import write_figures
from switchgnn.lab.experiments.figure import (
    Claim,
    ExperimentError,
    Figure,
    Panel,
    PlottedSeries,
    Ratio,
    Scale,
    ScaledGraph,
    cells_of,
    with_graphs,
)
from switchgnn.lab.experiments.paper import find_figures
from switchgnn.lab.experiments.point import SimulationPoint, current_versions
from switchgnn.lab.experiments.runner import BatchOutcome, Store, run_points

__all__ = [
    "BatchOutcome",
    "Claim",
    "ExperimentError",
    "Figure",
    "Panel",
    "PlottedSeries",
    "Ratio",
    "Scale",
    "ScaledGraph",
    "SimulationPoint",
    "Store",
    "cells_of",
    "current_versions",
    "find_figures",
    "run_points",
    "with_graphs",
    "write_figures",
]
