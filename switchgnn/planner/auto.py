# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The preset `auto`: sums by the switch, by the hosts, or by both, whichever is quickest."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.arrays import distinct_pairs
from switchgnn.planner.build import Progress, build_resolved
from switchgnn.planner.costs.forecast import (
    HOST,
    HOST_PARTIAL,
    MIXED,
    SWITCH,
    WAYS,
    Forecast,
    host_rows,
)
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import BoundaryEdges, boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.presets import PlanContext, ResolvedStrategies

# The most boundary edges with which a second plan is made that serves nearly all of them.
_MOST_TRIED_EDGES = 4_000_000


@dataclass(frozen=True, eq=False)
class AutoPlan:
    """The plan with the least predicted time."""

    plan: Plan  # leaves all destinations to the hosts where these are quicker alone
    # predicted, by the names of `costs/forecast.py`; plans that do not fit are missing
    seconds: Mapping[str, float]
    chosen: str  # the quickest way


def build_auto(
    graph: Graph,
    choice: ResolvedStrategies,
    context: PlanContext,
    forecast: Forecast,
    *,
    program: str,
    seed: int,
    directions: str = "forward",
    assignment: NDArray[np.integer] | None = None,
    fits: Callable[[Plan], bool] | None = None,
    progress: Progress | None = None,
) -> AutoPlan:
    """Build the plan whose exchanges are predicted to take the least time.

    Candidates leave nothing, everything, or part of the destinations to the hosts. In the latter
    the switch serves those with the most contributing workers, in 1, 2, 4, ... blocks for as long
    as that gets quicker, and in one block less than all need.
    """
    tell = progress or (lambda _step: None)
    room_for = fits or (lambda _plan: True)
    make = partial(
        build_resolved, graph, choice, context, program=program, seed=seed, directions=directions
    )
    whole = make(assignment=assignment, fits=fits, progress=progress)
    boundary = boundary_edges(graph, whole.assignment)
    count = partial(host_rows, boundary, context.workers, forecast.directions)
    leaving = partial(make, assignment=whole.assignment, fits=fits)

    tell("predict the seconds of exchanges")
    seconds = {
        HOST_PARTIAL: forecast.of_hosts(count(partial=True)),
        HOST: forecast.of_hosts(count(partial=False)),
    }
    plans = {}
    if room_for(whole):
        nothing = {it: np.zeros((context.workers,) * 2, np.int64) for it in forecast.directions}
        plans[SWITCH], seconds[SWITCH] = whole, forecast.of_plan(whole, nothing)
    ranked = _ranked(boundary, graph.vertices, forecast.directions)
    blocks = -(-max(map(len, ranked.values())) // context.room)
    more = True
    for number in _numbers_of_blocks(blocks, len(boundary)) if choice.leaves else ():
        if not more and number < blocks - 1:
            continue
        tell(f"leave all but {number} of {blocks} blocks to the hosts")
        left = _all_but(ranked, number * context.room, graph.vertices)
        plan = leaving(left=left)
        found = np.inf
        if room_for(plan):
            found = forecast.of_plan(plan, count(partial=True, left=left))
        more = found < seconds.get(MIXED, np.inf)
        if more:
            plans[MIXED], seconds[MIXED] = plan, found
    ordered = {way: seconds[way] for way in WAYS if way in seconds}
    chosen = min(ordered, key=ordered.__getitem__)
    if chosen not in plans:
        plans[chosen] = leaving(
            left=dict.fromkeys(Direction, np.ones(graph.vertices, dtype=np.bool_))
        )
    return AutoPlan(plans[chosen], ordered, chosen)


def _numbers_of_blocks(blocks: int, edges: int) -> Iterator[int]:
    """Yield how many blocks to try: 1, 2, 4, ..., and one less than all destinations need."""
    number = 1
    while number < blocks - 1:
        yield number
        number *= 2
    if blocks > 1 and edges <= _MOST_TRIED_EDGES:
        yield blocks - 1


def _ranked(
    boundary: BoundaryEdges, vertices: int, directions: tuple[Direction, ...]
) -> dict[Direction, NDArray[np.int64]]:
    """Return all destinations by direction, first those that most workers contribute to."""
    ranked = {}
    for direction in directions:
        edges = boundary if direction is Direction.FORWARD else boundary.transposed()
        into = distinct_pairs(edges.destination, edges.source_worker)[0]
        workers = np.bincount(into, minlength=vertices)
        order = np.argsort(-workers, kind="stable")
        ranked[direction] = order[: np.count_nonzero(workers)]
    return ranked


def _all_but(
    ranked: Mapping[Direction, NDArray[np.int64]], most: int, vertices: int
) -> dict[Direction, NDArray[np.bool_]]:
    """Return bool[V] by direction: all vertices but the first `most` destinations."""
    left = {}
    for direction, order in ranked.items():
        left[direction] = np.ones(vertices, dtype=np.bool_)
        left[direction][order[:most]] = False
    return left
