# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that are mad, or were started otherwise than the others."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from switchgnn.lab.virtual.draw import Wish, draw_scenario
from switchgnn.lab.virtual.jobs import DifferenceError
from switchgnn.lab.virtual.scenario import (
    Difference,
    DifferenceKind,
    Incident,
    IncidentKind,
    Scenario,
    read_scenario,
    scenario_text,
)
from switchgnn.lab.virtual.shrink import fewer_differences, fewer_parts
from switchgnn.lab.virtual.soak import Soak
from tests.support.native import needs_compiler

QUIET = Scenario(seed=1, graph="random:20:30:1", workers=3)
MAD = replace(QUIET, incidents=(Incident(IncidentKind.MAD, "w1", 20, 0.1),))
# What the worker that differs is told, and one of the others.
TOLD = {
    DifferenceKind.SESSION: ("session", "for worker 1"),
    DifferenceKind.PLAN: ("holds plan", "for worker 1"),
    DifferenceKind.DIGEST: ("holds plan", "for worker 1"),
    DifferenceKind.MAGNITUDE: ("did not answer", "worker 1 reports features of up to"),
    DifferenceKind.WIDTH: ("goes on with another|for workers", "worker 1"),
    DifferenceKind.DIRECTION: ("no backward blocks", "for worker 1"),
    DifferenceKind.VERSION: ("no answer from the switch", "for worker 1"),
    DifferenceKind.ROUNDS: ("for workers 0, 2", None),
}


def test_mad_workers_send_the_same_each_time(star):
    one, other = (star.run(MAD, keeps_trace=True) for _ in range(2))
    assert one == other
    assert not one.violations
    assert one.faults["mad"] == 1
    volleys = [line for line in one.trace if "w1 is mad" in line]
    assert len(volleys) > 5


@needs_compiler
def test_both_back_ends_take_a_mad_worker_for_the_same(star):
    native, python = (star.run(replace(MAD, backend=name)) for name in ("native", "python"))
    assert native.digest == python.digest


def test_a_mad_worker_whose_process_is_gone_is_named(star):
    kill = Incident(IncidentKind.KILL, "w1", 150)
    outcome = star.run(replace(MAD, rounds=8, incidents=(*MAD.incidents, kill)))
    assert not outcome.violations
    assert len(outcome.errors) == QUIET.workers - 1


@pytest.mark.parametrize("kind", DifferenceKind)
def test_who_differs_is_told_or_named(star, kind):
    outcome = star.run(replace(QUIET, differences=(Difference(1, kind),)))
    assert not outcome.violations
    own, others = TOLD[kind]
    errors = dict(error.split(": ", 1) for error in outcome.errors)
    assert re.search(own, errors.pop("w1"))
    if others is None:
        assert not errors
    else:
        assert errors.keys() == {"w0", "w2"}
        assert all(re.search(others, error) for error in errors.values()), errors


def test_who_exchanges_less_often_is_missed(star):
    outcome = star.run(replace(QUIET, differences=(Difference(1, DifferenceKind.ROUNDS, -1),)))
    assert not outcome.violations
    assert len(outcome.errors) == QUIET.workers - 1
    assert all("for worker 1" in error for error in outcome.errors)


def test_features_whose_sums_overflow_are_refused_by_their_worker(star):
    """And the others miss it: nobody else has heard of them."""
    outcome = star.run(replace(QUIET, differences=(Difference(1, DifferenceKind.MAGNITUDE, 2),)))
    assert not outcome.violations
    errors = dict(error.split(": ", 1) for error in outcome.errors)
    own = errors.pop("w1")
    assert own.startswith("Worker 1 has features of up to 2.2")
    assert "overflows float32" in own
    assert all("for worker 1." in error for error in errors.values())


def test_a_plan_that_no_worker_holds_is_told_to_all(star):
    outcome = star.run(replace(QUIET, other_plan=True))
    assert not outcome.violations
    assert outcome.exchanges == 0
    assert len(outcome.errors) == QUIET.workers
    assert all("holds plan" in error for error in outcome.errors)


@pytest.mark.parametrize(
    ("workers", "what"),
    [
        ((7,), "^Worker 7 cannot differ, as it does not exist"),
        ((1, 1), "^Worker 1 has two differences"),
    ],
)
def test_who_is_not_there_does_not_differ(star, workers, what):
    differences = tuple(Difference(worker, DifferenceKind.PLAN) for worker in workers)
    with pytest.raises(DifferenceError, match=what):
        star.run(replace(QUIET, differences=differences))


def test_they_are_drawn_now_and_then():
    scenarios = [draw_scenario(seed, Wish()) for seed in range(600)]
    mad = sum(any(i.kind is IncidentKind.MAD for i in each.incidents) for each in scenarios)
    different = Counter(each.differences[0].kind for each in scenarios if each.differences)
    assert 20 <= mad <= 60
    assert set(different) == set(DifferenceKind)
    assert sum(different.values()) <= 40
    always = [draw_scenario(seed, Wish(misfits=True)) for seed in range(200)]
    assert 1 <= sum(each.other_plan for each in always) <= 30
    assert all(each.differences or each.incidents or each.other_plan for each in always)


@pytest.mark.whole
def test_drawn_ones_hold():
    soak = Soak(Wish(misfits=True))
    found = {seed: soak.run(draw_scenario(seed, soak.wish)).violations for seed in range(300, 306)}
    assert found == dict.fromkeys(found, ())


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("leaves", "spines"), [(0, 0), (2, 2)])
def test_more_drawn_ones_hold(leaves, spines):
    soak = Soak(Wish(leaves, spines, misfits=True))
    found = {seed: soak.run(draw_scenario(seed, soak.wish)).violations for seed in range(400, 460)}
    assert found == dict.fromkeys(found, ())


def test_they_are_written_and_read(tmp_path):
    scenario = replace(MAD, differences=(Difference(2, DifferenceKind.WIDTH, 2),))
    file = tmp_path / "scenario.json"
    file.write_text(scenario_text(scenario))
    assert read_scenario(file) == scenario


def test_smaller_scenarios_have_fewer_of_them():
    scenario = replace(MAD, differences=(Difference(2, DifferenceKind.WIDTH, 2),))
    assert [each.differences for each in fewer_differences(scenario)] == [
        (),
        (Difference(2, DifferenceKind.WIDTH, 1),),
    ]
    assert all(not each.differences for each in fewer_parts(scenario) if each.workers == 2)
