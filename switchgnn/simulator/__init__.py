# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Plans in ns-3: packet by packet, at sizes that no emulation reaches.

`plan_setup` and `host_setup` make arrays of a plan; `run_simulation` gives them to the models in
`models/`, which are C++ and compiled against the `ns3` wheel when they are first needed.
"""

from switchgnn.simulator.background.flows import BackgroundRun
from switchgnn.simulator.bins import BIN_SIZE, bins_of, overlapped_seconds
from switchgnn.simulator.compute import compute_seconds
from switchgnn.simulator.errors import SimulatorError
from switchgnn.simulator.exchange_setup import Setup
from switchgnn.simulator.host_setup import copies_of_edges, copies_of_plan, host_setup
from switchgnn.simulator.leaf_spine import COMPLETIONS, LEAF, SPINE, InsideLinks, LeafSpineOptions
from switchgnn.simulator.mixed_setup import mixed_setup
from switchgnn.simulator.options import NetworkOptions
from switchgnn.simulator.packing import ETHERNET_MTU, FRAGMENT, parse_mtu
from switchgnn.simulator.plan_setup import plan_setup
from switchgnn.simulator.simulation import SimulationRun, run_simulation

__all__ = [
    "BIN_SIZE",
    "COMPLETIONS",
    "ETHERNET_MTU",
    "FRAGMENT",
    "LEAF",
    "SPINE",
    "BackgroundRun",
    "InsideLinks",
    "LeafSpineOptions",
    "NetworkOptions",
    "Setup",
    "SimulationRun",
    "SimulatorError",
    "bins_of",
    "compute_seconds",
    "copies_of_edges",
    "copies_of_plan",
    "host_setup",
    "mixed_setup",
    "overlapped_seconds",
    "parse_mtu",
    "plan_setup",
    "run_simulation",
]
