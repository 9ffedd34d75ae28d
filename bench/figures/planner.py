"""A whole plan of a graph with Reddit's shape, compared with METIS alone on the same graph."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bench.errors import BenchError
from bench.line import Goal, ResultLine
from bench.measure import Samples
from bench.settings import Settings
from switchgnn.planner import load_graph

NAME = "planner"
OWN_NAMESPACE = False

_WORKERS = 128
# The paper's switch memory for a graph of its size; smaller graphs get less memory.
_SLOTS = {"10 MB": 78_125, "100 MB": 781_250}
_SCALE, _SEED = 0.2, 0
_TIMES, _BYTES = 4.0, 12.0
_FRACTIONS = {"10 MB": 0.45, "100 MB": 0.15}
_PASSES = 0.25


def missing() -> str | None:
    """Return what the machine lacks for this figure."""
    return None


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure METIS and the plan in turn, each in a process of its own."""
    scale = 1.0 if settings.full else _SCALE
    name = f"reddit-like:{scale:g}:{_SEED}"
    with TemporaryDirectory(prefix="bench-planner-") as folder:
        path = Path(folder) / "graph.npz"
        graph = load_graph(name)
        np.savez(path, indptr=graph.indptr, indices=graph.indices)
        del graph
        for memory, slots in _SLOTS.items():
            yield from _lines(settings, path, name, memory, max(8, round(slots * scale)))


def _lines(
    settings: Settings, path: Path, name: str, memory: str, slots: int
) -> Iterator[ResultLine]:
    alone, whole = [], []
    for _ in range(settings.pairs):
        alone.append(_measure("metis", path, slots))
        whole.append(_measure("plan", path, slots))
    last = whole[-1]
    what = f"{name}, {_WORKERS} workers, {slots:,} slots ({memory} at scale 1)"
    yield ResultLine(
        NAME,
        f"{what}: best plan",
        "s",
        Samples("plan", tuple(each["seconds"] for each in whole)),
        Samples("METIS alone", tuple(each["seconds"] for each in alone)),
        Goal(ratio_most=_TIMES),
        note=f"{last['edges']:,.0f} directed edges, {last['blocks']:.0f} blocks",
    )
    yield ResultLine(
        NAME,
        f"{what}: peak of memory beyond the graph",
        "bytes per directed edge",
        Samples("plan, without what METIS alone takes", tuple(_beyond(alone, whole))),
        goal=Goal(most=_BYTES),
        note=f"METIS alone takes {alone[-1]['bytes'] / last['edges']:.1f}",
    )
    yield ResultLine(
        NAME,
        f"{what}: packets",
        "of host-based",
        Samples("plan", (last["fraction"],)),
        goal=Goal(most=_FRACTIONS[memory]),
    )
    yield ResultLine(
        NAME,
        f"{what}: passes",
        "per contribution",
        Samples("plan", (last["passes"],)),
        goal=Goal(most=_PASSES),
    )


def _beyond(alone: list[dict[str, float]], whole: list[dict[str, float]]) -> Iterator[float]:
    for metis, plan in zip(alone, whole, strict=True):
        yield max(0.0, plan["bytes"] - metis["bytes"]) / plan["edges"]


def _measure(what: str, path: Path, slots: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.loads.planner", what, str(path)]
    result = subprocess.run(
        [*command, str(_WORKERS), str(slots)], capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise BenchError(f"Planning failed: {result.stderr.strip().splitlines()[-1]}")
    found: dict[str, float] = json.loads(result.stdout)
    return found
