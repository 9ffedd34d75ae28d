"""The plan with the least predicted time, among several numbers of pools and sizes of memory.

More memory makes fewer and larger blocks. Where the switch's loop takes the time, and not the
links, smaller ones may be quicker. So within the rates of a switch a plan may leave memory unused.

Where hosts exchange rows, the busiest link takes the time. So `auto` also tries the partition of
G3, which evens out the links, though it has more rows in all. And it tries a vertex cut, whose sums
take no loop and return to all that contribute to them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from switchgnn.base.array_types import Integers
from switchgnn.planner import presets
from switchgnn.planner.blocks.mlgp import MIN_SLOTS
from switchgnn.planner.build import build_resolved
from switchgnn.planner.costs import forecast as costs
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.g3 import g3
from switchgnn.planner.plan.plan import Plan

# The most directed edges with which several plans are made: each takes up to half a minute.
MOST_EDGES = 24_000_000
_EVEN = "Workers by G3's partition: it evens out the links, so the exchanges are quicker."


@dataclass(frozen=True, eq=False)
class QuickestPlan:
    """A plan, and what it was made with."""

    plan: Plan
    context: presets.PlanContext
    strategies: presets.ResolvedStrategies
    graph: Graph  # what is planned: the replicas, if vertices are cut
    auto: costs.AutoPlan | None = None  # what `auto` compared; None: the switch makes all sums


@dataclass(frozen=True, eq=False)
class PlanSearch:
    """Makes the plan of a request, or several to compare by their predicted time."""

    request: presets.PlanRequest
    graph: Graph
    forecast: costs.StarForecast
    # adds the links' packets per second, which depend on the frames
    rated: Callable[[presets.PlanContext], presets.PlanContext]
    widest: int  # the numbers of the widest frame of the switch
    fits: Callable[[Plan], bool] | None  # whether the switch has room for a plan; None: for all
    settings: Mapping[str, Any]  # others of `build_resolved`

    def quickest(self, context: presets.PlanContext) -> QuickestPlan:
        """Return the plan with the least predicted time.

        Several are made within the rates of one switch, if the graph is small enough, and none of
        them for the paper's preset. Those that do not fit are left out, unless none does. `auto`
        also tries G3's partition and a vertex cut, unless it was asked for another partition.
        """
        asked = self.request
        graph = asked.cut(self.graph, context.workers, self.settings["seed"])
        found = replace(self, graph=graph)._on_partition(context)
        if asked.partition or asked.assignment or found.auto is None:
            return found
        if len(self.graph.indices) > MOST_EDGES:
            return found
        if found.auto.chosen != costs.SWITCH:
            found = self._evened_out(found, found.auto.seconds[costs.HOST_PARTIAL])
        seed, made = self.settings["seed"], None
        if asked.may_cut:
            made = asked.with_cut(self.graph, context.workers, seed)
        if made is not None:
            cut = replace(self, request=made[0], graph=made[1])._on_partition(context)
            found = min(found, cut, key=_predicted)
        return found

    def _evened_out(self, found: QuickestPlan, alone: float) -> QuickestPlan:
        """Return a plan on G3's partition, if hosts alone and the plan are quicker with it."""
        workers = found.context.workers
        owner = g3(self.graph, workers, self.settings["seed"])
        boundary = boundary_edges(self.graph, owner)
        if costs.seconds_of_hosts(self.forecast, boundary, workers, partial=True) >= alone:
            return found
        even = replace(self, request=replace(self.request, partition=g3.__name__))
        other = even._with_hosts(even._make(found.context, owner))
        because = {**other.strategies.because, "partition": _EVEN}
        other = replace(other, strategies=replace(other.strategies, because=because))
        return min(found, other, key=_predicted)

    def _on_partition(self, context: presets.PlanContext) -> QuickestPlan:
        exchange, on = next(iter(self.forecast.exchanges.values())), self.forecast.network
        seed = self.settings["seed"]
        context, owner = costs.choose_lanes(
            *(self.request, self.graph, context, exchange, seed), network=on, widest=self.widest
        )
        first = found = self._make(context, owner)
        owner = found.plan.assignment
        few = len(self.graph.indices) <= MOST_EDGES and self.request.preset != presets.PAPER
        if context.within and context.leaf_spine is None and few:
            found = self._least(found, owner)
        if not found.strategies.leaves:
            return found
        # Beside hosts the switch serves fewer destinations: more memory may pay off again.
        return min(
            (self._with_hosts(each) for each in dict.fromkeys((found, first))), key=_predicted
        )

    def _with_hosts(self, found: QuickestPlan) -> QuickestPlan:
        made = costs.build_auto(
            *(self.graph, found.strategies, found.context, self.forecast),
            **self.settings,
            assignment=found.plan.assignment,
            fits=self.fits,
            whole=found.plan,
        )
        return replace(found, plan=made.plan, auto=made)

    def _make(self, context: presets.PlanContext, owner: Integers | None) -> QuickestPlan:
        rated = self.rated(context)
        how = presets.resolve_strategies(self.request, self.graph, rated)
        plan = build_resolved(
            self.graph, how, rated, **self.settings, assignment=owner, fits=self.fits
        )
        return QuickestPlan(plan, rated, how, self.graph)

    def _least(self, found: QuickestPlan, owner: Integers) -> QuickestPlan:
        """Try other numbers of pools, and then half the slots for as long as that is quicker."""
        seconds, at = self._seconds(found.plan), found.context
        pools = costs.POOLS if self.request.pools is None else ()
        for context in (replace(at, pools=each) for each in pools if each != at.pools):
            found, seconds, _ = self._better(found, seconds, context, owner)
        # Fewer slots need more entries: they are no way to fit.
        better = seconds < np.inf
        while better:
            at = replace(found.context, slots=found.context.slots // 2)
            found, seconds, better = self._better(found, seconds, at, owner)
        return found

    def _better(
        self, found: QuickestPlan, seconds: float, at: presets.PlanContext, owner: Integers
    ) -> tuple[QuickestPlan, float, bool]:
        if at.room < MIN_SLOTS:
            return found, seconds, False
        other = self._make(at, owner)
        takes = self._seconds(other.plan)
        better = takes < seconds
        return (other, takes, True) if better else (found, seconds, False)

    def _seconds(self, plan: Plan) -> float:
        if self.fits is not None and not self.fits(plan):
            return np.inf
        rows = np.zeros((plan.manifest.workers,) * 2, dtype=np.int64)
        return self.forecast.of_plan(plan, dict.fromkeys(self.forecast.directions, rows))


def _predicted(found: QuickestPlan) -> float:
    return found.auto.seconds[found.auto.chosen] if found.auto else np.inf
