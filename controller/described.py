# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a network file says, as a controller uses it: clients, and what each switch serves."""

from pathlib import Path

from switchgnn.base.described import DescribedNetwork, DescribedSwitch, networks_of
from switchgnn.base.network import Network
from switchgnn.controller.errors import PlanRefusedError
from switchgnn.controller.p4runtime.client import DEFAULT_DEADLINE, P4RuntimeClient
from switchgnn.controller.p4runtime.connection import TlsOptions
from switchgnn.controller.plan import SwitchPlan, leaf_spine_switch_plan, load_plan
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.plan.files import read_plan
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine


def client_of(
    switch: DescribedSwitch,
    *,
    election_id: int = 1,
    primary: bool = True,
    deadline: float = DEFAULT_DEADLINE,
) -> P4RuntimeClient:
    """Return a client of a switch, not opened yet.

    Args:
        switch: which one.
        election_id: of all controllers the one with the highest is obeyed.
        primary: whether it wants to be obeyed; otherwise it only reads.
        deadline: seconds to wait for an answer.

    Returns:
        The client; open it before use.
    """
    files = switch.tls
    tls = None if files is None else TlsOptions(files.root, files.certificate, files.key)
    return P4RuntimeClient(
        switch.grpc, switch.device_id, election_id, tls, primary=primary, deadline=deadline
    )


def parts_for(plan: Path, network: DescribedNetwork) -> list[tuple[SwitchPlan, Network]]:
    """Return what each switch of a network serves of a plan, and what is around it.

    Args:
        plan: its folder.
        network: the switches, in the order of ``network.in_order``.

    Raises:
        PlannerError: the folder holds no plan, or a damaged one.
        PlanRefusedError: the plan is for another number of workers.
    """
    loaded = load_plan(plan)
    wanted, there = loaded.manifest.workers, len(network.workers)
    if wanted != there:
        raise PlanRefusedError(f"The plan {plan} is for {wanted} workers; the network has {there}.")
    networks = networks_of(network)
    if not network.cables:
        return [(loaded, networks[0])]
    whole = read_plan(plan)
    leaf_spine = LeafSpine(network.leaf_of_worker, len(network.spines))
    parts = split_for_leaf_spine(whole, leaf_spine)
    plans = [leaf_spine_switch_plan(whole.manifest, part) for part in parts.switches]
    return list(zip(plans, networks, strict=True))
