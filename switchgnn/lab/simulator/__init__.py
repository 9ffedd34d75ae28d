"""Plans in ns-3: packet by packet, at sizes that no emulation reaches.

`plan_setup` and `host_setup` make arrays of a plan; `run_simulation` gives them to the models in
`models/`, which are C++ and compiled against the `ns3` wheel when they are first needed.
"""

from switchgnn.lab.simulator.errors import SimulatorError
from switchgnn.lab.simulator.job import compute_seconds
from switchgnn.lab.simulator.request import LEAF, SPINE, LeafSpineOptions, NetworkOptions
from switchgnn.lab.simulator.setup import (
    BIN_SIZE,
    Setup,
    bins_of,
    host_setup,
    mixed_setup,
    overlapped_seconds,
    plan_setup,
)
from switchgnn.lab.simulator.simulation import SimulationRun, run_simulation

__all__ = [
    "BIN_SIZE",
    "LEAF",
    "SPINE",
    "LeafSpineOptions",
    "NetworkOptions",
    "Setup",
    "SimulationRun",
    "SimulatorError",
    "bins_of",
    "compute_seconds",
    "host_setup",
    "mixed_setup",
    "overlapped_seconds",
    "plan_setup",
    "run_simulation",
]
