# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Whole exchanges in virtual time: nothing is otherwise than it must be, and each repeats."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest

from switchgnn.lab.virtual.draw import Wish, draw_scenario
from switchgnn.lab.virtual.scenario import (
    Fault,
    FaultKind,
    Incident,
    IncidentKind,
    Rates,
    Scenario,
    ScenarioError,
    read_scenario,
    scenario_text,
)
from tests.support.native import needs_compiler
from tests.support.speed import seconds_here

BAD = Rates(loss=0.1, duplicate=0.1, late=0.05, reorder=0.1, corrupt=0.05)
QUIET = Scenario(seed=1, rounds=3)


def test_without_faults_every_exchange_is_done(star):
    outcome = star.run(QUIET)
    assert not outcome.violations
    assert not outcome.errors
    assert outcome.exchanges == QUIET.exchanges
    assert set(outcome.faults) == set()


def test_with_all_faults_every_exchange_is_done(star):
    outcome = star.run(replace(QUIET, up=BAD, down=BAD, sessions=2, directions="both"))
    assert not outcome.violations
    assert not outcome.errors
    assert outcome.exchanges == 2 * QUIET.rounds
    assert set(outcome.faults) == {"loss", "duplicate", "late", "reorder", "corrupt"}


def over_leaves_and_spines(seed, spines=1, **more):
    """Four workers on links and cables of which a fetch and its answer pass eight."""
    lossy = Rates(loss=0.4)
    base = replace(QUIET, seed=seed, graph="karate", workers=4, leaves=2, spines=spines)
    return replace(base, rounds=1, window=128, up=lossy, down=lossy, cables=lossy, **more)


@pytest.mark.parametrize(("spines", "seed"), [(1, 1), (1, 2), (1, 4), (2, 3), (2, 4), (2, 5)])
def test_on_bad_links_nobody_is_given_up(soaks, spines, seed):
    scenario = over_leaves_and_spines(seed, spines)
    outcome = soaks(2, spines).run(scenario)
    assert outcome.errors == ()
    assert outcome.exchanges == scenario.exchanges


@pytest.mark.parametrize("seed", range(1, 6))
def test_on_bad_links_the_worker_that_is_gone_is_named_in_time(soaks, seed):
    """Others may get on for a while with what it has sent before, and count its silence then."""
    gone = Incident(IncidentKind.KILL, "w3", 600)
    outcome = soaks(2, 1).run(over_leaves_and_spines(seed, incidents=(gone,)), keeps_trace=True)
    (killed,) = (line for line in outcome.trace if "w3 is killed" in line)
    given_up = next(line for line in outcome.trace if "gives up" in line)
    assert re.search(r"Worker 3 did not answer|without a sign of life, for workers? .*3", given_up)
    waited = (int(given_up.split()[0]) - int(killed.split()[0])) / 1e9
    assert QUIET.patience - 2 <= waited <= 2 * QUIET.patience


@pytest.mark.parametrize(
    "scenario",
    [
        replace(QUIET, up=BAD, down=BAD),
        replace(QUIET, incidents=(Incident(IncidentKind.RESTART, "s0", 130, 0.5),)),
        replace(QUIET, incidents=(Incident(IncidentKind.KILL, "w1", 130),), sessions=2),
    ],
    ids=["faults", "restart", "kill"],
)
def test_equal_scenarios_have_equal_traces(star, scenario):
    one, other = (star.run(scenario, keeps_trace=True) for _ in range(2))
    assert one.trace == other.trace
    assert one == other
    assert star.run(replace(scenario, seed=2)).digest != one.digest


def test_faults_told_one_by_one_are_those_that_were_drawn(star):
    scenario = replace(QUIET, up=BAD, down=BAD)
    drawn = star.run(scenario)
    told = star.run(replace(scenario, up=Rates(), down=Rates(), faults=drawn.each_fault))
    assert told == drawn
    fewer = star.run(replace(scenario, up=Rates(), down=Rates(), faults=drawn.each_fault[1:]))
    assert fewer.digest != drawn.digest


@needs_compiler
def test_both_back_ends_have_equal_traces(star):
    scenario = replace(QUIET, graph="random:20:30:1", rounds=1, up=BAD, down=BAD)
    native, python = (star.run(replace(scenario, backend=name)) for name in ("native", "python"))
    assert native.digest == python.digest


