# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Switches that end while frames leave them, or come back with what others have given them."""

from collections import Counter
from dataclasses import replace

import pytest

from switchgnn.lab.virtual.draw import Wish, draw_scenario
from switchgnn.lab.virtual.scenario import Incident, IncidentKind, Scenario

QUIET = Scenario(seed=1, graph="random:20:30:1", rounds=8, patience=5.0, sessions=2)
TORN = Incident(IncidentKind.TEAR, "s0", 1, 0.1)


def frames_of(trace, kind):
    """Yield the lines on which frames of a kind have left s0 before it has ended."""
    for line in trace:
        _, where, *words = line.split()
        if where == "s0" and words[0] == "ends":
            return
        if where.endswith(".down") and len(words) == 3 and words[2][24:26] == kind:
            yield where


def test_of_what_leaves_a_torn_switch_some_hear(star):
    """The first that leaves through several ports says that all have opened the round."""
    told = set()
    for seed in range(6):
        outcome = star.run(replace(QUIET, seed=seed, incidents=(TORN,)), keeps_trace=True)
        assert not outcome.violations
        assert not outcome.errors
        assert outcome.exchanges == QUIET.exchanges
        lines = tuple(frames_of(outcome.trace, "84"))
        assert 1 <= len(lines) < QUIET.workers
        told.add(frozenset(lines))
    assert len(told) > 1


@pytest.mark.parametrize("event", [20, 130, 260])
def test_another_program_is_replaced(star, event):
    program = Incident(IncidentKind.PROGRAM, "s0", event, 0.2)
    outcome = star.run(replace(QUIET, incidents=(program,)))
    assert not outcome.violations
    assert not outcome.errors
    assert outcome.exchanges == QUIET.exchanges


def test_another_plan_stays_and_its_switch_is_named(star):
    """Its controller leaves it alone, the next install replaces it, and no sum is wrong."""
    relapse = Incident(IncidentKind.RELAPSE, "s0", 260, 0.2)
    outcome = star.run(replace(QUIET, incidents=(relapse,)))
    assert not outcome.violations
    assert QUIET.rounds < outcome.exchanges < QUIET.exchanges
    assert len(outcome.errors) == QUIET.workers
    for error in outcome.errors:
        assert "the switch" in error, error
        assert "switchgnn controller show" in error, error


@pytest.mark.parametrize("switch", ["s1", "s2"])
def test_behind_another_plan_on_a_leaf_or_spine_nothing_comes(soaks, switch):
    relapse = Incident(IncidentKind.RELAPSE, switch, 300, 0.2)
    scenario = replace(QUIET, workers=4, leaves=2, spines=2, incidents=(relapse,))
    outcome = soaks(2, 2).run(scenario)
    assert not outcome.violations
    assert len(outcome.errors) == scenario.workers


def test_they_are_drawn_now_and_then():
    drawn = [draw_scenario(seed, Wish()) for seed in range(600)]
    kinds = Counter(each.kind for scenario in drawn for each in scenario.incidents)
    assert kinds[IncidentKind.TEAR] > kinds[IncidentKind.RELAPSE] > 0
    assert kinds[IncidentKind.PROGRAM] > 0
    dense = [scenario for scenario in drawn if scenario.graph.startswith("random:240:1600")]
    assert 30 <= len(dense) <= 90
    assert all(scenario.exchanges <= 2 for scenario in dense)
