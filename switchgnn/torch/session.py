# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Opens a session: the switches get the plan, and a number that only its workers know."""

from contextlib import ExitStack
from pathlib import Path

from switchgnn.base.described import DescribedNetwork
from switchgnn.controller.install import Share, install_each
from switchgnn.controller.target import client_of, parts_for
from switchgnn.p4src import load_program


def open_session(plan: Path, network: DescribedNetwork, *, election_id: int = 1) -> int:
    """Bring all switches of a network to a plan, in a new session.

    Switches that serve the plan already only get the session.

    Args:
        plan: its folder.
        network: where the switches are.
        election_id: of all controllers the one with the highest is obeyed.

    Returns:
        The number of the session, for the workers.

    Raises:
        PlannerError: no plan, or a damaged one.
        ControllerError: a switch is not there, obeys another controller, or cannot take it.
    """
    parts = parts_for(plan, network)
    with ExitStack() as stack:
        clients = [client_of(switch, election_id=election_id) for switch in network.in_order]
        for client in clients:
            stack.callback(client.close)
        shares = [Share(*part, client) for part, client in zip(parts, clients, strict=True)]
        return install_each(shares, program=load_program(), new_session=True).session
