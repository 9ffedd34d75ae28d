# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What exchanges are predicted to take: in the switch, between hosts, or partly in each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.costs.host_seconds import host_seconds
from switchgnn.planner.costs.mixed_seconds import exchange_seconds
from switchgnn.planner.costs.seconds import Network
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.sending.between_hosts import fewest_rows, rows_between

# Ways to exchange, in the order in which one is taken where several take the same time: all sums
# by the switch; some of them; none, with partial sums where they are fewer; none, with copies.
SWITCH, MIXED, HOST_PARTIAL, HOST = "switch", "mixed", "host-partial", "host"
WAYS = (SWITCH, MIXED, HOST_PARTIAL, HOST)

# int64[W, W] by direction: the rows from worker a to worker b.
Rows = Mapping[Direction, NDArray[np.int64]]


class Forecast(Protocol):
    """Predicts the seconds of all exchanges that are asked about."""

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Those of the exchanges."""

    def of_plan(self, plan: Plan, left: Rows) -> float:
        """Return what they take with a plan.

        Args:
            plan: the plan.
            left: the rows between hosts for the destinations that it leaves to them.
        """

    def of_hosts(self, rows: Rows) -> float:
        """Return what they take between hosts alone."""


@dataclass(frozen=True, eq=False)
class StarForecast:
    """The forecast of hosts and a switch that share nothing but links (planner/costs).

    Attributes:
        network: links and switch.
        exchanges: by direction how often which width is exchanged.
        together: a slot holds all fragments of a feature, so only blocks have barriers.
    """

    network: Network
    exchanges: Mapping[Direction, Mapping[int, float]]
    together: bool = False

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Those of the exchanges."""
        return tuple(self.exchanges)

    def of_plan(self, plan: Plan, left: Rows) -> float:
        """See Forecast."""
        return sum(
            times
            * exchange_seconds(
                plan, direction, width, self.network, left[direction], together=self.together
            )
            for direction, widths in self.exchanges.items()
            for width, times in widths.items()
        )

    def of_hosts(self, rows: Rows) -> float:
        """See Forecast."""
        return sum(
            times * host_seconds(rows[direction], width, self.network)
            for direction, widths in self.exchanges.items()
            for width, times in widths.items()
        )


def host_rows(
    boundary: BoundaryEdges,
    workers: int,
    directions: tuple[Direction, ...],
    *,
    partial: bool,
    left: Mapping[Direction, NDArray[np.bool_]] | None = None,
) -> Rows:
    """Count the rows that hosts send each other.

    Args:
        boundary: the boundary edges of the forward direction.
        workers: W.
        directions: those to count.
        partial: send partial sums where they are fewer; else copies alone.
        left: by direction bool[V], the destinations that count; None: all.

    Returns:
        The rows by direction.
    """
    rows = {}
    for direction in directions:
        edges = boundary if direction is Direction.FORWARD else boundary.transposed()
        if left is not None:
            edges = edges.take(np.flatnonzero(left[direction][edges.destination]))
        rows[direction] = rows_between(edges, workers, fewest_rows(edges) if partial else None)
    return rows
