# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How long one exchange takes in which some sums come from the switch and others from hosts."""

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.costs.host_seconds import host_seconds, shared_seconds
from switchgnn.planner.costs.seconds import Network, plan_rounds, plan_seconds
from switchgnn.planner.direction import Direction
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.boundary import BoundaryEdges, boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.plan.plan import Plan


def exchange_seconds(
    plan: Plan,
    direction: Direction,
    width: int,
    network: Network,
    rows: NDArray[np.int64],
    *,
    together: bool = False,
) -> float:
    """Predict how long one exchange of a plan takes that may leave destinations to the hosts.

    Both parts begin at once and share links. While blocks wait at their barriers, links carry the
    rows between hosts; features and sums wait behind these in queues.

    Args:
        plan: the plan; not the strawman's.
        direction: one that it has.
        width: numbers of a feature.
        network: on which it is run.
        rows: int64[W, W], the rows between hosts for the destinations that it leaves to them.
        together: a slot holds all fragments of a feature, so only blocks have barriers.

    Returns:
        Seconds; 0 where nothing is exchanged.
    """
    if not rows.any():
        return plan_seconds(plan, direction, width, network, together=together)
    if not plan.manifest.direction(direction).block_numbers:
        return host_seconds(rows, width, network)
    rounds = plan_rounds(plan, direction, width, network, together=together)
    return shared_seconds(rows, width, network, rounds)


def left_edges(plan: Plan, graph: Graph, direction: Direction) -> BoundaryEdges:
    """Return the boundary edges into the destinations that a plan leaves to the hosts.

    Args:
        plan: the plan.
        graph: what it was made for.
        direction: of the exchange.

    Returns:
        The edges, in the order of `boundary_edges`.

    Raises:
        PlannerError: the plan was made for another graph.
    """
    if graph.digest() != plan.manifest.graph.digest:
        raise PlannerError(
            f"The plan was made for another graph than {graph.name}, so the rows between its "
            "hosts are not known."
        )
    boundary = boundary_edges(graph, plan.assignment)
    edges = boundary if direction is Direction.FORWARD else boundary.transposed()
    left: NDArray[np.bool_] = plan.left(direction)
    return edges.take(np.flatnonzero(left[edges.destination]))
