# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Queue and slots over time of a plan, beside the same packets in other orders."""

import numpy as np

from switchgnn.planner.arrivals import Arriving, plan_arrivals, reordered
from switchgnn.planner.direction import Direction
from switchgnn.planner.flow import Arrivals, Flow, simulate_flow
from switchgnn.planner.plan import Plan
from switchgnn.planner.strategies import ORDER_STRATEGIES

# The plan's own order, and those that it is compared with: the paper's, and none.
OWN = "plan"
COMPARED = ("gamr", "random")
# Each contribution takes about 80 bytes for a moment.
MOST_CONTRIBUTIONS = 20_000_000
# Orders are made anew, the paper's by a search.
MOST_REORDERED = 2_000_000


def plan_flows(plan: Plan, direction: Direction) -> dict[str, Flow | None]:
    """What happens in the switch over time, by order; None for what is too large.

    In each step as many packets enter and leave as there are workers.
    """
    contributions = plan.manifest.direction(direction).prediction.contributions
    flows: dict[str, Flow | None] = dict.fromkeys((OWN, *COMPARED))
    if contributions > MOST_CONTRIBUTIONS:
        return flows
    arriving, rate = plan_arrivals(plan, direction), plan.manifest.workers
    flows[OWN] = _flow(arriving, rate)
    for name in COMPARED if contributions <= MOST_REORDERED else ():
        flows[name] = _flow(reordered(arriving, ORDER_STRATEGIES[name], plan), rate)
    return flows


def _flow(arriving: Arriving, rate: int) -> Flow:
    arrivals = Arrivals(arriving.block.astype(np.int32), arriving.packet, arriving.result)
    return simulate_flow(arrivals, rate)
