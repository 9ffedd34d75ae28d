"""Plans are byte for byte those that were once recorded, but for the digest of the P4 program.

Where the format of plans changes on purpose, or a library that cuts graphs does, record them again:

    python -m tests.planner.test_golden_plans
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pymetis
import pytest

from switchgnn.planner import Graph, Plan, PlannerError, graph_from_edges, load_graph, write_plan
from switchgnn.planner.blocks.destination import _library, _started
from switchgnn.planner.build import build_resolved
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine
from switchgnn.planner.plan.manifest import STRAWMAN
from switchgnn.planner.presets import PlanContext, PlanRequest, resolve_strategies

RECORD_FILE = Path(__file__).with_name("golden_plans.json")
RECORD = json.loads(RECORD_FILE.read_text(encoding="ascii"))
LIBRARIES = ("mtkahypar", "networkx", "numpy", "pymetis", "scipy", "scikit-learn")
# In place of the digest of the P4 program, which is no work of the planner's.
PROGRAM = "00" * 32
SLOTS = {"karate": 9, "digits": 300, "random:200:2000:1": 40, "directed": 30}
CUTS = ["vertex-cut", "vertex-cut:2", "vertex-cut-hdrf", "vertex-cut-ebv:2:0.5"]
PARTITIONS = [
    *("metis", "metis-volume", "metis-boundary", "g3", "random", "chunk", *CUTS),
    *(f"metis-leaf-spine:{leaves}" for leaves in (1, 2, 3)),
]
BLOCKS = ["mlgp", "destination", "destination-cover", "hypergraph", "hypergraph-cover", "strawman"]
ORDERS = ["gamr", "bfs", "random"]
LEAVES_AND_SPINES = ((1, 1), (2, 1), (3, 2))


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


def switch_cases() -> dict[str, tuple[dict[str, str], int, int]]:
    """Say which plans are split for leaves and spines, and the numbers of these."""
    plans = [
        {"graph": graph, "preset": preset, "directions": "both"}
        for graph in ("karate", "directed")
        for preset in ("paper", "best")
    ]
    return {
        f"graph {case['graph']}, preset {case['preset']}, {leaves} leaves, {spines} spines": (
            *(case, leaves, spines),
        )
        for case in plans
        for leaves, spines in LEAVES_AND_SPINES
    }


def plan_of(case: dict[str, str], workers: int = 4) -> Plan:
    options = dict(case)
    graph = golden_graph(options.pop("graph"))
    directions = options.pop("directions", "forward")
    context = PlanContext(workers, SLOTS[case["graph"]])
    # The strawman's blocks cannot be asked for like others: its switch is another one.
    strawman = {"blocks": options.pop("blocks")} if options.get("blocks") == STRAWMAN else {}
    request = PlanRequest(**{"preset": "paper", **options})
    if request.partition in CUTS:
        request = replace(request, preset="best")
    graph = request.cut(graph, workers, 5)
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


def switches_digest(plan: Plan, leaves: int, spines: int) -> str:
    """Give one digest over what all leaves and spines have to know, in the order of the fields."""
    parts = split_for_leaf_spine(plan, even_leaf_spine(plan.manifest.workers, leaves, spines))
    digest = hashlib.sha256()
    for part in (*parts.leaves, *parts.spines):
        for value in _values(part):
            array = np.ascontiguousarray(value)
            digest.update(f"{array.dtype.str} {array.shape}\n".encode())
            digest.update(array.data)
    return digest.hexdigest()


def _values(part: object) -> Iterator[object]:
    for field in fields(part):
        value = getattr(part, field.name)
        if is_dataclass(value):
            yield from _values(value)
        else:
            yield value


def versions() -> dict[str, str]:
    return {name: version(name) for name in LIBRARIES}


@cache
def probes() -> dict[str, str]:
    """Ask the libraries alone, without our code: another answer makes other plans."""
    return {
        "metis": _digest(_metis_parts()),
        "mtkahypar": _digest(_mtkahypar_parts()),
        "numpy": _digest(np.random.default_rng(5).permutation(1000).tolist()),
    }


def _metis_parts() -> list[int]:
    import networkx  # noqa: PLC0415 - slow to import

    club = networkx.karate_club_graph()
    adjacency = [np.array(sorted(club[v])) for v in range(len(club))]
    options = pymetis.Options()
    options.seed = 5
    _, parts = pymetis.part_graph(4, adjacency=adjacency, options=options)
    return list(parts)


def _mtkahypar_parts() -> list[int]:
    try:
        library = _library()
    except PlannerError:
        return []
    library.set_seed(5)
    context = _started().context_from_preset(library.PresetType.DETERMINISTIC_QUALITY)
    context.logging = False
    context.set_partitioning_parameters(4, 0.03, library.Objective.KM1)
    nets = [[v, (v * v + 1) % 97, (v * 5 + 2) % 97] for v in range(97)]
    nets = [sorted(set(net)) for net in nets if len(set(net)) > 1]
    hypergraph = _started().create_hypergraph(context, 97, len(nets), nets)
    return list(hypergraph.partition(context).get_partition())


def _digest(numbers: list[int]) -> str:
    return hashlib.sha256(json.dumps([int(number) for number in numbers]).encode()).hexdigest()


def record() -> dict[str, object]:
    return {
        "versions": versions(),
        "probes": probes(),
        "plans": {name: plan_digests(plan_of(case)) for name, case in plan_cases().items()},
        "switches": {
            name: switches_digest(plan_of(case), leaves, spines)
            for name, (case, leaves, spines) in switch_cases().items()
        },
    }


PLANS, SWITCHES = plan_cases(), switch_cases()


def skip_unless_it_answers_as_then(*libraries):
    for library in libraries:
        if probes()[library] != RECORD["probes"][library]:
            pytest.skip(
                f"{library} gives other answers than when the plans were recorded with "
                f"{RECORD['versions']}; now there are {versions()}"
            )


def libraries_of(case):
    asked = " ".join(case.values())
    if "best" in asked or "hypergraph" in asked:
        yield "mtkahypar"
    yield from ("metis", "numpy")


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_what_it_was(name):
    skip_unless_it_answers_as_then(*libraries_of(PLANS[name]))
    assert plan_digests(plan_of(PLANS[name])) == RECORD["plans"][name]


@pytest.mark.parametrize("name", SWITCHES)
def test_the_parts_of_leaves_and_spines_are_what_they_were(name):
    case, leaves, spines = SWITCHES[name]
    skip_unless_it_answers_as_then(*libraries_of(case))
    assert switches_digest(plan_of(case), leaves, spines) == RECORD["switches"][name]


def test_the_record_has_all_plans_and_no_others():
    assert set(RECORD["plans"]) == set(PLANS)
    assert set(RECORD["switches"]) == set(SWITCHES)


if __name__ == "__main__":
    RECORD_FILE.write_text(json.dumps(record(), indent=1) + "\n", encoding="ascii")
