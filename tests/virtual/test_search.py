# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What fails becomes small, and is replayed by one command."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from switchgnn.base.errors import SwitchGNNError
from tests.simulation.__main__ import app
from tests.simulation.draw import Wish
from tests.simulation.run import ScenarioOutcome
from tests.simulation.scenario import (
    Fault,
    FaultKind,
    Incident,
    IncidentKind,
    IncidentRates,
    Scenario,
    scenario_line,
)
from tests.simulation.scene import Violation
from tests.simulation.shrink import Budget, fewest, shrink
from tests.simulation.soak import Soak
from tests.support.speed import seconds_here
from tests.virtual.mistaken import sums_that_are_recalled_are_wrong

NAME = "sums exact"
BAD = IncidentRates(loss=0.1, duplicate=0.1, reorder=0.1)
LARGE = Scenario(
    seed=1,
    graph="random:12:18:1",
    workers=4,
    rounds=2,
    sessions=2,
    width=40,
    slots=16,
    window=2,
    jitter=20,
    up=BAD,
    down=BAD,
    incidents=(Incident(IncidentKind.JUMP, "w3", 40, 0.5), Incident(IncidentKind.SPILL, "s0", 150)),
)


def budget(runs=2000, goes_on=lambda: True):
    return Budget(runs, goes_on)


def outcome_of(fails, faults=()):
    violations = (Violation(NAME, "a sum is wrong"),) if fails else ()
    return ScenarioOutcome(violations, 1, 1.0, 10, 10, {}, tuple(faults), (), "", ())


@pytest.mark.whole
def test_a_real_failure_becomes_as_small_as_it_can_be(star):
    with sums_that_are_recalled_are_wrong():
        shrunk = shrink(LARGE, NAME, star.run, budget())
        least = shrunk.scenario
        assert shrunk.least
        assert fails(star, least)
        assert (least.workers, least.rounds, least.sessions, least.incidents) == (2, 1, 1, ())
        assert (least.up, least.down, least.jitter) == (IncidentRates(), IncidentRates(), 0)
        assert 1 <= len(least.faults) <= 3
        for place in range(len(least.faults)):
            others = least.faults[:place] + least.faults[place + 1 :]
            assert not fails(star, replace(least, faults=others))
        vertices, edges = map(int, least.graph.split(":")[1:3])
        assert (vertices, edges) == (2, 1)
    assert not fails(star, least)


def fails(soak, scenario):
    return any(violation.name == NAME for violation in soak.run(scenario).violations)


@pytest.mark.whole
def test_equal_searches_find_the_same(star):
    with sums_that_are_recalled_are_wrong():
        one, other = (shrink(LARGE, NAME, star.run, budget(12)) for _ in range(2))
    assert one == other


@pytest.mark.parametrize("runs", [1, 7])
def test_the_budget_holds(star, runs):
    tried = []

    def run(scenario):
        tried.append(scenario)
        return star.run(scenario)

    with sums_that_are_recalled_are_wrong():
        shrunk = shrink(LARGE, NAME, run, budget(runs))
        assert (shrunk.runs, len(tried), shrunk.least) == (runs, runs, False)
        assert fails(star, shrunk.scenario)


def test_nothing_runs_when_the_time_is_over(star):
    assert shrink(LARGE, NAME, star.run, budget(goes_on=lambda: False)) is None


def test_another_failure_is_not_this_one():
    def run(scenario):
        name = NAME if scenario.workers > 3 else "ends"
        return replace(outcome_of(True), violations=(Violation(name, "it fails"),))

    assert shrink(LARGE, NAME, run, budget()).scenario.workers == 4


