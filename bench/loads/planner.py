"""``python -m bench.loads.planner metis|plan GRAPH WORKERS SLOTS``: one measurement, as JSON."""

import json
import sys
import time
from pathlib import Path

import numpy as np

from switchgnn.base.machine import PeakMemory
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.build import build_resolved
from switchgnn.planner.graphs.array_file import load_npz
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.presets import PlanContext, preset_strategies


def metis(graph: Graph, workers: int) -> dict[str, float]:
    """Partition the graph with METIS, and do nothing else."""
    import pymetis  # noqa: PLC0415 - as the planner does

    starts = graph.indptr.astype(np.int32)
    memory, start = PeakMemory(), time.perf_counter()
    options = pymetis.Options()
    options.seed = 0
    pymetis.part_graph(workers, pymetis.CSRAdjacency(starts, graph.indices), options=options)
    return {"seconds": time.perf_counter() - start, "bytes": memory.peak() - memory.before}


def plan(graph: Graph, workers: int, slots: int) -> dict[str, float]:
    """Make the whole plan of the preset `best`.

    Returns:
        The time in seconds, the memory in bytes, and what the plan predicts.
    """
    context = PlanContext(workers, slots)
    choice = preset_strategies("best", graph, context)
    memory, start = PeakMemory(), time.perf_counter()
    made = build_resolved(graph, choice, context, program="0", seed=0)
    seconds = time.perf_counter() - start
    said = made.manifest.direction(Direction.FORWARD).prediction
    host = sum(said.host_packets_up) + sum(said.host_packets_down)
    return {
        "seconds": seconds,
        "bytes": memory.peak() - memory.before,
        "fraction": (sum(said.packets_up) + sum(said.packets_down)) / host,
        "passes": said.passes / said.contributions,
        "blocks": made.manifest.blocks,
    }


def main() -> None:
    """Measure once."""
    what, path, workers, slots = sys.argv[1:]
    graph = load_npz(Path(path))
    found = metis(graph, int(workers)) if what == "metis" else plan(graph, int(workers), int(slots))
    sys.stdout.write(json.dumps({**found, "edges": len(graph.indices)}))


if __name__ == "__main__":
    main()
