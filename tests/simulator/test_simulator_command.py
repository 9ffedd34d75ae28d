# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn simulate` as a user runs it."""

import json

import pytest
from typer.testing import CliRunner

from switchgnn.cli.application import app
from switchgnn.cli.doctor import examine
from switchgnn.errors import SwitchGNNError
from switchgnn.planner import build_plan, load_graph, write_plan
from switchgnn.simulator import compute_seconds

GRAPH = ["--graph", "karate", "--workers", "4"]
# What the issue wants at least.
KEYS = {
    "epoch_seconds",
    "communication_seconds",
    "bytes",
    "max_queue_bytes",
    "aggregation_bits_per_second",
    "max_slots",
    "events",
    "wall_seconds",
}


def simulate(*arguments):
    result = CliRunner().invoke(app, ["simulate", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def as_json(*arguments):
    result = simulate(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plans") / "karate-plan"
    plan = build_plan(load_graph("karate"), workers=4, slots=16, program="0" * 64)
    write_plan(plan, folder)
    return folder


@pytest.mark.parametrize("system", ["bns-gcn", "strawman", "paper", "best"])
def test_every_system_gives_the_same_numbers(system):
    told = as_json(*GRAPH, "--memory", "2kB", "--system", system, "--layers", 3)
    assert told.keys() >= KEYS
    assert told["system"] == system
    assert told["communication_seconds"] == pytest.approx(3 * told["exchange_seconds"])
    total = told["communication_seconds"] + told["compute_seconds"]
    assert told["epoch_seconds"] == pytest.approx(total)
    assert told["exchange_seconds"] >= told["busiest_link_seconds"] > 0
    assert told["bytes"] == sum(told["bytes_up"]) + sum(told["bytes_down"])
    assert told["slots"] == (0 if system == "bns-gcn" else 15)
    assert (told["sums"] > 0) == (system != "bns-gcn")
    assert (told["overflowed"] > 0) == (system == "strawman")


def test_a_plan_is_simulated_as_it_is(folder):
    told = as_json("--plan", folder)
    made = as_json(*GRAPH, "--memory", "2048", "--system", "paper")
    assert (told["system"], made["system"]) == ("plan", "paper")
    # Only the digest of the program differs, and with it that of the plan.
    for each in (told, made):
        for name in ("system", "plan", "wall_seconds", "events_per_second", "peak_memory_bytes"):
            del each[name]
    assert told == made


def test_hosts_alone_on_the_partition_of_a_plan(folder):
    told = as_json("--plan", folder, "--system", "bns-gcn")
    assert told["bytes"] == as_json(*GRAPH, "--system", "bns-gcn")["bytes"]


@pytest.mark.parametrize("system", ["bns-gcn", "strawman", "paper", "best"])
def test_one_worker_alone_exchanges_nothing(system):
    told = as_json("--graph", "karate", "--workers", 1, "--system", system)
    assert told["aggregation_bits_per_second"] == told["sums"] == sum(told["features_up"]) == 0


def test_unlimited_memory_makes_no_overflow():
    told = as_json(*GRAPH, "--system", "strawman", "--memory", "10GB")
    assert told["overflowed"] == 0 < told["sums"]


def test_words_for_people():
    shown = simulate(*GRAPH, "--memory", "2kB", "--system", "paper").stdout
    assert "karate: paper, 4 workers around one switch, 100 Gbit/s, 2 µs" in shown
    assert "computing (a model)" in shown


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([*GRAPH, "--system", "g3"], "system g3 cannot be simulated yet"),
        (
            [*GRAPH, "--system", "paper", "--topology", "leaf-spine"],
            "leaf-spine cannot be simulated yet",
        ),
        ([*GRAPH, "--system", "paper", "--topology", "ring"], "No topology 'ring'"),
        ([*GRAPH, "--system", "pipegcn"], "No system 'pipegcn'; known: bns-gcn, strawman"),
        ([*GRAPH, "--system", "paper", "--memory", "much"], "cannot read --memory much"),
        ([*GRAPH, "--system", "paper", "--memory", "128"], "needs 2 slots"),
        ([*GRAPH, "--system", "paper", "--bandwidth", 0], "bandwidth must be above 0"),
        ([*GRAPH, "--system", "paper", "--buffer", "100"], "hold a frame of 188 bytes"),
        ([*GRAPH, "--system", "strawman", "--buffer", "188"], "give a larger buffer"),
        (["--plan", "nowhere"], "nowhere is not a plan"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_a_sentence(arguments, told):
    with pytest.raises(SwitchGNNError, match=told):
        simulate(*arguments)


def test_a_plan_is_not_another_system(folder):
    with pytest.raises(SwitchGNNError, match="but not as paper"):
        simulate("--plan", folder, "--system", "paper")


@pytest.mark.parametrize(
    "arguments", [["--graph", "karate"], [], ["--plan", "x", "--graph", "karate"]]
)
def test_wrong_usage(arguments):
    assert simulate(*arguments).exit_code == 2


def test_the_model_of_computing():
    """1,000 vertices, 10,000 edges, 100 features, by hand, at half the rates."""
    products = 3 * 2 * 1_000 * 100 * 100 / 35.6e12
    sums = 2 * 10_000 * 400 / 936e9
    assert compute_seconds(1_000, 10_000, 100, 4) == pytest.approx(8 * (products + sums))


def test_doctor_names_what_simulations_need():
    found = {finding.name: finding for finding in examine()}
    assert found["ns3"].needed_for == found["C++ compiler"].needed_for == "switchgnn simulate"
    assert not found["ns3"].required


def test_doctor_shows_the_command_that_mends(monkeypatch):
    monkeypatch.setattr("switchgnn.cli.doctor._ns3", lambda: None)
    shown = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "200"}).stdout
    assert "pip install -e '.[simulate]'" in shown
