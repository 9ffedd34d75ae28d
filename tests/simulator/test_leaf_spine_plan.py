# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Plans over leaves and spines: what is on every link is what the planner predicts.

Spines complete the sums that cross them, as in the P4 program.
"""

from collections import Counter
from dataclasses import replace
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from switchgnn.host.direct import copy_schedules, rows_per_pair
from switchgnn.host.wire.header import LANES, Kind
from switchgnn.lab.simulator import (
    FRAGMENT,
    LeafSpineOptions,
    NetworkOptions,
    copies_of_plan,
    host_setup,
    plan_setup,
    run_simulation,
)
from switchgnn.planner import Direction, PlannerError, load_graph
from switchgnn.planner.plan.leaf_spine import predict_leaf_spine, split_for_leaf_spine

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

FORWARD = Direction.FORWARD


@pytest.fixture(scope="module")
def graph():
    return load_graph("random:300:1500:1")


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def plan(request, graph):
    return planned(graph, **request.param)


def on_network(plan, fragments, network, options=QUIET, **more):
    """Simulate a plan with the tables that the switches of that network have."""
    whole = more.pop("whole_features", False)
    setup = plan_setup(plan, fragments, whole_features=whole, leaf_spine=network)
    return run_simulation(setup, options, leaf_spine=network, **more)


def predicted(plan, network):
    """The planner's own count of partial sums and sums on each link, in one fragment."""
    parts = split_for_leaf_spine(plan, network.attach(plan.manifest.workers))
    prediction = predict_leaf_spine(parts, plan.manifest.direction(FORWARD))
    return np.array(prediction.partial_sums), np.array(prediction.sums)


@pytest.mark.parametrize("leaves", [1, 2, 3, 7])
def test_links_carry_what_the_planner_predicts(plan, leaves):
    network, fragments = LeafSpineOptions(leaves, 3), 2
    run = on_network(plan, fragments, network)
    up, down = (fragments * each for each in predicted(plan, network))
    assert np.array_equal(np.reshape(run.inside.sums_up, up.shape), up)
    assert sum(run.inside.features_up) == 0
    # DONE of each leaf goes to the first spine, once per block and fragment.
    barriers = np.zeros_like(up)
    barriers[:, 0] = fragments * len(plan.manifest.direction(FORWARD).block_numbers)
    for way, data in (("up", up), ("down", down)):
        frames, sent = (getattr(run.inside, f"{what}_{way}") for what in ("frames", "bytes"))
        assert np.array_equal(np.reshape(frames, up.shape), data + barriers)
        assert np.array_equal(np.reshape(sent, up.shape), 188 * data + 88 * barriers)
    star = run_simulation(plan_setup(plan, fragments), QUIET)
    assert on_host_links(run) == on_host_links(star)
    assert run.contributions == star.contributions + up.sum()
    assert run.max_slots <= plan.manifest.slots


def test_both_directions_are_as_predicted():
    directed = load_graph("karate")
    edges = directed.indices < np.repeat(np.arange(directed.vertices), np.diff(directed.indptr))
    kept = np.concatenate([[0], np.cumsum(edges)])[directed.indptr]
    half = replace(directed, indptr=kept, indices=directed.indices[edges])
    plan = planned(half, workers=4, slots=6, directions="both")
    network = LeafSpineOptions(2, 2)
    parts = split_for_leaf_spine(plan, network.attach(4))
    for direction in Direction:
        setup = plan_setup(plan, 1, direction, leaf_spine=network)
        run = run_simulation(setup, QUIET, leaf_spine=network)
        told = predict_leaf_spine(parts, plan.manifest.direction(direction))
        assert run.inside.sums_up == tuple(np.ravel(told.partial_sums))
        data = 188 * np.ravel(told.sums).sum()
        barriers = 88 * 2 * len(plan.manifest.direction(direction).block_numbers)
        assert sum(run.inside.bytes_down) == data + barriers


