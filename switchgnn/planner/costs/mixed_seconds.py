# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How long one exchange takes in which some sums come from the switch and others from hosts."""

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.direction import Direction
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.boundary import BoundaryEdges, boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.plan.plan import Plan


def left_edges(plan: Plan, graph: Graph, direction: Direction) -> BoundaryEdges:
    """Return the boundary edges into the destinations that a plan leaves to the hosts.

    Args:
        plan: the plan.
        graph: what it was made for.
        direction: of the exchange.

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
