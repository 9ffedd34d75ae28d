"""Points of one kind in a process of their own: `-m switchgnn.lab.experiments.process`.

It reads points from standard input, as lines of JSON, and answers each with a line: `result`, as
`switchgnn simulate --json` or `switchgnn train --json` prints it, or `error`, a sentence.
"""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timezone
from typing import Any

import numpy as np

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.machine import python_program
from switchgnn.base.options import shared_fields
from switchgnn.host.base.pace import CongestionRule
from switchgnn.host.direct.framing import USUAL_MTU, Framing
from switchgnn.lab.experiments.point import (
    BoundaryPoint,
    SimulationPoint,
    TrainingPoint,
    current_versions,
    read_point,
)
from switchgnn.lab.simulator import request
from switchgnn.lab.simulator.job import simulate_job
from switchgnn.lab.simulator.subject import make_plan, planned_subject
from switchgnn.planner import Plan, PlanRequest, boundary_edges, load_graph, partition_workers
from switchgnn.planner.costs import study
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.plan.manifest import STRAWMAN
from switchgnn.planner.presets import slots_of_memory
from switchgnn.profiles import find_profile

Answers = Iterator[dict[str, Any]]


def main() -> None:
    """Answer the points of standard input."""
    points: list[Any] = [read_point(line) for line in sys.stdin]
    kinds: dict[type, Any] = {BoundaryPoint: _boundaries, TrainingPoint: _trainings}
    try:
        for told in kinds.get(type(points[0]), _simulations)(points):
            print(json.dumps(told), flush=True)  # noqa: T201
    except (SwitchGNNError, OSError) as error:
        sys.exit(str(error))


def _boundaries(points: Sequence[BoundaryPoint]) -> Answers:
    for point in points:
        graph = load_graph(point.graph)
        boundary = boundary_edges(graph, partition_workers(graph, point.workers, point.seed))
        found = study.study_boundary(boundary, point.workers)
        counts = study.neighbour_counts(boundary)
        neighbours, vertices = np.unique(counts, return_counts=True)
        result = {
            **asdict(found),
            "copies_per_vertex": found.copies / max(1, found.boundary_vertices),
            "connected_share": found.largest_component / max(1, found.boundary_vertices),
            "first_fifth_share": study.share_of_most(counts),
            "neighbours": neighbours.tolist(),
            "vertices_with_them": vertices.tolist(),
        }
        yield {"result": result}


def _trainings(points: Sequence[TrainingPoint]) -> Answers:
    """Run one command over the transports of all points."""
    first, versions = points[0], current_versions()
    command = python_program(
        *("switchgnn.commands", "train", "--json", "--target=embedded", "--fabric=loopback"),
        *(f"--data={first.graph}", f"--workers={first.workers}", f"--seed={first.seed}"),
        *(f"--layers={first.layers}", f"--hidden={first.features}", f"--epochs={first.epochs}"),
        *(f"--slots={slots_of_memory(first.memory)}",),
        *(f"--transport={point.system}" for point in points),
    )
    measured = {
        "machine": f"{os.cpu_count()} cores, {platform.platform()}",
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": ", ".join(f"{name} {versions[name]}" for name in first.versions),
    }
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for told in map(json.loads, process.stdout or ()):
            if told["event"] == "finished":
                yield {"result": told | measured}
    if process.returncode:
        # Its last words on standard error are the points'.
        sys.exit(process.returncode)


def _simulations(points: Sequence[SimulationPoint]) -> Answers:
    """Simulate points that share a plan, which the first one makes."""
    plan = None
    for point in points:
        try:
            options = simulate_options(point)
            if point.plan is not None and plan is None:
                graph = load_graph(point.graph)
                plan = make_plan(point.system, graph, options, point.workers, _quiet).plan
            yield {"result": _simulate(point, options, plan)}
        except (SwitchGNNError, OSError) as error:
            yield {"error": str(error)}


def _simulate(
    point: SimulationPoint, options: request.SimulateOptions, plan: Plan | None
) -> dict[str, object]:
    if plan is None:
        return simulate_job(options, _quiet).to_dict()
    subject = planned_subject(point.system, plan, options)
    return simulate_job(options, _quiet, lambda *_: subject).to_dict()


def simulate_options(point: SimulationPoint) -> request.SimulateOptions:
    """Return what a point simulates."""
    # The point determines its memory, which shrinks with the graph.
    profile = replace(find_profile(point.switch), slot_bytes=None, table_bytes=None)
    return request.SimulateOptions(
        **shared_fields(point, request.SimulateOptions) | {"switch": profile, "plan": None},
        slots=_slots(point),
        network=request.NetworkOptions(
            **shared_fields(point, request.NetworkOptions)
            | {"congestion": CongestionRule(point.congestion)},
            background_load=point.background,
            background_seed=point.seed,
        ),
        leaf_spine=request.LeafSpineOptions(**shared_fields(point, request.LeafSpineOptions))
        if point.leaves
        else None,
        request=PlanRequest(order=point.order, rows=1),
        framing=Framing.parse(str(point.mtu or USUAL_MTU)),
    )


def _slots(point: SimulationPoint) -> int | None:
    """Return the slots of the switch; without a limit all vertices find one."""
    if point.system in request.HOSTS_ALONE:
        return None
    if point.memory is not None:
        return slots_of_memory(point.memory, point.slot_features)
    # A bank of the strawman hands out its own slots.
    return (BANKS if point.system == STRAWMAN else 1) * load_graph(point.graph).vertices


def _quiet(_step: str) -> None:
    """Ignore the steps of one point of many."""


if __name__ == "__main__":
    main()
