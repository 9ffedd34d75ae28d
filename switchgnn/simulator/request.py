# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What `switchgnn simulate` is asked for."""

from dataclasses import dataclass, field
from pathlib import Path

from switchgnn.planner.chosen import Asked
from switchgnn.planner.plan.manifest import STRAWMAN
from switchgnn.planner.presets import PRESETS
from switchgnn.profiles import UNLIMITED, SwitchProfile
from switchgnn.simulator.leaf_spine import LeafSpineOptions
from switchgnn.simulator.options import NetworkOptions
from switchgnn.simulator.packing import ETHERNET_MTU, Mtu

# As the paper: hosts alone, with a switch that has neither blocks nor order, and with plans.
BNS_GCN, HOST_PARTIAL, G3 = "bns-gcn", "host-partial", "g3"
# The partition of the systems in which hosts send rows to each other.
HOSTS_ALONE = {BNS_GCN: "metis", HOST_PARTIAL: "metis", G3: "g3"}
SYSTEMS = (*HOSTS_ALONE, STRAWMAN, *PRESETS)
# What else can be asked for in place of a system's strategies.
CHOICES = {
    **dict.fromkeys(HOSTS_ALONE, ("partition",)),
    STRAWMAN: ("partition", "order"),
    **dict.fromkeys(PRESETS, ("partition", "blocks", "send", "order")),
}
# What a plan in a folder is called when nothing else is asked for.
PLANNED = "plan"


@dataclass(frozen=True)
class SimulateOptions:
    """What to simulate.

    Attributes:
        plan: a folder with a plan, or None to make one.
        graph: as load_graph takes it, or None with a plan.
        workers: their number, or None with a plan.
        slots: aggregators of the switch, 128 bytes or `slot_features` numbers each, or None with a
            plan. A slot of wider frames takes several of them.
        system: one of SYSTEMS; with a plan one of HOSTS_ALONE, AUTO, or None for the plan's own.
        layers: exchanges in an epoch.
        features: width F of what is exchanged.
        seed: for partition, blocks and order; the background's is in `network`.
        network: links, switches and hosts.
        leaf_spine: leaves and spines; None: a star, one switch with all workers.
        slot_features: numbers in a slot that holds a whole feature; None: it holds a fragment.
        asked: what takes the place of the system's strategies; the preset is the system's.
        bin_size: vertices of a bin of G3, or None for its own.
        mtu: of the frames of HOSTS_ALONE: bytes of the largest IP packet, or FRAGMENT.
        check: whether to check the plan first; None: if others could have made or changed it.
        switch: within what it has; the rate of its loop is in `network`, and its slots in `slots`.
        table_memory: the most bytes that tables may take, in place of the switch's; or None.
        lanes: numbers in the frames of a made plan, one of LANES; None: 32, or a plan's own.
    """

    plan: Path | None
    graph: str | None
    workers: int | None
    slots: int | None
    system: str | None
    layers: int
    features: int
    seed: int
    network: NetworkOptions
    leaf_spine: LeafSpineOptions | None = None
    slot_features: int | None = None
    asked: Asked = field(default_factory=Asked)
    bin_size: int | None = None
    mtu: Mtu = ETHERNET_MTU
    check: bool | None = None
    switch: SwitchProfile = UNLIMITED
    table_memory: int | None = None
    lanes: int | None = None
