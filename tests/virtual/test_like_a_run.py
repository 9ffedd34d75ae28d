# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a soak on running switches has drawn happens in virtual time, too."""

from dataclasses import replace

import pytest

from switchgnn.lab.commands.soak_runs import draw_run, scenario_words
from switchgnn.lab.virtual.scenario import Rates, scenario_said
from switchgnn.topologies import choose

LOOPBACK = choose("embedded", "loopback")


def scenario_of(number, leaves_and_spines=None):
    run = draw_run(3, number, LOOPBACK, leaves_and_spines)
    *words, said = scenario_words(run)
    assert words == ["switchgnn", "soak", "--simulated", "--scenario"]
    return run, scenario_said(said)


@pytest.mark.parametrize("place", [None, (2, 2)], ids=["star", "leaf-spine"])
def test_it_has_what_was_drawn(place):
    for number in range(20):
        run, scenario = scenario_of(number, place)
        assert (scenario.graph, scenario.workers, scenario.width, scenario.rounds) == (
            *(run.graph, run.workers, run.features, run.rounds),
        )
        assert (scenario.slots, scenario.send) == (run.slots, run.asked.send)
        assert (scenario.leaves, scenario.spines) == (place or (0, 0))
        for direction, rates in (("up", scenario.up), ("down", scenario.down)):
            words = [word for word in run.faults.split(",") if word.startswith(f"{direction}.")]
            told = {
                word.partition("=")[0].rpartition(".")[2]: word.partition("=")[2] for word in words
            }
            assert rates == Rates(**{kind: float(rate) for kind, rate in told.items()})


def test_it_happens(star):
    _, scenario = scenario_of(0)
    outcome = star.run(replace(scenario, graph="random:20:30:1", rounds=1))
    assert outcome.violations == ()
    assert outcome.exchanges == 1