def test_only_what_is_needed_is_left():
    """All that this needs, and nothing else, is left."""
    first = Fault(FaultKind.LOSS, "w1.up", 5)
    second = Fault(FaultKind.LATE, "w2.down", 9, 7_000_000)
    many = [Fault(FaultKind.DUPLICATE, f"w{n % 4}.up", 20 + n) for n in range(50)]

    def run(scenario):
        drawn = [*many[:25], first, *many[25:], second] if scenario.up.loss else []
        faults = scenario.faults or tuple(drawn)
        lates = [fault for fault in faults if fault.line == "w2.down" and fault.delay >= 3_000_000]
        spills = [each for each in scenario.incidents if each.where == "s0"]
        needed = first in faults and lates and spills and scenario.rounds >= 2
        return outcome_of(needed and scenario.window == 2, faults)

    least = shrink(LARGE, NAME, run, budget()).scenario
    wanted = Scenario(
        seed=1,
        graph="random:3:1:0",
        workers=3,
        rounds=2,
        width=1,
        window=2,
        jitter=0,
        faults=(first, replace(second, delay=3_500_000)),
        incidents=(Incident(IncidentKind.SPILL, "s0", 0),),
    )
    # Who is not there has no faults, but nothing here needs the worker but its line.
    assert least == replace(wanted, workers=least.workers, graph=least.graph)


def test_leaves_and_spines_become_a_star_with_what_is_left_there():
    there = replace(
        LARGE,
        leaves=2,
        spines=2,
        cables=BAD,
        incidents=(
            Incident(IncidentKind.SILENCE, "l1s1.up", 20, 0.5),
            Incident(IncidentKind.RESTART, "s3", 30),
            Incident(IncidentKind.RESTART, "controller", 40),
        ),
    )
    names = set()

    def run(scenario):
        names.update((scenario.switches, each.where) for each in scenario.incidents)
        return outcome_of(any(each.where == "controller" for each in scenario.incidents))

    least = shrink(there, NAME, run, budget()).scenario
    assert (least.leaves, least.spines, least.cables) == (0, 0, IncidentRates())
    assert [each.where for each in least.incidents] == ["controller"]
    assert (1, "s3") not in names
    assert (1, "l1s1.up") not in names


def test_a_scenario_that_cannot_be_does_not_count():
    def run(scenario):
        if scenario.workers < 4:
            raise SwitchGNNError("Too few.")
        return outcome_of(True)

    assert shrink(LARGE, NAME, run, budget()).scenario.workers == 4


@pytest.mark.parametrize("needed", [(), (0,), (7,), (3, 4), (0, 6, 12), tuple(range(13))])
def test_the_fewest_items(needed):
    tried = []

    def suffices(items):
        tried.append(items)
        return set(needed) <= set(items)

    assert fewest(tuple(range(13)), suffices) == needed
    assert len(tried) < 50


WISH = Wish()


def soak(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def test_a_scenario_in_a_command_happens_as_one_in_a_file(tmp_path):
    scenario = Scenario(seed=4, graph="random:8:12:1", rounds=1, up=IncidentRates(loss=0.1))
    file = tmp_path / "it's mine.json"
    file.write_text(scenario_line(scenario))
    digests = {
        json.loads(soak("--scenario", said, "--json").stdout)["trace_digest"]
        for said in (file, scenario_line(scenario))
    }
    assert digests == {Soak(WISH).many(iter([scenario]), str, lambda _: True).trace_digest}


@pytest.mark.parametrize(
    ("said", "why"),
    [('{"seed": 1, "colour": "red"}', "colour"), ('{"graph":' + "[" * 30_000, "nested")],
)
def test_no_scenario_in_a_command_is_refused(said, why):
    done = soak("--scenario", said)
    assert "--scenario holds no scenario" in str(done.exception)
    assert why in str(done.exception)


@pytest.mark.whole
def test_a_soak_follows_from_its_seed():
    """Whatever the hashes of strings are."""
    words = ("--seed", "2990", "--exchanges", "10", "--json")
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *words],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        timeout=seconds_here(60),
        check=True,
    )
    there, here = (
        {**json.loads(said), "seconds": 0} for said in (done.stdout, soak(*words).stdout)
    )
    assert there == here
    scenarios = Soak(WISH).scenarios(2990)
    plain = Soak(WISH).many(scenarios, str, lambda sums: sums.exchanges < 10)
    assert plain.trace_digest == here["trace_digest"]
