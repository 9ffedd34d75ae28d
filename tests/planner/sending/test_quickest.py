# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The weight with which an exchange takes the least time, held to plans with every weight."""

import numpy as np
import pytest

from switchgnn.planner import boundary_edges, load_graph
from switchgnn.planner.blocks.mlgp import mlgp
from switchgnn.planner.plan.banks import BANKS_OF_SWITCHES
from switchgnn.planner.sending.cover import cover_edges
from switchgnn.planner.sending.order import WEIGHTS, Rates, exchange_seconds
from switchgnn.planner.sending.packets import make_packets
from switchgnn.planner.strategies import BLOCK_STRATEGIES
from tests.planner.helpers import plan_of, random_graph

WORKERS, SLOTS = 6, 30
GRAPH = random_graph(120, 1600, 3)
RATES = [Rates(link, loop, 1.0) for link, loop in ((1e6, 1e7), (1e6, 1e6), (1e6, 1e12), (1e3, 1.0))]


def planned(**options):
    options |= {"blocks": "destination", "send": "cover", "banks": 1}
    return plan_of(GRAPH, WORKERS, SLOTS, **options)


def counted(plan, rates):
    """Seconds of a fragment, counted in the parts of the plan, block by block."""
    switch, total = plan.switch, 0.0
    for block in range(1, plan.manifest.blocks + 1):
        links = [
            int(indptr[block] - indptr[block - 1])
            for part in plan.workers
            for indptr in (part.send_indptr, part.receive_indptr)
        ]
        loop = np.count_nonzero(switch.entry_hop[switch.entry_block == block])
        total += max(max(links) / rates.link, loop / rates.loop)
    return total


@pytest.fixture(scope="module")
def by_weight():
    return {weight: planned(weight=weight) for weight in WEIGHTS}


@pytest.mark.parametrize("rates", RATES)
def test_the_quickest_of_all_weights_is_taken(by_weight, rates):
    found = planned(rates=rates)
    seconds = {weight: counted(plan, rates) for weight, plan in by_weight.items()}
    assert found.manifest.strategy.weight in WEIGHTS
    assert counted(found, rates) == pytest.approx(min(seconds.values()))


def test_a_slow_loop_makes_partial_sums_and_a_quick_one_few_packets(by_weight):
    loop = [np.count_nonzero(plan.switch.entry_hop) for plan in by_weight.values()]
    assert loop == sorted(loop, reverse=True)
    assert loop[0] > loop[-1]
    slow, quick = (planned(rates=Rates(1e6, rate, 1.0)) for rate in (1.0, 1e12))
    assert np.count_nonzero(slow.switch.entry_hop) == loop[-1]
    assert quick.manifest.strategy.weight == 0


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("weight", [0.0, 0.125, 1.0])
def test_the_time_is_that_of_the_plan(by_weight, rates, weight):
    plan = by_weight[weight]
    boundary = boundary_edges(GRAPH, plan.assignment)
    block = BLOCK_STRATEGIES["destination"](boundary, SLOTS, 0)
    chosen = cover_edges(boundary, block, weight)
    packets = make_packets(boundary, block, chosen, vertices=GRAPH.vertices, workers=WORKERS)
    assert exchange_seconds(packets, rates, WORKERS) == pytest.approx(counted(plan, rates))


def test_nothing_to_exchange_takes_no_time():
    graph = load_graph("karate")
    boundary = boundary_edges(graph, np.zeros(graph.vertices, dtype=np.int32))
    block = mlgp(boundary, 8, 0)
    everything = np.ones(len(boundary), dtype=np.bool_)
    packets = make_packets(boundary, block, everything, vertices=graph.vertices, workers=2)
    assert exchange_seconds(packets, RATES[0], 2) == 0.0


@pytest.mark.parametrize("banks", BANKS_OF_SWITCHES)
def test_more_additions_need_fewer_passes(by_weight, banks):
    boundary = boundary_edges(GRAPH, by_weight[0.0].assignment)
    block = np.ones(len(boundary), dtype=np.int32)
    everything = np.ones(len(boundary), dtype=np.bool_)
    packets = make_packets(boundary, block, everything, vertices=GRAPH.vertices, workers=WORKERS)
    sent = len(set(boundary.source.tolist()))
    seconds = exchange_seconds(packets, Rates(1e12, 1.0, float(banks)), WORKERS)
    assert seconds == pytest.approx(max(0, len(boundary) / banks - sent), abs=1e-6)


def entries(plan):
    return len(plan.switch.entry_block)


def test_of_the_weights_whose_plans_fit_the_quickest_is_taken(by_weight):
    """A quick loop, so that the weight with the most entries would be taken."""
    rates = RATES[2]
    seconds = {weight: counted(plan, rates) for weight, plan in by_weight.items()}
    needed = sorted({entries(plan) for plan in by_weight.values()})
    assert entries(planned(rates=rates)) == needed[-1]
    for room in needed:
        found = planned(rates=rates, fits=lambda plan, room=room: entries(plan) <= room)
        fitting = [each for weight, each in seconds.items() if entries(by_weight[weight]) <= room]
        assert entries(found) <= room
        assert counted(found, rates) == pytest.approx(min(fitting))


def test_where_nothing_fits_the_plan_has_the_fewest_entries(by_weight):
    found = planned(rates=RATES[2], fits=lambda _: False)
    assert entries(found) == min(map(entries, by_weight.values()))
