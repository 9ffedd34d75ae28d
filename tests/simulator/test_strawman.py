# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The strawman's slots, against the planner's game with the same order of arrivals."""

import numpy as np
import pytest

from switchgnn.host.wire.header import Kind
from switchgnn.lab.simulator import NetworkOptions, plan_setup, run_simulation
from switchgnn.lab.simulator.setup import Setup
from switchgnn.planner import build_plan, load_graph
from switchgnn.planner.costs.bounds import _play

from .scenes import features_at_switch

WORKERS = 6


@pytest.fixture(scope="module")
def setup():
    graph = load_graph("random:400:4000:3")
    plan = build_plan(
        graph, workers=WORKERS, slots=100, program="0" * 64, blocks="strawman", order="random"
    )
    return plan_setup(plan, 1)


def with_pools(setup, pools):
    return Setup(setup.workers, False, setup.arrays, pools=pools)


def played(setup, order, slots):
    """Sums and overflows of each destination, when packets arrive in that order."""
    arrays = setup.arrays
    starts, lengths = arrays["packet_start"].astype(np.int64), arrays["packet_length"]
    # The game wants the contributions packet by packet.
    rows = [
        arrays["contribution"][start : start + length] & 0x7FFFFFFF
        for start, length in zip(starts, lengths, strict=True)
    ]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    fan_in = arrays["row_expected"].astype(np.int64)
    return _play(np.array(order), indptr, np.concatenate(rows).astype(np.int32), fan_in, slots)


@pytest.mark.parametrize("slots", [1, 10, 100, 250, 400])
@pytest.mark.parametrize("window", [4, 512])
def test_overflows_are_those_of_the_planners_game(setup, slots, window):
    """One pool, as the planner has it; the loop takes no time, so packets come one by one."""
    options = NetworkOptions(window=window, ecn_threshold=None)
    run = run_simulation(with_pools(setup, (slots,)), options, trace=True)
    order = [packet for _, _, packet in features_at_switch(run)]
    sums, overflowed = played(setup, order, slots)
    assert (run.sums, run.overflowed) == (sums.sum(), overflowed.sum())
    came = {Kind.SUM: np.zeros(len(sums), int), Kind.FEATURE: np.zeros(len(sums), int)}
    for each in run.trace:
        if not each.at_switch and each.kind in came:
            came[each.kind][each.id] += 1
    assert np.array_equal(came[Kind.SUM], sums)
    assert np.array_equal(came[Kind.FEATURE], overflowed)
    assert run.max_slots <= slots


def test_the_order_of_arrival_matters(setup):
    """Another order than the one that was simulated is found out."""
    run = run_simulation(with_pools(setup, (50,)), NetworkOptions(), trace=True)
    order = [packet for _, _, packet in features_at_switch(run)]
    _, overflowed = played(setup, order[::-1], 50)
    assert run.overflowed != overflowed.sum()


def test_eight_pools_overflow_about_as_much_as_one(setup):
    one, eight = (
        run_simulation(with_pools(setup, p), NetworkOptions()) for p in ((96,), (12,) * 8)
    )
    assert eight.overflowed == pytest.approx(one.overflowed, rel=0.1)
    assert eight.contributions == one.contributions
