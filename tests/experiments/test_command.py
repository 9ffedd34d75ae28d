# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn figures` as a user runs it."""

import json
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from switchgnn.commands.application import app
from switchgnn.lab.experiments import Store, run_points
from switchgnn.lab.simulator.compile import compiled_models, what_is_missing
from tests.experiments.fake_points import point
from tests.support.speed import seconds_here

MISSING = what_is_missing()
COMMAND = [sys.executable, "-m", "switchgnn.commands", "figures"]


@pytest.fixture(scope="module", autouse=True)
def models():
    if MISSING:
        pytest.skip(MISSING)
    compiled_models()


def figures(*arguments):
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds_here(100),
    )


def test_a_small_figure_end_to_end(tmp_path):
    out = tmp_path / "out"
    told = figures("example", "--out", out)
    assert told.returncode == 0, told.stderr
    assert "1 figure of 4 points, 4 of them simulated" in told.stdout
    assert {path.name for path in out.iterdir()} == {
        ".lock",
        "points",
        "example.csv",
        "example.png",
        "example.svg",
        "table.md",
    }
    kept = [json.loads(path.read_text()) for path in (out / "points").iterdir()]
    assert {each["result"]["system"] for each in kept} == {"bns-gcn", "paper"}
    for each in kept:
        assert each["parameters"]["workers"] == each["result"]["workers"]
        assert each["versions"]["ns3"][0].isdigit()
    again = figures("example", "--out", out)
    assert again.returncode == 0, again.stderr
    assert "0 of them simulated" in again.stdout
    assert "4 of 4 points have a result" in again.stderr


def test_points_are_what_simulate_says(tmp_path):
    """With one partition file for all that have the same, the numbers are those without it."""
    systems = ["bns-gcn", "host-partial", "g3", "strawman", "paper", "best"]
    graph = "random:300:2000:3"  # on which METIS's seed matters
    points = {system: point(graph=graph, system=system, features=128) for system in systems}
    store = Store(tmp_path, {})
    with store.opened():
        outcome = run_points(list(points.values()), store, 2, lambda _: None)
    assert outcome.failed == {}
    options = ["--graph", graph, "--workers", "4", "--memory", "2000", "--json"]
    for system, one in points.items():
        told = CliRunner().invoke(app, ["simulate", *options, "--system", system])
        alone = json.loads(told.stdout)
        found = store.find(one)
        # How it was planned is in the plan's digest, and what it took changes from run to run.
        for name in ("plan", "wall_seconds", "events_per_second", "peak_memory_bytes"):
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


def test_seeds_in_place_of_the_scales(tmp_path):
    told = figures("example", "--seeds", "2", "--out", tmp_path)
    assert "1 figure of 8 points, 8 of them simulated" in told.stdout
    seeds = [
        json.loads(path.read_text())["parameters"]["seed"] for path in tmp_path.glob("points/*")
    ]
    assert sorted(seeds) == [0] * 4 + [1] * 4


def test_unknown_names_are_a_sentence(tmp_path):
    for arguments in (["figure3"], ["example", "--scale", "huge"]):
        told = figures(*arguments, "--out", tmp_path)
        assert told.returncode == 2
        assert told.stderr.startswith("Error: ")
        assert "known: " in told.stderr
