"""Plans are byte for byte those that were once recorded, but for the digest of the P4 program.

Where the format of plans changes on purpose, or a library that cuts graphs does, record them again:

    python -m tests.planner.test_golden_plans
"""

import hashlib
import json
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from switchgnn.planner import Graph, Plan, graph_from_edges, load_graph, write_plan
from switchgnn.planner.build import build_resolved
from switchgnn.planner.plan.manifest import STRAWMAN
from switchgnn.planner.presets import PlanContext, PlanRequest, resolve_strategies

RECORD_FILE = Path(__file__).with_name("golden_plans.json")
RECORD = json.loads(RECORD_FILE.read_text(encoding="ascii"))
LIBRARIES = ("mtkahypar", "networkx", "numpy", "pymetis", "scipy", "scikit-learn")
# In place of the digest of the P4 program, which is no work of the planner's.
PROGRAM = "00" * 32
SLOTS = {"karate": 9, "digits": 300, "random:200:2000:1": 40, "directed": 30}
PARTITIONS = [
    *("metis", "metis-volume", "metis-boundary", "g3", "random", "chunk"),
    *("cdfgnn:2", "cdfgnn:2:0.5"),
    *(f"metis-leaf-spine:{leaves}" for leaves in (1, 2, 3)),
]
BLOCKS = ["mlgp", "destination", "destination-cover", "hypergraph", "hypergraph-cover", "strawman"]
ORDERS = ["gamr", "bfs", "random"]


def plan_cases() -> dict[str, dict[str, str]]:
    """Say what is planned, by a name: `graph`, and what is asked for in place of the defaults."""
    asked: list[dict[str, str]] = []
    for graph in SLOTS:
        for preset in ("paper", "best"):
            asked += [
                {"graph": graph, "preset": preset},
                {"graph": graph, "preset": preset, "directions": "both"},
            ]
    for graph in ("karate", "random:200:2000:1", "directed"):
        asked += [{"graph": graph, "partition": name} for name in PARTITIONS]
        asked += [{"graph": graph, "blocks": name, "directions": "both"} for name in BLOCKS]
        asked += [{"graph": graph, "order": name} for name in ORDERS]
        asked += [
            {"graph": graph, "send": "cover", "order": name, "directions": "both"}
            for name in ORDERS
        ]
    return {", ".join(f"{key} {value}" for key, value in case.items()): case for case in asked}


def plan_of(case: dict[str, str], workers: int = 4) -> Plan:
    options = dict(case)
    graph = golden_graph(options.pop("graph"))
    directions = options.pop("directions", "forward")
    context = PlanContext(workers, SLOTS[case["graph"]])
    # The strawman's blocks cannot be asked for like others: its switch is another one.
    strawman = {"blocks": options.pop("blocks")} if options.get("blocks") == STRAWMAN else {}
    request = PlanRequest(**{"preset": "paper", **options})
    choice = replace(resolve_strategies(request, graph, context), **strawman)
    return build_resolved(graph, choice, context, program=PROGRAM, seed=5, directions=directions)


@cache
def golden_graph(name: str) -> Graph:
    if name != "directed":
        return load_graph(name)
    edge = np.arange(900, dtype=np.int64)
    ends = edge * edge * 7 % 151 % 120, edge * edge * edge % 157 % 120
    return graph_from_edges(*ends, name="directed", vertices=120, directed=True)


def plan_digests(plan: Plan) -> dict[str, str]:
    """Give the digest of plan.json, and one of all other files of the plan together."""
    others = hashlib.sha256()
    with TemporaryDirectory() as folder:
        target = Path(folder) / "plan"
        write_plan(plan, target)
        for file in sorted(target.iterdir()):
            if file.name != "plan.json":
                others.update(f"{file.name} {file.stat().st_size}\n".encode())
                others.update(file.read_bytes())
        manifest = (target / "plan.json").read_bytes()
    return {"plan.json": hashlib.sha256(manifest).hexdigest(), "others": others.hexdigest()}


def versions() -> dict[str, str]:
    """Say with which versions a record is made."""
    return {name: version(name) for name in LIBRARIES}


def record() -> dict[str, object]:
    return {
        "versions": versions(),
        "plans": {name: plan_digests(plan_of(case)) for name, case in plan_cases().items()},
    }


PLANS = plan_cases()


def installed(library):
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def skip_unless_recorded_with(*libraries):
    """Other versions of what cuts graphs make other plans."""
    for library in libraries:
        recorded = RECORD["versions"][library]
        if installed(library) != recorded:
            pytest.skip(f"the plans were recorded with {library} {recorded}")


def libraries_of(case):
    asked = " ".join(case.values())
    if "best" in asked or "hypergraph" in asked:
        yield "mtkahypar"
    yield "pymetis"


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_what_it_was(name):
    skip_unless_recorded_with(*libraries_of(PLANS[name]))
    assert plan_digests(plan_of(PLANS[name])) == RECORD["plans"][name]


if __name__ == "__main__":
    RECORD_FILE.write_text(json.dumps(record(), indent=1) + "\n", encoding="ascii")