def passes_of(leaf, plan, order):
    """The passes of one fragment, when packets come to a leaf one by one in that order.

    Args:
        leaf: its part, of which only the tables are looked at.
        plan: what the packets are of.
        order: (worker, place among all packets).
    """
    switch, passes = leaf.switch, 0
    sent = [source for part in plan.workers for source in part.send_source.tolist()]
    blocks = [
        block
        for part in plan.workers
        for block, size in enumerate(np.diff(part.send_indptr).tolist(), 1)
        for _ in range(size)
    ]
    entries = {}
    for at, key in enumerate(zip(switch.entry_block, switch.entry_source, strict=True)):
        entries.setdefault(tuple(map(int, key)), []).append(at)
    counts = Counter()
    for _, packet in order:
        left = False
        for at in entries[blocks[packet], sent[packet]]:
            banks = np.flatnonzero(switch.entry_expected[at]).tolist()
            passes += 1
            for bank in banks:
                slot = blocks[packet], bank, int(switch.entry_slot[at, bank])
                counts[slot] += int(switch.entry_count[at])
                left = counts[slot] == switch.entry_expected[at, bank]
                # A sum leaves: what is left of the banks takes another pass.
                passes += left and bank != banks[-1]
    return passes


@pytest.mark.parametrize("leaves", [2, 3])
def test_each_leaf_makes_the_passes_of_its_own_tables(plan, leaves):
    """Played with those tables in the order of arrival; a part takes one pass at its spine."""
    network = LeafSpineOptions(leaves, 2)
    run = on_network(plan, 1, network, trace=True)
    parts = split_for_leaf_spine(plan, network.attach(WORKERS))
    passes = run.passes - sum(run.inside.sums_up)
    came = [
        (each.worker, each.id) for each in run.trace if each.at_switch and each.kind == Kind.FEATURE
    ]
    assert passes == sum(
        passes_of(leaf, plan, [each for each in came if each[0] in leaf.below])
        for leaf in parts.leaves
    )


@pytest.mark.parametrize("entries", [1, 100])
def test_a_plan_may_be_shared_out_some_blocks_at_a_time(graph, entries, monkeypatch):
    plan, network = planned(graph, directions="both"), LeafSpineOptions(3, 2)
    at_once = plan_setup(plan, 1, leaf_spine=network).arrays
    # The package has a function of the name of the module.
    module = import_module("switchgnn.lab.simulator.plan_setup")
    monkeypatch.setattr(module, "_ENTRIES_SHARED", entries)
    in_groups = plan_setup(plan, 1, leaf_spine=network).arrays
    assert at_once.keys() == in_groups.keys()
    assert all(np.array_equal(at_once[name], in_groups[name]) for name in at_once)


@pytest.mark.parametrize("kind", [*KINDS.values(), STRAWMAN])
def test_whole_features_need_the_slots_of_a_fragment(graph, kind):
    """All fragments together: as many frames, a slot for all of them, and one barrier."""
    plan, fragments = planned(graph, **kind), 3
    network = LeafSpineOptions(3, 2)
    apart = on_network(plan, fragments, network)
    run = on_network(plan, fragments, network, whole_features=True)
    assert run.features_up == apart.features_up
    assert run.max_slots <= plan.manifest.slots
    if kind is STRAWMAN:
        return
    assert run.inside.sums_up == apart.inside.sums_up
    assert (run.sums_down, run.contributions) == (apart.sums_down, apart.contributions)
    barriers = len(plan.manifest.direction(FORWARD).block_numbers)
    assert sum(run.inside.frames_up) - sum(run.inside.sums_up) == 3 * barriers


def test_a_destination_goes_to_the_spine_of_its_number(graph):
    """All of its parts and sums, in every fragment."""
    leaves, spines = 3, 4
    plan = planned(graph, slots=4_000)
    run = on_network(plan, 2, LeafSpineOptions(leaves, spines), trace=True)
    sums = {
        ((each.worker - WORKERS) % (leaves * spines) % spines, each.id)
        for each in run.trace
        if each.worker >= WORKERS and each.kind == Kind.SUM
    }
    vertex = plan.switch.result_vertex
    assert len(sums) > 200
    assert all(spine == vertex[row] % spines for spine, row in sums)


