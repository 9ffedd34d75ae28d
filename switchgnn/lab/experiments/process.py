# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
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
from switchgnn.lab.experiments.point import SimulationPoint
from switchgnn.lab.simulator import ETHERNET_MTU, LeafSpineOptions, NetworkOptions
from switchgnn.lab.simulator.job import simulate_job
from switchgnn.lab.simulator.request import SimulateOptions
from switchgnn.lab.simulator.within import planned_for, room_for
from switchgnn.p4src import load_program
from switchgnn.planner.build import build_plan, build_resolved
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.partition.simple import load_assignment
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.plan.files import write_plan
from switchgnn.planner.plan.manifest import STRAWMAN
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.presets import AUTO, PlanRequest, resolve_strategies, slots_of_memory
from switchgnn.planner.strategies import PARTITION_STRATEGIES
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
    plan, partition = point.plan_folder, work / point.partition_file
    folder = None if plan is None else work / plan
    options = _options(point, folder, partition)
    if folder is None or not folder.exists():
        if not partition.exists():
            _write_partition(point, partition)
        if folder is not None:
            write_plan(_plan(point, options, partition), folder)
    return {**simulate_job(options, lambda _: None).to_dict(), "system": point.system}


def _options(point: SimulationPoint, folder: Path | None, partition: Path) -> SimulateOptions:
    planned = folder is not None
    return SimulateOptions(
        plan=folder,
        graph=None if planned else point.graph,
        workers=None if planned else point.workers,
        slots=_slots(point, 1) if point.system == AUTO else None,
        system=None if planned else point.system,
        layers=point.layers,
        features=point.features,
        seed=point.seed,
        network=NetworkOptions(
            bandwidth=point.bandwidth,
            delay=point.delay,
            congestion_control=point.congestion_control,
            recirculation_rate=point.recirculation_rate,
            window=point.window,
            buffer=point.buffer,
            background_load=point.background,
            background_seed=point.seed,
        ),
        leaf_spine=LeafSpineOptions(point.leaves, point.spines, point.completion)
        if point.leaves
        else None,
        slot_features=point.slot_features,
        asked=PlanRequest() if planned else PlanRequest(order=point.order, assignment=partition),
        bin_size=point.bin_size,
        mtu=point.mtu or ETHERNET_MTU,
        # The point determines its memory, which shrinks with the graph.
        switch=replace(find_profile(point.switch), slot_bytes=None, table_bytes=None),
        table_memory=point.table_memory,
    )


def _write_partition(point: SimulationPoint, file: Path) -> None:
    """Make it as planning would; others see all of it or nothing."""
    make = PARTITION_STRATEGIES[point.partition]
    made = make(load_graph(point.graph), point.workers, point.seed)
    with whole_file(file) as written:
        np.save(written, made)


def _plan(point: SimulationPoint, options: SimulateOptions, partition: Path) -> Plan:
    if point.system == STRAWMAN:
        return build_plan(
            load_graph(point.graph),
            workers=point.workers,
            # A bank hands out its own slots: all vertices find one in any of them.
            slots=_slots(point, BANKS),
            program=load_program().digest,
            seed=point.seed,
            blocks=STRAWMAN,
            order=point.order or "random",
            assignment=load_assignment(partition),
            banks=options.switch.banks,
        )
    graph = load_graph(point.graph)
    context = planned_for(options, point.workers, _slots(point, 1))
    asked = PlanRequest(point.system, order=point.order, assignment=partition)
    return build_resolved(
        graph,
        resolve_strategies(asked, graph, context),
        context,
        program=load_program().digest,
        seed=point.seed,
        assignment=asked.load_assignment(),
        fits=room_for(options),
    )


def _slots(point: SimulationPoint, each: int) -> int:
    """Return the slots of the switch; without a limit `each` for every vertex."""
    if point.memory is not None:
        return slots_of_memory(point.memory, point.slot_features)
    return each * load_graph(point.graph).vertices


if __name__ == "__main__":
    main()
