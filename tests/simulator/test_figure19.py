# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What congestion control is for: figure 19, made small. Seeds are fixed, so numbers are, too."""

from dataclasses import replace
from statistics import mean

import pytest

from switchgnn.lab.simulator import NetworkOptions, plan_setup, run_simulation
from switchgnn.planner import build_plan, load_graph
from tests.support.markers import full

WORKERS = 8
SEEDS = range(2)
DEEP = NetworkOptions(buffer=500_000)
SHALLOW = NetworkOptions(buffer=60_000, ecn_threshold=80)
# With time-outs that software needs.
SLOW_SHALLOW = NetworkOptions(buffer=60_000, ecn_threshold=80, timeout=4_000.0)


def made():
    """Several windows of features per worker, in one block."""
    graph = load_graph("random:3000:60000:1")
    return plan_setup(build_plan(graph, workers=WORKERS, slots=4_000, program="0" * 64), 8)


@pytest.fixture(scope="module")
def setup():
    return made()


def runs(setup, options, load):
    """With and without control, beside the same flows."""
    return tuple(
        [
            run_simulation(
                setup,
                replace(
                    options, background_load=load, background_seed=seed, congestion_control=control
                ),
            )
            for seed in SEEDS
        ]
        for control in (True, False)
    )


def seconds(of_seeds):
    return mean(run.seconds for run in of_seeds)


def marked(of_seeds):
    """Of the packets that went down to workers, the share that found more than the threshold."""
    return sum(run.marked for run in of_seeds) / sum(sum(run.frames_down) for run in of_seeds)


@pytest.mark.parametrize("load", [0.0, 0.3, 0.5])
def test_control_costs_next_to_nothing_where_nothing_is_lost(setup, load):
    with_control, without = runs(setup, DEEP, load)
    assert seconds(with_control) <= 1.1 * seconds(without)
    assert marked(with_control) < 0.5
    assert sum(run.lost for run in with_control) == 0


@pytest.mark.parametrize("load", [0.3, pytest.param(0.5, marks=full)])
def test_control_pays_where_losses_are_dear(setup, load):
    """Shallow queues, and the time-outs that software needs."""
    with_control, without = runs(setup, SLOW_SHALLOW, load)
    assert seconds(with_control) <= 0.5 * seconds(without)
    assert marked(with_control) < 0.5


def test_control_shortens_shallow_queues(setup):
    with_control, without = runs(setup, SHALLOW, 0.5)
    assert marked(with_control) < marked(without)
    assert sum(run.lost for run in with_control) < sum(run.lost for run in without)
    assert seconds(with_control) < seconds(without)


def test_flows_keep_their_share(setup):
    """Flows take as long beside an exchange with control as beside one without."""
    for options in (DEEP, SHALLOW):
        with_control, without = runs(setup, options, 0.5)
        took, before = (
            mean(run.background.mean_slowdown for run in each) for each in (with_control, without)
        )
        assert took <= before / 0.8
