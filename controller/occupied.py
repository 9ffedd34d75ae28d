# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Switches that somebody else uses: with another plan, or with a controller that is at work."""

from switchgnn.controller.controls.session import Session
from switchgnn.controller.errors import (
    NoPrimaryError,
    OtherPlanError,
    OtherProgramError,
)
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.p4runtime.state import read_default

# P4Runtime never makes a controller with this one the primary: it may only look.
_LOOKING_ON = 0


def served_plan(client: P4RuntimeClient) -> int:
    """Return the number of the plan that a switch serves, whatever program it runs; 0: none.

    Args:
        client: an open one.
    """
    if client.get_pipeline_cookie() is None:
        return 0
    try:
        session = Session(client.read_layout())
        return session.decode(read_default(client, session.table)).plan
    except (OtherProgramError, TypeError):
        # No program of ours, or one of a version that told its session otherwise.
        return 0


def refuse_other_plan(address: str, served: int, own: int) -> None:
    """Refuse a switch that serves a plan which is not ours.

    Args:
        address: of the switch.
        served: the number of the plan that it serves; 0: none.
        own: the number of ours.

    Raises:
        OtherPlanError: it serves another plan.
    """
    if served not in (0, own):
        raise OtherPlanError(
            f"Switch {address} serves plan {served:08x}, which somebody else has installed, and "
            f"not {own:08x}: a watch replaces no other plan. Watch that one, or bring yours to the "
            "switch with `switchgnn controller install`."
        )


def refuse_other_primary(client: P4RuntimeClient) -> None:
    """Refuse a switch that has a primary controller, even if ours would take its place.

    Args:
        client: one that is not open yet.

    Raises:
        NotPrimaryError: it has one.
    """
    try:
        with client.with_election_id(_LOOKING_ON):
            # Some switches make us the primary where there is no other.
            return
    except NoPrimaryError:
        return
