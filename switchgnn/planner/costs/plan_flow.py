# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Queue and slots over time of a plan, beside the same packets in other orders."""

import numpy as np

from switchgnn.planner.costs.flow import Flow, flow_of_sums, packet_steps
from switchgnn.planner.direction import Direction
from switchgnn.planner.plan.arrivals import Arriving, plan_arrivals, reordered
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.plan.slots import entries_of, slots_in_use
from switchgnn.planner.strategies import ORDER_STRATEGIES

# The plan's own order, and those that it is compared with: the paper's, and none.
OWN = "plan"
COMPARED = ("gamr", "random")
# Other orders are made anew, from a list of all contributions.
MOST_REORDERED = 2_000_000


def plan_flows(plan: Plan, direction: Direction) -> dict[str, Flow | None]:
    """Follow the packets through the switch over time, by order; None for what is too large.

    In each step as many packets enter and leave as there are workers.
    """
    contributions = plan.manifest.direction(direction).prediction.contributions
    arriving = plan_arrivals(plan, direction)
    flows: dict[str, Flow | None] = {OWN: _flow(plan, direction, arriving)}
    for name in COMPARED:
        flows[name] = None
        if contributions <= MOST_REORDERED:
            other = reordered(plan, direction, arriving, ORDER_STRATEGIES[name])
            flows[name] = _flow(plan, direction, other)
    return flows


def _flow(plan: Plan, direction: Direction, arriving: Arriving) -> Flow:
    rate, entries = plan.manifest.workers, entries_of(plan, direction)
    first = plan.manifest.direction(direction).first_block
    when, steps = packet_steps(arriving.block, rate)
    block = plan.switch.entry_block[entries].astype(np.int64) - first + 1
    packet = arriving.find(block, plan.switch.entry_source[entries])
    return flow_of_sums(*slots_in_use(plan, direction, when[packet]), steps, rate)
