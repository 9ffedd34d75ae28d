# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One point in a process of its own: `python -m switchgnn.experiments.process POINT PLAN`.

POINT is the point as JSON. PLAN is a folder: with the plan, or to write it to. What
`switchgnn simulate --json` prints comes out; or a sentence on stderr, and exit code 2.
"""

import ctypes
import json
import signal
import sys
from pathlib import Path

from switchgnn.errors import SwitchGNNError
from switchgnn.experiments.point import Point
from switchgnn.p4src import load_program
from switchgnn.planner.banks import BANKS
from switchgnn.planner.build import build_plan
from switchgnn.planner.chosen import Asked
from switchgnn.planner.files import write_plan
from switchgnn.planner.load import load_graph
from switchgnn.planner.manifest import STRAWMAN
from switchgnn.planner.plan import Plan
from switchgnn.planner.presets import slots_of_memory
from switchgnn.run.plan_job import PlanOptions, make_plan
from switchgnn.run.simulate_job import BNS_GCN, SimulateOptions, simulate_job
from switchgnn.simulator import StarOptions

_FAILED = 2
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Simulate the point that the arguments say."""
    # Where the runner dies, this does, and takes its files with it.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
    try:
        print(json.dumps(_simulate(Point(**json.loads(sys.argv[1])), Path(sys.argv[2]))))  # noqa: T201
    except SwitchGNNError as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(_FAILED)


def _simulate(point: Point, folder: Path) -> dict[str, object]:
    planned = point.system != BNS_GCN
    if planned and not folder.exists():
        write_plan(_plan(point), folder)
    options = SimulateOptions(
        plan=folder if planned else None,
        graph=None if planned else point.graph,
        workers=None if planned else point.workers,
        slots=None,
        system=None if planned else point.system,
        layers=point.layers,
        features=point.features,
        seed=point.seed,
        star=StarOptions(
            bandwidth=point.bandwidth,
            delay=point.delay,
            congestion_control=point.congestion_control,
            recirculation_rate=point.recirculation_rate,
            buffer=point.buffer,
            background_load=point.background,
            background_seed=point.seed,
        ),
    )
    return {**simulate_job(options, _say).to_dict(), "system": point.system}


def _plan(point: Point) -> Plan:
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
        )
    options = PlanOptions(
        graph=point.graph,
        workers=point.workers,
        slots=_slots(point, 1),
        features=point.features,
        asked=Asked(point.system, order=point.order),
        directions="forward",
        seed=point.seed,
        link_rate=None,
        recirculation_rate=None,
    )
    return make_plan(options, _say).plan


def _slots(point: Point, each: int) -> int:
    """The slots of the switch; without limit so many for each vertex."""
    if point.memory is not None:
        return slots_of_memory(point.memory)
    return each * load_graph(point.graph).vertices


def _say(_step: str) -> None:
    """Nobody reads the steps of one of many."""


if __name__ == "__main__":
    main()