def test_every_sum_comes_once_a_fragment_and_is_complete(plan):
    run = on_network(plan, 2, LeafSpineOptions(3, 2), NetworkOptions(), trace=True)
    came = [each for each in run.trace if each.kind == Kind.SUM and not each.at_switch]
    expected = plan.switch.result_expected
    assert sorted(each.id for each in came) == sorted([*range(len(expected))] * 2)
    assert all(each.count == expected[each.id] for each in came)
    assert all(each.worker == plan.switch.result_worker[each.id] for each in came)


@pytest.mark.parametrize("leaves", [1, 3])
def test_hosts_alone_send_between_leaves_what_other_leaves_need(graph, leaves):
    spines, fragments = 4, 3
    plan = planned(graph)
    copies = rows_per_pair(copy_schedules(graph, plan.assignment, workers=WORKERS))
    options = NetworkOptions()
    setup = host_setup(copies, LANES * fragments, options.pace, FRAGMENT)
    run = run_simulation(setup, options, leaf_spine=LeafSpineOptions(leaves, spines))
    leaf = leaf_of(np.arange(WORKERS), leaves)
    data = np.zeros((leaves, spines), dtype=np.int64)
    acks = np.zeros((leaves, spines), dtype=np.int64)
    for sender, receiver in zip(*np.nonzero(leaf[:, None] != leaf), strict=True):
        frames = fragments * copies[sender, receiver]
        data[leaf[sender], mixed(int(sender) << 32 | int(receiver)) % spines] += frames
        # One for each eight.
        answers = mixed(int(receiver) << 32 | int(sender)) % spines
        acks[leaf[receiver], answers] += -(-frames // 8)
    assert np.array_equal(np.reshape(run.inside.features_up, data.shape), data)
    assert np.array_equal(np.reshape(run.inside.bytes_up, data.shape), 188 * data + 60 * acks)
    assert sum(run.inside.bytes_down) == sum(run.inside.bytes_up)
    assert on_host_links(run) == on_host_links(run_simulation(setup, options))


@pytest.mark.parametrize("slots", [8, 40, 400])
def test_the_strawmans_contributions_all_arrive(graph, slots):
    plan = planned(graph, **STRAWMAN, slots=slots)
    run = on_network(plan, 2, LeafSpineOptions(3, 2), NetworkOptions(), trace=True)
    got = np.zeros(len(plan.switch.result_expected), dtype=np.int64)
    for each in run.trace:
        if not each.at_switch and each.kind in (Kind.SUM, Kind.FEATURE):
            got[each.id] += each.count
            assert each.worker == plan.switch.result_worker[each.id]
    assert np.array_equal(got, 2 * plan.switch.result_expected.astype(np.int64))
    assert run.max_slots <= slots
    star = run_simulation(plan_setup(plan, 2), NetworkOptions())
    assert run.features_up == star.features_up
    # What is added at the spine is a contribution there.
    across = sum(run.inside.sums_up) + sum(run.inside.features_up)
    assert run.contributions == star.contributions + across
    assert (run.overflowed > 0) == (slots < 400)


# The same examples in every run; a simulation is a process.
@settings(
    deadline=None, derandomize=True, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
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
    network = LeafSpineOptions(min(leaves, workers), spines)
    run = on_network(plan, 1, network, options)
    assert run.features_up == plan.manifest.directions["forward"].prediction.packets_up
    if kind is not STRAWMAN:
        assert run.sums_down == plan.manifest.directions["forward"].prediction.packets_down
        assert run.inside.sums_up == tuple(np.ravel(predicted(plan, network)[0]))
    assert run.max_slots <= plan.manifest.slots
    copies = copies_of_plan(plan)
    run = run_simulation(
        host_setup(copies, LANES, options.pace, FRAGMENT), options, leaf_spine=network
    )
    assert run.features_down == tuple(copies.sum(axis=0))


def test_the_spines_parts_are_those_of_the_leaves_that_contribute(graph):
    """Counted in the plan: each sum with a source elsewhere takes a part of every leaf it has."""
    plan, leaves = planned(graph), 3
    run = on_network(plan, 1, LeafSpineOptions(leaves, 1))
    own = 0
    for part in plan.workers:
        home = leaf_of(part.worker, leaves)
        for low, high in pairwise(part.neighbour_indptr):
            sources = leaf_of(part.neighbour_worker[low:high].astype(int), leaves)
            own += home in sources and bool((sources != home).any())
    assert sum(run.inside.sums_up) == partial_sums(plan, leaves).sum() + own


@pytest.mark.parametrize("system", ["plan", "hosts"])
def test_the_same_is_simulated_again(graph, system):
    plan = planned(graph)
    options = NetworkOptions(ecn_threshold=4, window=64, recirculation_rate=3e8)
    network = LeafSpineOptions(3, 2)
    setup = plan_setup(plan, 2, leaf_spine=network)
    if system == "hosts":
        setup = host_setup(copies_of_plan(plan), 2 * LANES, options.pace, FRAGMENT)
    first, second = (
        replace(
            run_simulation(setup, options, leaf_spine=LeafSpineOptions(3, 2), trace=True),
            wall_seconds=0,
            peak_memory_bytes=0,
        )
        for _ in range(2)
    )
    assert first == second
    assert first.marked > 0


def test_queues_are_those_of_all_switches():
    """Three senders fill one uplink; each frame has a receiver whose queue is empty."""
    copies = np.zeros((6, 6), dtype=np.int64)
    copies[[0, 1, 2], [3, 4, 5]] = 200
    options = NetworkOptions(delay=0.0, ecn_threshold=None, congestion_control=False)
    setup = host_setup(copies, LANES, options.pace, FRAGMENT)
    assert run_simulation(setup, options).max_port_queue_bytes == 188
    run = run_simulation(setup, options, leaf_spine=LeafSpineOptions(2, 1))
    # When the last three come, 199 have left.
    assert run.max_port_queue_bytes == (3 * 200 - 199) * 188
    # One more is at the spine, and one on its way down.
    assert run.max_queue_bytes == pytest.approx(run.max_port_queue_bytes + 2 * 188)


def over(graph, leaves, spines, slots=8):
    blocks = f"destination-cover:{leaves}:{spines}"
    return planned(graph, blocks=blocks, send="cover", slots=slots)


@pytest.mark.parametrize("completion", ["spine", "leaf"])
def test_blocks_over_leaves_and_spines_stay_within_the_slots_of_each(graph, completion):
    leaves, spines = 4, 3
    network = LeafSpineOptions(leaves, spines, completion)
    for_one = planned(graph, blocks="destination-cover", send="cover", slots=8)
    plan = over(graph, leaves, spines if completion == "spine" else 0)
    assert np.bincount(plan.switch.result_block).max() > 8
    run, before = (on_network(each, 2, network) for each in (plan, for_one))
    assert run.max_slots <= 8
    assert run.sums == before.sums
    assert plan.manifest.blocks < for_one.manifest.blocks
    assert run.seconds < before.seconds
    if completion == "spine":
        up, _ = predicted(plan, network)
        assert np.array_equal(np.reshape(run.inside.sums_up, up.shape), 2 * up)


@pytest.mark.parametrize(
    ("network", "where"),
    [
        (None, "one switch"),
        (LeafSpineOptions(1, 1), "leaf 0"),
        (LeafSpineOptions(1, 1, "leaf"), "leaf 0"),
    ],
)
def test_blocks_too_large_for_other_switches_are_refused(graph, network, where):
    with pytest.raises(PlannerError, match=f"sums in {where}, for 8 slots"):
        plan_setup(over(graph, 4, 3), 2, leaf_spine=network)
