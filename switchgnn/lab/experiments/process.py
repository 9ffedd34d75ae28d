# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One point in a process of its own: `-m switchgnn.lab.experiments.process POINT PLAN PARTITION`.

POINT is the point as JSON. PLAN is a folder, and PARTITION a file for load_assignment: with what
their names say, or to write it to. What `switchgnn simulate --json` prints comes out; or a sentence
on stderr, and exit code REFUSED if the point cannot be simulated, or else 1.
"""

import ctypes
import json
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from switchgnn.base.errors import SwitchGNNError
from switchgnn.lab.experiments.point import SimulationPoint
from switchgnn.lab.experiments.runner import REFUSED
from switchgnn.lab.simulator import ETHERNET_MTU, LeafSpineOptions, NetworkOptions
from switchgnn.lab.simulator.errors import SimulationStoppedError
from switchgnn.lab.simulator.job import simulate_job
from switchgnn.lab.simulator.request import HOSTS_ALONE, SimulateOptions
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

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Simulate the point in the arguments."""
    # Where the runner dies, this does, and takes its files with it.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
    try:
        point, plan, partition = sys.argv[1:]
        told = _simulate(SimulationPoint(**json.loads(point)), Path(plan), Path(partition))
        print(json.dumps(told))  # noqa: T201
    except (SwitchGNNError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(1 if isinstance(error, (SimulationStoppedError, OSError)) else REFUSED)


def _simulate(point: SimulationPoint, folder: Path, partition: Path) -> dict[str, object]:
    planned = point.system not in (*HOSTS_ALONE, AUTO)
    options = _options(point, folder if planned else None, partition)
    if not folder.exists() and not partition.exists():
        _write_partition(point, partition)
    if planned and not folder.exists():
        write_plan(_plan(point, options, partition), folder)
    return {**simulate_job(options, _say).to_dict(), "system": point.system}


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
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        written = Path(folder) / file.name
        np.save(written, made)
        written.rename(file)


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


def _say(_step: str) -> None:
    """Nobody reads the steps of one of many."""


if __name__ == "__main__":
    main()
