# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a switch shall hold for a plan: every control's entries together."""

from dataclasses import replace

from switchgnn.base.network import Network
from switchgnn.controller.check import check_rows
from switchgnn.controller.controls.congestion import Congestion
from switchgnn.controller.controls.departure import Departure
from switchgnn.controller.controls.destination import Destination
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.controls.forward import Forward
from switchgnn.controller.controls.loop import Loop
from switchgnn.controller.controls.partial import Partial
from switchgnn.controller.controls.pool import Pool, has_pool
from switchgnn.controller.controls.result import Result
from switchgnn.controller.controls.session import Session, SessionEntry
from switchgnn.controller.controls.source import Source
from switchgnn.controller.controls.tier import Tier
from switchgnn.controller.controls.worker import Worker
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.state import State, empty_state
from switchgnn.controller.plan import SwitchPlan


def desired_state(plan: SwitchPlan, layout: Layout, network: Network, ecn_threshold: int) -> State:
    """Say what a switch shall hold for a plan, without a session yet.

    Args:
        plan: the part of the plan for this switch.
        layout: of the P4 program.
        network: where the workers are.
        ecn_threshold: queue length, in packets, from which on packets are marked.

    Returns:
        The entries, default actions and multicast groups.

    Raises:
        PlanRefusedError: entries that do not fit their table.
    """
    tables = (
        Worker(layout).rows(plan, network),
        Forward(layout).rows(plan, network),
        Source(layout).rows(plan, network),
        Destination(layout).rows(plan, network),
        Partial(layout).rows(plan),
        Fanout(layout).rows(plan),
        Result(layout).rows(plan, network),
        Departure(layout).rows(plan, network),
    )
    for rows in tables:
        check_rows(rows)
    empty = empty_state(layout)
    tier = Tier(layout)
    settings = {
        "threshold": Congestion(layout).encode(ecn_threshold),
        tier.table.name: tier.encode(plan, network),
    }
    if has_pool(layout):
        pool = Pool(layout)
        settings[pool.table.name] = pool.encode(plan.manifest.slots)
    return State(
        rows={**empty.rows, **{rows.table.name: rows for rows in tables}},
        defaults={**empty.defaults, **settings},
        groups=Loop().groups(plan, network),
    )


def with_session(state: State, session: Session, entry: SessionEntry) -> State:
    """Add a session to a state.

    Args:
        state: what a switch shall hold.
        session: the control that encodes it.
        entry: the session.

    Returns:
        The state with the session's default action.
    """
    return replace(state, defaults={**state.defaults, session.table.name: session.encode(entry)})
