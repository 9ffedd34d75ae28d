"""Points that share a plan, in a process of their own: `-m switchgnn.lab.experiments.process`.

It reads points from standard input, as lines of JSON, and answers each with a line: `result`, as
`switchgnn simulate --json` prints it, or `error`, a sentence.
"""

import json
import sys
from dataclasses import replace

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.options import shared_fields
from switchgnn.host.base.pace import CongestionRule
from switchgnn.host.direct.framing import USUAL_MTU, Framing
from switchgnn.lab.experiments.point import SimulationPoint
from switchgnn.lab.simulator.job import simulate_job
from switchgnn.lab.simulator.request import (
    HOSTS_ALONE,
    LeafSpineOptions,
    NetworkOptions,
    SimulateOptions,
)
from switchgnn.lab.simulator.subject import make_plan, planned_subject
from switchgnn.planner import Plan, PlanRequest, load_graph
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.plan.manifest import STRAWMAN
from switchgnn.planner.presets import slots_of_memory
from switchgnn.profiles import find_profile


def main() -> None:
    """Simulate the points of standard input."""
    plan = None
    for line in sys.stdin:
        point = SimulationPoint(**json.loads(line))
        try:
            options = simulate_options(point)
            if point.plan is not None and plan is None:
                graph = load_graph(point.graph)
                plan = make_plan(point.system, graph, options, point.workers, _quiet).plan
            told: dict[str, object] = {"result": _simulate(point, options, plan)}
        except (SwitchGNNError, OSError) as error:
            told = {"error": str(error)}
        print(json.dumps(told), flush=True)  # noqa: T201


def _simulate(
    point: SimulationPoint, options: SimulateOptions, plan: Plan | None
) -> dict[str, object]:
    if plan is None:
        return simulate_job(options, _quiet).to_dict()
    subject = planned_subject(point.system, plan, options)
    return simulate_job(options, _quiet, lambda *_: subject).to_dict()


def simulate_options(point: SimulationPoint) -> SimulateOptions:
    """Return what a point simulates."""
    # The point determines its memory, which shrinks with the graph.
    profile = replace(find_profile(point.switch), slot_bytes=None, table_bytes=None)
    return SimulateOptions(
        **shared_fields(point, SimulateOptions) | {"switch": profile, "plan": None},
        slots=_slots(point),
        network=NetworkOptions(
            **shared_fields(point, NetworkOptions)
            | {"congestion": CongestionRule(point.congestion)},
            background_load=point.background,
            background_seed=point.seed,
        ),
        leaf_spine=LeafSpineOptions(**shared_fields(point, LeafSpineOptions))
        if point.leaves
        else None,
        request=PlanRequest(order=point.order, rows=1),
        framing=Framing.parse(str(point.mtu or USUAL_MTU)),
    )


def _slots(point: SimulationPoint) -> int | None:
    """Return the slots of the switch; without a limit all vertices find one."""
    if point.system in HOSTS_ALONE:
        return None
    if point.memory is not None:
        return slots_of_memory(point.memory, point.slot_features)
    # A bank of the strawman hands out its own slots.
    return (BANKS if point.system == STRAWMAN else 1) * load_graph(point.graph).vertices


def _quiet(_step: str) -> None:
    """Ignore the steps of one point of many."""


if __name__ == "__main__":
    main()
