"""`switchgnn figures` as a user runs it, and the process that simulates a point."""

import csv
import json
import signal
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from typer.testing import CliRunner

from switchgnn.commands.application import app
from switchgnn.lab.experiments.figure import Cell, cells_of, select
from switchgnn.lab.experiments.paper import find_figures
from switchgnn.lab.experiments.point import BoundaryPoint, TrainingPoint
from switchgnn.lab.experiments.process import simulate_options
from switchgnn.lab.experiments.runner import Store, run_points
from switchgnn.lab.experiments.table import csv_text
from switchgnn.lab.simulator.simulation import compiled_models
from switchgnn.lab.simulator.subject import check_fits, make_plan
from switchgnn.planner import load_graph, partition_workers
from switchgnn.profiles import UNLIMITED
from tests.experiments.fake_points import HEAT_MAP, point
from tests.support.levels import simulator_missing
from tests.support.markers import full
from tests.support.processes import run_program

MISSING = simulator_missing()
COMMAND = [sys.executable, "-m", "switchgnn.commands", "figures"]


@pytest.fixture(scope="module", autouse=True)
def models():
    if MISSING:
        pytest.skip(MISSING)
    compiled_models()


def figures(*arguments):
    return run_program([*COMMAND, *map(str, arguments)])


def test_a_small_figure_end_to_end(tmp_path):
    out = tmp_path / "out"
    told = figures("example", "--out", out)
    assert told.returncode == 0, told.stderr
    assert "1 figure of 4 points, 4 of them made" in told.stdout
    assert {path.name for path in out.iterdir()} == {
        *(".lock", "points", "example.csv", "example.png", "example.svg", "table.md")
    }
    kept = [json.loads(path.read_text()) for path in (out / "points").iterdir()]
    assert {each["result"]["system"] for each in kept} == {"bns-gcn", "paper"}
    for each in kept:
        assert each["parameters"]["workers"] == each["result"]["workers"]
        assert each["versions"]["numpy"][0].isdigit()
    again = figures("example", "--out", out)
    assert again.returncode == 0, again.stderr
    assert "0 of them made" in again.stdout
    assert "4 of 4 points have a result" in again.stderr


def test_points_are_what_simulate_says(tmp_path):
    systems = ["bns-gcn", "host-partial", "g3", "strawman", "paper", "best"]
    graph = "random:300:2000:3"  # on which METIS's seed matters
    points = {system: point(graph=graph, system=system, features=128) for system in systems}
    failed, results = simulated(tmp_path, *points.values())
    assert failed == {}
    options = ["--graph", graph, "--workers", "4", "--memory", "2000", "--json"]
    for system, found in zip(points, results, strict=True):
        told = CliRunner().invoke(app, ["simulate", *options, "--system", system])
        alone = json.loads(told.stdout)
        for name in ("wall_seconds", "events_per_second", "peak_memory_bytes"):
            del alone[name], found[name]
        assert found == alone


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.full)]
)
def test_it_goes_on_after_an_interruption(tmp_path, number):
    command = [*COMMAND, "example", "--jobs", "1", "--out", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("[1/4]")
        process.send_signal(number)
        assert "the same command goes on" in process.stderr.read()
    assert process.returncode == 130
    assert not (tmp_path / "work").exists()
    done = len(list((tmp_path / "points").iterdir()))
    assert 1 <= done < 4
    told = figures("example", "--out", tmp_path)
    assert told.returncode == 0, told.stderr
    assert f"{done} of 4 points have a result" in told.stderr


@pytest.mark.parametrize(
    ("words", "error"), [("figure3", "No figure"), ("example --scale huge", "No scale")]
)
def test_unknown_names_are_a_sentence(tmp_path, words, error):
    done = CliRunner().invoke(app, ["figures", *words.split(), "--out", str(tmp_path)])
    assert f"{error} " in str(done.exception)
    assert "known: " in str(done.exception)


def points_of_switches():
    """With the quickest loop plans have the most entries; large graphs take long."""
    (grid,) = find_figures([HEAT_MAP])
    fastest = max(grid.scales["medium"].recirculation_rates)
    for cell in select(cells_of(grid, "medium"), {"workers": "most", "memory": "least"}):
        small = cell.point.graph.startswith(("digits", "random"))
        if cell.point.switch != UNLIMITED.name:
            marks = [] if small and cell.recirculation == fastest else full
            yield pytest.param(cell.point, id=f"{cell.graph}-{cell.recirculation}", marks=marks)


@pytest.mark.parametrize("one", list(points_of_switches()))
def test_points_of_small_figures_fit_their_switch(one):
    options = simulate_options(one)
    plan = make_plan(one.system, load_graph(one.graph), options, one.workers, lambda _: None).plan
    assert check_fits(plan, options).table_bytes > 0


def simulated(tmp_path, *points):
    store = Store(tmp_path, {})
    with store.opened():
        outcome = run_points(points, store, 2, lambda _: None)
    return outcome.failed, [store.find(each) for each in points]


def test_points_that_cannot_be_simulated_are_refused(tmp_path):
    changes = [{"graph": "no-such-graph"}, {"workers": 100}, {"slot_features": 1}]
    failed, _ = simulated(tmp_path, *(point(**each) for each in changes))
    assert len(failed) == 3
    assert all(why.endswith(".") for why in failed.values())


def test_partitions_are_counted(tmp_path):
    """The karate club by hand: pairs of a vertex and another worker with a neighbour of it."""
    points = [BoundaryPoint("karate", workers, "metis", seed=1) for workers in (2, 5)]
    failed, found = simulated(tmp_path, *points)
    assert not failed
    graph = load_graph("karate")
    for one, told in zip(points, found, strict=True):
        owner = partition_workers(graph, one.workers, 1)
        edges = zip(*(end.tolist() for end in graph.edges()), strict=True)
        crossing = [(a, b) for a, b in edges if owner[a] != owner[b]]
        assert told["copies"] == len({(a, int(owner[b])) for a, b in crossing})
        assert told["boundary_vertices"] == len({a for a, _ in crossing})
        neighbours = sorted(Counter(b for _, b in crossing).values())
        assert neighbours == list(np.repeat(told["neighbours"], told["vertices_with_them"]))


def test_trainings_are_measured_and_say_so(tmp_path):
    points = [TrainingPoint("karate", 2, system, 50_000, 2, 8, 3) for system in ("switch", "host")]
    failed, (switch, host) = simulated(tmp_path, *points)
    assert not failed
    assert switch["losses"] == pytest.approx(host["losses"], abs=1e-4)
    assert len(host["losses"]) == 3
    assert switch["vertices_per_second"] == pytest.approx(34 / np.median(switch["seconds"][1:]))
    cells = [Cell("karate", 2, "", None, 0.0, 2, it.system, it) for it in points]
    results = {points[0]: switch, points[1]: host}
    (first, _) = csv.DictReader(csv_text(cells, results).splitlines())
    assert "cores" in first["machine"]
    assert first["date"][:2] == "20"
    assert "torch" in first["versions"]


def test_points_are_simulated_on_their_leaves(tmp_path):
    where = {"leaves": 2, "spines": 3, "window": 32}
    points = point(**where), point(**where, system="bns-gcn", memory=None, mtu=9_000)
    failed, found = simulated(tmp_path, *points)
    assert not failed
    for told, mtu in zip(found, (1_500, 9_000), strict=True):
        assert (told["leaves"], told["spines"], told["network"]["window"]) == (2, 3, 32)
        assert told["bytes"] == told["host_link_bytes"] + told["leaf_spine_bytes"]
        assert told["mtu"] == mtu
