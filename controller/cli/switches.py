# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The switches that a command is for: by their addresses, or as a network file has them."""

from dataclasses import dataclass
from pathlib import Path

from switchgnn.base.described import DescribedNetwork
from switchgnn.base.network import Network, leaf_spine_networks, star_network
from switchgnn.controller.described import client_of, parts_for
from switchgnn.controller.errors import ControllerError
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.p4runtime.connection import TlsOptions
from switchgnn.controller.plan import SwitchPlan, leaf_spine_switch_plan, load_plan
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.plan.files import read_plan
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine

DEFAULT_ADDRESS = "127.0.0.1:9559"


@dataclass(frozen=True)
class Switches:
    """The switches that a command is for.

    Attributes:
        network: as a file has them; None: ``addresses`` counts.
        addresses: of their P4Runtime, leaves first.
        device_id: of each, where ``addresses`` counts.
        tls: for each, where ``addresses`` counts; None: without.
        election_id: of all controllers the one with the highest is obeyed; None: this one only
            reads.
        deadline: seconds to wait for an answer.
    """

    network: DescribedNetwork | None
    addresses: list[str]
    device_id: int
    tls: TlsOptions | None
    election_id: int | None
    deadline: float

    def clients(self) -> list[P4RuntimeClient]:
        """Return a client for each, leaves first, not opened yet."""
        election_id, primary = self.election_id or 1, self.election_id is not None
        if self.network is None:
            return [
                P4RuntimeClient(
                    *(address, self.device_id, election_id, self.tls),
                    primary=primary,
                    deadline=self.deadline,
                )
                for address in self.addresses
            ]
        return [
            client_of(switch, election_id=election_id, primary=primary, deadline=self.deadline)
            for switch in self.network.in_order
        ]

    def parts(self, folder: Path, leaves: int, spines: int) -> list[tuple[SwitchPlan, Network]]:
        """Return what each serves of a plan, and what is around it.

        Args:
            folder: of the plan.
            leaves: how many switches, the first ones, are leaves, where ``addresses`` counts;
                0: each is a star.
            spines: how many, the others, are spines.

        Returns:
            A part and a network for each, in the order of ``clients``.

        Raises:
            PlannerError: the folder holds no plan, or a damaged one.
            ControllerError: there are not as many switches as leaves and spines, or the plan is
                for others than the network has.
        """
        if self.network is None:
            return parts_by_number(folder, len(self.addresses), leaves, spines)
        return parts_for(folder, self.network)


def parts_by_number(
    folder: Path, switches: int, leaves: int, spines: int
) -> list[tuple[SwitchPlan, Network]]:
    """Return what each of some switches serves of a plan, and what is around it.

    Args:
        folder: of the plan.
        switches: their number.
        leaves: how many of them, the first ones, are leaves, with the usual addresses and the
            workers divided evenly; 0: each is a star.
        spines: how many, the others, are spines.

    Returns:
        A part and a network for each.

    Raises:
        PlannerError: the folder holds no plan, or a damaged one.
        ControllerError: there are not as many switches as leaves and spines.
    """
    if not leaves:
        plan = load_plan(folder)
        return [(plan, star_network(plan.manifest.workers))] * switches
    if switches != leaves + spines:
        raise ControllerError(
            f"{leaves} leaves and {spines} spines need {leaves + spines} addresses, leaves first; "
            f"{switches} are given."
        )
    whole = read_plan(folder)
    leaf_spine = even_leaf_spine(whole.manifest.workers, leaves, spines)
    parts = split_for_leaf_spine(whole, leaf_spine)
    networks = leaf_spine_networks(leaf_spine.leaf_of_worker, spines).switches
    plans = [leaf_spine_switch_plan(whole.manifest, part) for part in parts.switches]
    return list(zip(plans, networks, strict=True))
