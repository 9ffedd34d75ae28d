"""One point in a process of its own: `-m switchgnn.lab.experiments.process POINT WORK`.

POINT is the point as JSON, and WORK the folder with plans and partitions that points share. The
process prints what `switchgnn simulate --json` does; or a sentence on stderr, with exit code 1.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import whole_file
from switchgnn.base.options import shared_fields
from switchgnn.host.direct.framing import USUAL_MTU, Framing
from switchgnn.lab.experiments.point import SimulationPoint
from switchgnn.lab.simulator.job import simulate_job
from switchgnn.lab.simulator.request import (
    HOSTS_ALONE,
    LeafSpineOptions,
    NetworkOptions,
    SimulateOptions,
)
from switchgnn.lab.simulator.subject import make_plan
from switchgnn.planner import PARTITION_STRATEGIES, PlanRequest, load_graph, write_plan
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.plan.manifest import STRAWMAN
from switchgnn.planner.presets import slots_of_memory
from switchgnn.profiles import find_profile


def main() -> None:
    """Simulate the point in the arguments."""
    words, work = sys.argv[1:]
    try:
        told = _simulate(SimulationPoint(**json.loads(words)), Path(work))
    except (SwitchGNNError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(1)
    print(json.dumps(told))  # noqa: T201


def _simulate(point: SimulationPoint, work: Path) -> dict[str, object]:
    partition = work / point.partition_file
    plan = None if point.plan_folder is None else work / point.plan_folder
    options = _options(point, partition)
    if not (partition.exists() or (plan is not None and plan.exists())):
        _write_partition(point, partition)
    if plan is not None:
        if not plan.exists():
            graph = load_graph(point.graph)
            write_plan(make_plan(point.system, graph, options, point.workers, _quiet), plan)
        options = replace(options, plan=plan, graph=None, workers=None, slots=None, system=None)
        options = replace(options, request=PlanRequest())
    return {**simulate_job(options, _quiet).to_dict(), "system": point.system}


def _options(point: SimulationPoint, partition: Path) -> SimulateOptions:
    # The point determines its memory, which shrinks with the graph.
    profile = replace(find_profile(point.switch), slot_bytes=None, table_bytes=None)
    return SimulateOptions(
        **shared_fields(point, SimulateOptions) | {"switch": profile},
        plan=None,
        slots=_slots(point),
        network=NetworkOptions(
            **shared_fields(point, NetworkOptions),
            background_load=point.background,
            background_seed=point.seed,
        ),
        leaf_spine=LeafSpineOptions(point.leaves, point.spines, point.completion)
        if point.leaves
        else None,
        request=PlanRequest(order=point.order, assignment=partition, rows=1),
        framing=Framing.parse(str(point.mtu or USUAL_MTU)),
    )


def _write_partition(point: SimulationPoint, file: Path) -> None:
    """Make it as planning would; others see all of it or nothing."""
    make = PARTITION_STRATEGIES[point.partition]
    with whole_file(file) as written:
        np.save(written, make(load_graph(point.graph), point.workers, point.seed))


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