@pytest.mark.whole
def test_another_process_has_the_same_digest(star):
    """Whatever else it does, and whatever the hashes of its strings are."""
    digests = set()
    for chance in ("1", "2"):
        words = ("soak", "--simulated", "--seed", "3", "--json")
        command = [sys.executable, "-m", "switchgnn.commands", *words]
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": chance},
            capture_output=True,
            text=True,
            timeout=seconds_here(60),
            check=True,
        )
        told = json.loads(done.stdout)
        assert told["exchanges"] == 8
        assert told["failures"] == []
        digests.add(told["trace_digest"])
    assert len(digests) == 1
    for seed in (1, 2):
        star.run(draw_scenario(seed, star.wish))
    sums = star.many(iter([draw_scenario(3, star.wish)]), str, lambda _: True)
    assert {sums.trace_digest} == digests


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"up": BAD}, "not both"),
        ({"faults": (Fault(FaultKind.LOSS, "w7.up", 1),)}, "does not exist"),
        ({"faults": (Fault(FaultKind.LOSS, "w0.up", 0),)}, "from 1"),
        ({"faults": 2 * (Fault(FaultKind.LOSS, "w0.up", 4),)}, "have the same frame"),
    ],
)
def test_faults_that_cannot_be_are_refused(star, changes, what):
    faults = (Fault(FaultKind.LOSS, "w0.up", 1),)
    with pytest.raises(ScenarioError, match=what):
        star.run(replace(QUIET, **{"faults": faults, **changes}))


def test_who_is_waited_for_in_vain_is_named(star):
    scenario = replace(QUIET, incidents=(Incident(IncidentKind.KILL, "w1", 130),))
    outcome = star.run(scenario)
    assert not outcome.violations
    assert len(outcome.errors) == scenario.workers - 1
    for error in outcome.errors:
        assert re.search(r"for worker 1\.|Worker 1 did not answer", error), error


def test_another_process_of_a_worker_is_refused(star):
    """And the others miss the one before it; where it had done nothing, it takes its place."""
    ends = Counter()
    for event in range(1, 300, 23):
        again = Incident(IncidentKind.RESTART, "w1", event, 0.3)
        outcome = star.run(replace(QUIET, incidents=(again,), patience=5.0))
        assert not outcome.violations
        ends[len(outcome.errors)] += 1
        for error in outcome.errors:
            assert re.search(r"for worker 1\.|did not answer|^w1: Another process", error), error
    assert set(ends) >= {0, QUIET.workers}


def test_drawn_scenarios(star):
    check_seeds(star, range(8))


@pytest.mark.whole
@pytest.mark.parametrize("first", [100, 130])
def test_more_drawn_scenarios(star, first):
    check_seeds(star, range(first, first + 30))


@pytest.mark.full
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_many_drawn_scenarios(star, first):
    check_seeds(star, range(first, first + 100))


@pytest.mark.whole
@pytest.mark.parametrize(("leaves", "spines"), [(2, 1), (2, 2), (3, 2)])
def test_leaves_and_spines(soaks, leaves, spines):
    check_seeds(soaks(leaves, spines), range(200, 210))


def check_seeds(soak, seeds):
    found = {}
    for seed in seeds:
        outcome = soak.run(draw_scenario(seed, soak.wish))
        if outcome.violations:
            found[seed] = outcome.violations
    assert found == {}


@pytest.mark.parametrize("told", [False, True], ids=["rates", "faults"])
def test_a_scenario_is_written_and_read(told, tmp_path):
    scenario = draw_scenario(4, Wish())
    if told:
        faults = (
            Fault(FaultKind.LATE, "w0.up", 3, 5_000),
            Fault(FaultKind.CORRUPT, "w1.down", 1, bits=(7, 9)),
        )
        scenario = replace(scenario, up=Rates(), down=Rates(), faults=faults)
    file = tmp_path / "scenario.json"
    file.write_text(scenario_text(scenario))
    assert read_scenario(file) == scenario


@pytest.mark.parametrize("text", ["[", '{"seed": "one"}', '{"seed": 1, "colour": "red"}'])
def test_what_is_no_scenario_is_refused(tmp_path, text):
    file = tmp_path / "scenario.json"
    file.write_text(text)
    with pytest.raises(ScenarioError, match="no scenario"):
        read_scenario(file)
