# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`auto` is as fast as hosts alone and as plans: it leaves sums to hosts where they are faster."""

import re
from functools import cache

import pytest

from switchgnn.planner import build_plan, load_graph, write_plan
from switchgnn.planner.costs import forecast as mixed_seconds

from .test_command import as_json, simulate

# The strawman sends what finds no slot on as it came, and has no blocks: with few slots it may be
# faster (docs/figures.md).
OTHERS = ("bns-gcn", "host-partial", "paper", "best")
MOST = 1.02
BETWEEN_HOSTS = ("digits", 32, "20kB", 2e7)
IN_BOTH = ("digits", 32, "20kB", 1.2e9)
IN_THE_SWITCH = ("digits:80", 32, "10MB", 1.2e9)


def simulated(system, graph, workers, memory, loop):
    return as_json(
        *("--graph", graph, "--workers", workers, "--memory", memory, "--layers", 1),
        *("--features", 64, "--recirculation-rate", loop, "--system", system),
    )


@cache
def fastest_other(*cell):
    return min(simulated(system, *cell)["exchange_seconds"] for system in OTHERS)


def check_cell(*cell):
    auto = simulated("auto", *cell)
    assert auto["exchange_seconds"] <= MOST * fastest_other(*cell)
    return auto


@pytest.mark.parametrize("loop", [3e8, 4.8e9])
@pytest.mark.parametrize("memory", ["20kB", "100kB", "10MB"])
@pytest.mark.parametrize(
    ("graph", "workers"), [("digits", 8), ("random:600:6000:1", 8), ("random:600:6000:1", 16)]
)
def test_auto_is_never_slower(graph, workers, memory, loop):
    check_cell(graph, workers, memory, loop)


def test_few_slots_leave_all_to_hosts():
    told = check_cell(*BETWEEN_HOSTS)
    assert (told["system"], told["chosen"], told["plan"]) == ("auto", "host-partial", None)
    assert told["predicted_seconds"]["host-partial"] < told["predicted_seconds"]["switch"]


def test_where_both_together_are_faster_they_share_the_work():
    told = check_cell(*IN_BOTH)
    assert told["chosen"] == "mixed"
    assert told["left"] > 0
    assert told["exchange_seconds"] < fastest_other(*IN_BOTH)
    assert told["exchange_seconds"] == pytest.approx(told["predicted_seconds"]["mixed"], rel=0.1)


def test_where_the_plan_is_faster_it_is_taken():
    told = check_cell(*IN_THE_SWITCH)
    assert (told["chosen"], told["plan"] is None) == ("switch", False)
    assert told["exchange_seconds"] == pytest.approx(told["predicted_seconds"]["switch"], rel=0.1)


def test_other_systems_are_not_chosen():
    told = simulated("paper", *IN_THE_SWITCH)
    assert (told["chosen"], told["predicted_seconds"]) == (None, None)


def test_a_prediction_without_barriers_is_found(monkeypatch):
    right = mixed_seconds.plan_seconds
    monkeypatch.setattr(
        mixed_seconds, "plan_seconds", lambda plan, *args, **more: right(plan, *args, **more) / 20
    )
    with pytest.raises(AssertionError):
        check_cell(*BETWEEN_HOSTS)


def test_a_plan_in_a_folder_is_compared_with_hosts_too(tmp_path):
    graph, workers, _, loop = BETWEEN_HOSTS
    plan = build_plan(load_graph(graph), workers=workers, slots=160, program="0" * 64)
    write_plan(plan, tmp_path / "plan")
    told = as_json(
        *("--plan", tmp_path / "plan", "--system", "auto", "--features", 64, "--layers", 1),
        *("--recirculation-rate", loop),
    )
    assert told["chosen"] == "host-partial"
    alone = as_json(*("--plan", tmp_path / "plan", "--system", "host-partial", "--features", 64))
    assert told["exchange_seconds"] == alone["exchange_seconds"]


def test_people_are_told_what_auto_takes():
    words = ("--graph", "digits", "--workers", 8, "--memory", "20kB", "--features", 64)
    text = simulate(*words, "--system", "auto").stdout
    assert re.search(
        r"^auto takes mixed: predicted .* µs \(switch .*, host .*\); hosts make ", text, re.M
    )
    assert "auto takes" not in simulate(*words, "--system", "best").stdout
