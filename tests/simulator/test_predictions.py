# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The planner predicts the seconds that the simulator counts packet by packet."""

from functools import cache

import pytest

from switchgnn.planner import Direction, load_graph
from switchgnn.planner.chosen import Asked, build_chosen, choose_asked
from switchgnn.planner.costs import seconds as seconds_module
from switchgnn.planner.costs.host_seconds import host_seconds
from switchgnn.planner.costs.seconds import Network, plan_seconds
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.planner.lanes import fragment_lanes, lanes_for
from switchgnn.planner.partition.workers import partition_workers
from switchgnn.planner.presets import Situation, slots_of_memory
from switchgnn.planner.sending.between_hosts import fewest_rows, rows_between
from switchgnn.simulator import NetworkOptions, host_setup, plan_setup, run_simulation

DIGITS, SOCIAL = "digits", "yelp-like:0.002:0"
SHARE = 0.1


@cache
def made_plan(graph, preset, workers, memory, lanes):
    loaded = load_graph(graph)
    situation = Situation(workers, slots_of_memory(memory), lanes=lanes)
    choice = choose_asked(Asked(preset), loaded, situation)
    return build_chosen(loaded, choice, situation, program="0", seed=0)


def check_plan(graph, preset, workers, memory, lanes, width, loop):
    plan = made_plan(graph, preset, workers, memory, lanes or lanes_for([width]))
    carried = fragment_lanes(width, plan.manifest.lanes)
    options = NetworkOptions(recirculation_rate=loop)
    run = run_simulation(plan_setup(plan, len(carried), lanes=carried), options)
    predicted = plan_seconds(plan, Direction.FORWARD, width, Network(passes_per_second=loop))
    assert predicted == pytest.approx(run.seconds, rel=SHARE)


@pytest.mark.parametrize("loop", [None, 1e9, 2.5e8, 2e7])
@pytest.mark.parametrize(("lanes", "width"), [(32, 16), (32, 64), (None, 128)])
@pytest.mark.parametrize("memory", [20_000, 10_000_000])
def test_plans(memory, lanes, width, loop):
    check_plan(DIGITS, "best", 8, memory, lanes, width, loop)


@pytest.mark.parametrize("preset", ["best", "paper"])
@pytest.mark.parametrize("loop", [None, 2.5e8])
@pytest.mark.parametrize("workers", [8, 32])
def test_plans_of_other_shapes(workers, loop, preset):
    check_plan(SOCIAL, preset, workers, 100_000, 32, 602, loop)


def test_passes_that_sums_end_count(monkeypatch):
    """Without them the loop is idle too early: the comparison finds that."""
    check_plan(DIGITS, "paper", 32, 1_000_000, 32, 64, 2.5e7)
    monkeypatch.setattr(seconds_module._Traffic, "_split_passes", lambda self, _last: 0 * self._hop)
    with pytest.raises(AssertionError):
        check_plan(DIGITS, "paper", 32, 1_000_000, 32, 64, 2.5e7)


@pytest.mark.parametrize("partial", [False, True], ids=["copies", "fewest rows"])
@pytest.mark.parametrize("mtu", [1_500, 9_000])
@pytest.mark.parametrize("width", [16, 64, 602])
@pytest.mark.parametrize(("graph", "workers"), [(DIGITS, 8), (SOCIAL, 8), (SOCIAL, 32)])
def test_hosts(graph, workers, width, mtu, partial):
    loaded = load_graph(graph)
    boundary = boundary_edges(loaded, partition_workers(loaded, workers, 0))
    rows = rows_between(boundary, workers, fewest_rows(boundary) if partial else None)
    options = NetworkOptions()
    run = run_simulation(host_setup(rows, width, options.pace, mtu), options)
    predicted = host_seconds(rows, width, Network(mtu=mtu))
    assert predicted == pytest.approx(run.seconds, rel=SHARE)


def test_links_of_other_rates():
    plan = made_plan(DIGITS, "best", 8, 20_000, 32)
    for bandwidth, delay in ((10_000, 5), (400_000, 0.2), (1_000, 50)):
        options = NetworkOptions(bandwidth=bandwidth, delay=delay)
        network = Network(bits_per_second=bandwidth * 1e6, delay=delay * 1e-6)
        run = run_simulation(plan_setup(plan, 2), options)
        predicted = plan_seconds(plan, Direction.FORWARD, 64, network)
        assert predicted == pytest.approx(run.seconds, rel=SHARE)
        rows = rows_between(boundary_edges(load_graph(DIGITS), plan.assignment), 8)
        run = run_simulation(host_setup(rows, 64, options.pace, 1_500), options)
        assert host_seconds(rows, 64, network) == pytest.approx(run.seconds, rel=SHARE)
