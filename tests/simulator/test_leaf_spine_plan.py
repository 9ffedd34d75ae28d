# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Plans over leaves and spines: what is on every link, worked out without the models."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from switchgnn.host.direct import copy_schedules, rows_per_pair
from switchgnn.host.wire.header import Kind
from switchgnn.planner import build_plan, load_graph
from switchgnn.simulator import (
    LeafSpine,
    NetworkOptions,
    copies_of_plan,
    host_setup,
    plan_setup,
    run_simulation,
)

PROGRAM = "0" * 64
WORKERS = 7
KINDS = {
    "paper": {},
    "cover": {"blocks": "destination-cover", "send": "cover"},
    "one block": {"slots": 4_000, "order": "peel"},
    "narrow": {"slots": 8},
}
STRAWMAN = {"blocks": "strawman", "order": "random"}
# No marks: notices depend on the moment.
QUIET = NetworkOptions(ecn_threshold=None)


@pytest.fixture(scope="module")
def graph():
    return load_graph("random:300:1500:1")


def planned(graph, workers=WORKERS, **kind):
    return build_plan(graph, **{"workers": workers, "slots": 64, "program": PROGRAM, **kind})


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def plan(request, graph):
    return planned(graph, **request.param)


def leaf_of(worker, leaves, workers=WORKERS):
    """An equal share to each, in a row, the larger shares where the remainder falls."""
    starts = -(-np.arange(leaves) * workers // leaves)
    return np.searchsorted(starts, worker, side="right") - 1


def partial_sums(plan, leaves):
    """How many sums each worker awaits of which leaf: int64[W, leaves], none of its own."""
    workers = plan.manifest.workers
    pairs = np.zeros((workers, leaves), dtype=np.int64)
    for part in plan.workers:
        row = np.repeat(np.arange(len(part.receive_vertex)), np.diff(part.neighbour_indptr))
        leaf = leaf_of(part.neighbour_worker.astype(np.int64), leaves, workers)
        different = np.unique(np.column_stack([row, leaf]), axis=0)
        pairs[part.worker] = np.bincount(different[:, 1], minlength=leaves)
        pairs[part.worker, leaf_of(part.worker, leaves, workers)] = 0
    return pairs


def mixed(key):
    """SplitMix64, in whole numbers of Python."""
    mask = (1 << 64) - 1
    key = (key + 0x9E3779B97F4A7C15) & mask
    key = ((key ^ (key >> 30)) * 0xBF58476D1CE4E5B9) & mask
    key = ((key ^ (key >> 27)) * 0x94D049BB133111EB) & mask
    return key ^ (key >> 31)


def on_host_links(run):
    return [
        getattr(run, f"{what}_{way}")
        for what in ("frames", "bytes", "features")
        for way in ("up", "down")
    ] + [run.sums_down, run.sums]


@pytest.mark.parametrize("leaves", [1, 2, 3, 7])
def test_links_carry_what_the_plan_says(plan, leaves):
    spines, fragments = 3, 2
    setup = plan_setup(plan, fragments)
    run = run_simulation(setup, QUIET, leaf_spine=LeafSpine(leaves, spines))
    pairs = fragments * partial_sums(plan, leaves)
    up = np.array(run.inside.sums_up).reshape(leaves, spines)
    assert np.array_equal(up.sum(axis=1), pairs.sum(axis=0))
    assert sum(run.inside.features_up) == 0
    # DONE of each leaf goes to the first spine, at the opening and once per block and fragment.
    barriers = 1 + setup.blocks * fragments
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
    network = LeafSpine(3, 2)
    apart = run_simulation(plan_setup(plan, fragments), QUIET, leaf_spine=network)
    setup = plan_setup(plan, fragments, whole_features=True)
    run = run_simulation(setup, QUIET, leaf_spine=network)
    assert run.features_up == apart.features_up
    assert run.max_slots <= plan.manifest.slots
    if kind is STRAWMAN:
        return
    assert sum(run.inside.sums_up) == fragments * partial_sums(plan, 3).sum()
    assert (run.sums_down, run.contributions) == (apart.sums_down, apart.contributions)
    barriers = 1 + setup.blocks
    assert sum(run.inside.frames_up) - sum(run.inside.sums_up) == 3 * barriers


def test_a_row_goes_over_the_spine_that_its_number_leads_to(graph):
    """All of its partial sums, in every fragment; and a spine has its share of the rows."""
    leaves, spines = 3, 4
    run = run_simulation(
        plan_setup(planned(graph, slots=4_000), 2),
        QUIET,
        leaf_spine=LeafSpine(leaves, spines),
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
        plan_setup(plan, 2), NetworkOptions(), leaf_spine=LeafSpine(3, 2), trace=True
    )
    came = [each for each in run.trace if each.kind == Kind.SUM and not each.at_switch]
    expected = plan.switch.result_expected
    assert sorted(each.id for each in came) == sorted([*range(len(expected))] * 2)
    assert all(each.count == expected[each.id] for each in came)
    assert all(each.worker == plan.switch.result_worker[each.id] for each in came)


@pytest.mark.parametrize("leaves", [1, 3])
def test_hosts_alone_send_between_racks_what_other_racks_need(graph, leaves):
    spines, fragments = 4, 3
    plan = planned(graph)
    copies = rows_per_pair(copy_schedules(graph, plan.assignment, workers=WORKERS))
    options = NetworkOptions()
    setup = host_setup(copies, fragments, options.pace)
    run = run_simulation(setup, options, leaf_spine=LeafSpine(leaves, spines))
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
    setup = plan_setup(plan, 2)
    run = run_simulation(setup, NetworkOptions(), leaf_spine=LeafSpine(3, 2), trace=True)
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


NETWORKS = st.builds(
    NetworkOptions,
    bandwidth=st.sampled_from([10.0, 1e3, 1e5]),
    delay=st.sampled_from([0.0, 0.5, 50.0]),
    ecn_threshold=st.sampled_from([None, 0, 1, 5, 50]),
    window=st.sampled_from([1, 2, 3, 5, 16, 100]),
    congestion_control=st.booleans(),
    recirculation_rate=st.sampled_from([None, 1e5, 1e9]),
)


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
    network = LeafSpine(min(leaves, workers), spines)
    run = run_simulation(plan_setup(plan, 1), options, leaf_spine=network)
    assert run.features_up == plan.manifest.directions["forward"].prediction.packets_up
    if kind is not STRAWMAN:
        assert run.sums_down == plan.manifest.directions["forward"].prediction.packets_down
        assert sum(run.inside.sums_up) == partial_sums(plan, network.leaves).sum()
    assert run.max_slots <= plan.manifest.slots
    copies = copies_of_plan(plan)
    run = run_simulation(host_setup(copies, 1, options.pace), options, leaf_spine=network)
    assert run.features_down == tuple(copies.sum(axis=0))


@pytest.mark.parametrize("system", ["plan", "hosts"])
def test_the_same_is_simulated_again(graph, system):
    plan = planned(graph)
    options = NetworkOptions(ecn_threshold=4, window=64, recirculation_rate=3e8)
    setup = plan_setup(plan, 2)
    if system == "hosts":
        setup = host_setup(copies_of_plan(plan), 2, options.pace)
    first, second = (
        replace(
            run_simulation(setup, options, leaf_spine=LeafSpine(3, 2), trace=True),
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
    setup = host_setup(copies, 1, options.pace)
    assert run_simulation(setup, options).max_port_queue_bytes == 188
    run = run_simulation(setup, options, leaf_spine=LeafSpine(2, 1))
    # When the last three come, 199 have left.
    assert run.max_port_queue_bytes == (3 * 200 - 199) * 188
    # One more is at the spine, and one on its way down.
    assert run.max_queue_bytes == pytest.approx(run.max_port_queue_bytes + 2 * 188)
