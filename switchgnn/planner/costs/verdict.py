# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the switch pays, in one sentence for the user."""

from collections.abc import Mapping

import numpy as np

from switchgnn.planner.costs.forecast import HOST, HOST_PARTIAL, MIXED, SWITCH
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.plan.plan import Plan

_MICRO, _MILLI = 1e-6, 1e-3


def way_of(plan: Plan, directions: tuple[Direction, ...]) -> str:
    """Return the way of a plan: `switch`, `mixed`, or `host-partial` where it leaves everything."""
    if not plan.leaves_any:
        return SWITCH
    served = any(plan.manifest.direction(each).block_numbers for each in directions)
    return MIXED if served else HOST_PARTIAL


def share_served(plan: Plan, boundary: BoundaryEdges, directions: tuple[Direction, ...]) -> float:
    """Return the share of the destinations that the switch serves.

    Args:
        plan: the plan.
        boundary: the boundary edges of the forward direction.
        directions: those that count.

    Returns:
        From 0 to 1; 1 where there are no destinations.
    """
    ends = {Direction.FORWARD: boundary.destination, Direction.BACKWARD: boundary.source}
    left = sum(int(plan.left(each).sum()) for each in directions)
    every = sum(len(np.unique(ends[each])) for each in directions)
    return 1 - left / every if every else 1.0


def verdict(
    own: str, seconds: Mapping[str, float], served: float, mtu: int, *, both: bool = False
) -> str:
    """Return whether the switch pays.

    Args:
        own: the way of the plan.
        seconds: predicted, by the ways of costs/forecast.py.
        served: the share of the destinations that the switch serves.
        mtu: bytes of the largest IP packet between hosts.
        both: the seconds are those of an exchange in each direction.

    Returns:
        One sentence.
    """
    exchange = "exchanges of both directions are" if both else "an exchange is"
    host = min((HOST_PARTIAL, HOST), key=seconds.__getitem__)
    alone = f"between hosts alone ({host}, IP packets of up to {mtu:,} bytes)"
    hosts, with_plan = told_seconds(seconds[host]), told_seconds(seconds[own])
    if own == HOST_PARTIAL:
        tried = [seconds[way] for way in (SWITCH, MIXED) if way in seconds]
        best = f" and {told_seconds(min(tried))} with the switch" if tried else ""
        return (
            f"The switch does not pay: {exchange} predicted to take {hosts} {alone}{best}, so "
            "all is left to the hosts."
        )
    if seconds[host] < seconds[own]:
        return (
            f"The switch does not pay: {exchange} predicted to take {with_plan} with this "
            f"plan, and {hosts} {alone}."
        )
    part = "" if own == SWITCH else f" for {served:.0%} of the destinations"
    return f"The switch pays{part}: {exchange} predicted to take {with_plan}, and {hosts} {alone}."


def told_seconds(seconds: float) -> str:
    """Return a time for people."""
    if seconds < _MILLI:
        return f"{seconds / _MICRO:,.1f} µs"
    return f"{seconds / _MILLI:,.1f} ms" if seconds < 1 else f"{seconds:,.2f} s"
