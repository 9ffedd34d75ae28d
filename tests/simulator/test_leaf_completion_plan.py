# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The variant in which leaves complete sums: what is on every link, without the models."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from switchgnn.host.wire.header import Kind
from switchgnn.lab.simulator import (
    LEAF,
    LeafSpineOptions,
    NetworkOptions,
    plan_setup,
    run_simulation,
)
from switchgnn.planner import load_graph

from .leaf_spine_plans import (
    KINDS,
    NETWORKS,
    QUIET,
    STRAWMAN,
    WORKERS,
    leaf_of,
    mixed,
    on_host_links,
    partial_sums,
    planned,
)


@pytest.fixture(scope="module")
def graph():
    return load_graph("random:300:1500:1")


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def plan(request, graph):
    return planned(graph, **request.param)


@pytest.mark.parametrize("leaves", [1, 2, 3, 7])
def test_links_carry_what_the_plan_says(plan, leaves):
    spines, fragments = 3, 2
    setup = plan_setup(plan, fragments)
    run = run_simulation(setup, QUIET, leaf_spine=LeafSpineOptions(leaves, spines, LEAF))
    pairs = fragments * partial_sums(plan, leaves)
    up = np.array(run.inside.sums_up).reshape(leaves, spines)
    assert np.array_equal(up.sum(axis=1), pairs.sum(axis=0))
    assert sum(run.inside.features_up) == 0
    # DONE of each leaf goes to the first spine, once per block and fragment.
    barriers = setup.blocks * fragments
    assert run.barriers == barriers
    control = np.zeros((leaves, spines), dtype=np.int64)
    control[:, 0] = barriers
    assert np.array_equal(np.reshape(run.inside.frames_up, up.shape), up + control)
    assert np.array_equal(np.reshape(run.inside.bytes_up, up.shape), 188 * up + 88 * control)
    down = np.reshape(run.inside.frames_down, up.shape) - control
    home = leaf_of(np.arange(WORKERS), leaves)
    assert np.array_equal(
        down.sum(axis=1), np.bincount(home, weights=pairs.sum(axis=1), minlength=leaves)
    )
    # A spine sends on what it gets.
    assert np.array_equal(down.sum(axis=0), up.sum(axis=0))
    star = run_simulation(setup, QUIET)
    assert on_host_links(run) == on_host_links(star)
    assert run.contributions == star.contributions + pairs.sum()
    assert run.max_slots <= plan.manifest.slots
    if leaves == 1:
        assert (run.max_slots, run.passes) == (star.max_slots, star.passes)


@pytest.mark.parametrize("kind", [*KINDS.values(), STRAWMAN])
def test_whole_features_need_the_slots_of_a_fragment(graph, kind):
    """All fragments together: as many frames, a slot for all of them, and one barrier."""
    plan, fragments = planned(graph, **kind), 3
    network = LeafSpineOptions(3, 2, LEAF)
    apart = run_simulation(plan_setup(plan, fragments), QUIET, leaf_spine=network)
    setup = plan_setup(plan, fragments, whole_features=True)
    run = run_simulation(setup, QUIET, leaf_spine=network)
    assert run.features_up == apart.features_up
    assert run.max_slots <= plan.manifest.slots
    if kind is STRAWMAN:
        return
    assert sum(run.inside.sums_up) == fragments * partial_sums(plan, 3).sum()
    assert (run.sums_down, run.contributions) == (apart.sums_down, apart.contributions)
    barriers = setup.blocks
    assert sum(run.inside.frames_up) - sum(run.inside.sums_up) == 3 * barriers


def test_a_row_goes_over_the_spine_that_its_number_leads_to(graph):
    """All of its partial sums, in every fragment; and a spine has its share of the rows."""
    leaves, spines = 3, 4
    run = run_simulation(
        plan_setup(planned(graph, slots=4_000), 2),
        QUIET,
        leaf_spine=LeafSpineOptions(leaves, spines, LEAF),
        trace=True,
    )
    sums = {
        ((each.worker - WORKERS) % (leaves * spines) % spines, each.id)
        for each in run.trace
        if each.worker >= WORKERS and each.kind == Kind.SUM
    }
    assert len(sums) > 200
    assert all(spine == mixed(row) % spines for spine, row in sums)
    share = np.bincount([spine for spine, _ in sums]) / len(sums)
    assert share == pytest.approx(np.full(spines, 1 / spines), abs=0.08)


def test_every_sum_comes_once_a_fragment_and_is_complete(plan):
    run = run_simulation(
        plan_setup(plan, 2), NetworkOptions(), leaf_spine=LeafSpineOptions(3, 2, LEAF), trace=True
    )
    came = [each for each in run.trace if each.kind == Kind.SUM and not each.at_switch]
    expected = plan.switch.result_expected
    assert sorted(each.id for each in came) == sorted([*range(len(expected))] * 2)
    assert all(each.count == expected[each.id] for each in came)
    assert all(each.worker == plan.switch.result_worker[each.id] for each in came)


@pytest.mark.parametrize("slots", [8, 40, 400])
def test_the_strawmans_contributions_all_arrive(graph, slots):
    plan = planned(graph, **STRAWMAN, slots=slots)
    setup = plan_setup(plan, 2)
    run = run_simulation(
        setup, NetworkOptions(), leaf_spine=LeafSpineOptions(3, 2, LEAF), trace=True
    )
    got = np.zeros(len(plan.switch.result_expected), dtype=np.int64)
    for each in run.trace:
        if not each.at_switch and each.kind in (Kind.SUM, Kind.FEATURE):
            got[each.id] += each.count
            assert each.worker == plan.switch.result_worker[each.id]
    assert np.array_equal(got, 2 * plan.switch.result_expected.astype(np.int64))
    assert run.max_slots <= slots
    star = run_simulation(setup, NetworkOptions())
    assert run.features_up == star.features_up
    # What is added at the other leaf is a contribution there.
    across = sum(run.inside.sums_up) + sum(run.inside.features_up)
    assert run.contributions == star.contributions + across
    assert (run.overflowed > 0) == (slots < 400)


# The same examples in every run; a simulation is a process.
@settings(
    deadline=None, derandomize=True, max_examples=10, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    NETWORKS,
    st.integers(2, 9),
    st.integers(1, 9),
    st.integers(1, 5),
    st.sampled_from([*KINDS.values(), STRAWMAN]),
    st.integers(0, 10**6),
)
def test_no_network_changes_what_is_sent(options, workers, leaves, spines, kind, seed):
    """Whatever rates, windows and marks, nobody waits for ever and the counts are the same."""
    rng = np.random.default_rng(seed)
    graph = load_graph(f"random:{rng.integers(35, 150)}:{rng.integers(50, 500)}:{seed}")
    plan = planned(graph, workers, **kind)
    network = LeafSpineOptions(min(leaves, workers), spines, LEAF)
    run = run_simulation(plan_setup(plan, 1), options, leaf_spine=network)
    assert run.features_up == plan.manifest.directions["forward"].prediction.packets_up
    if kind is not STRAWMAN:
        assert run.sums_down == plan.manifest.directions["forward"].prediction.packets_down
        assert sum(run.inside.sums_up) == partial_sums(plan, network.leaves).sum()
    assert run.max_slots <= plan.manifest.slots
