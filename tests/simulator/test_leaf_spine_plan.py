"""Plans over leaves and spines: what is on every link, from the planner without the models."""

from collections import Counter
from functools import cache
from importlib import import_module

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from switchgnn.host.base.pace import CongestionRule
from switchgnn.host.direct import copy_schedules, rows_per_pair
from switchgnn.host.wire.header import LANES, Kind
from switchgnn.lab.simulator.request import (
    LEAF,
    SPINE,
    LeafSpineOptions,
    NetworkOptions,
    SimulatorError,
)
from switchgnn.lab.simulator.setup import host_setup, plan_setup
from switchgnn.lab.simulator.simulation import run_simulation
from switchgnn.planner import Direction, load_graph
from switchgnn.planner.costs.report import predict_leaf_spine
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine

from . import scenes, test_plan
from .scenes import FRAGMENT, copies_of_plan, features_at_switch

FORWARD = Direction.FORWARD
WORKERS = 7
KINDS = test_plan.PLAIN
STRAWMAN = {"blocks": "strawman", "order": "random"}
# No marks: notices depend on the moment.
QUIET = NetworkOptions(ecn_threshold=None)


def planned(graph, workers=WORKERS, **kind):
    return scenes.planned(graph, workers=workers, **kind)


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
        getattr(run, f"{what}_{direction}")
        for what in ("frames", "bytes", "features")
        for direction in ("up", "down")
    ] + [run.sums_down, run.sums]


NETWORKS = st.builds(
    NetworkOptions,
    bandwidth=st.sampled_from([10.0, 1e3, 1e5]),
    delay=st.sampled_from([0.0, 0.5, 50.0]),
    ecn_threshold=st.sampled_from([None, 0, 1, 5, 50]),
    window=st.sampled_from([1, 2, 3, 5, 16, 100]),
    congestion=st.sampled_from(CongestionRule),
    recirculation_rate=st.sampled_from([None, 1e5, 1e9]),
)
both_completions = pytest.mark.parametrize("completion", [SPINE, LEAF])


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def plan(request, graph):
    return planned(graph, **request.param)


def on_network(plan, fragments, network, options=QUIET, *, whole_features=False, **more):
    setup = plan_setup(plan, fragments, whole_features=whole_features, leaf_spine=network)
    return run_simulation(setup, options, leaf_spine=network, **more)


def predicted(plan, network):
    parts = split_for_leaf_spine(plan, network.attach(plan.manifest.workers))
    prediction = predict_leaf_spine(parts, plan.manifest.direction(FORWARD))
    return np.array(prediction.partial_sums), np.array(prediction.sums)


def check_against_star(run, plan, fragments):
    """Hosts' links have the same, and what crosses is a contribution more at a second switch."""
    star = run_simulation(plan_setup(plan, fragments), QUIET)
    assert on_host_links(run) == on_host_links(star)
    assert run.contributions == star.contributions + sum(run.inside.sums_up)
    assert run.max_slots <= plan.manifest.slots
    return star


def frames_between(plan, leaves, spines):
    """Parts up and frames of sums down, int64[leaves, spines], and frames that leaves make."""
    up, waiting = np.zeros((leaves, spines), int), Counter()
    for part in plan.workers:
        home = int(leaf_of(part.worker, leaves))
        block = np.repeat(np.arange(plan.manifest.blocks), np.diff(part.receive_indptr))
        for at, vertex in enumerate(part.receive_vertex.tolist()):
            senders = part.neighbour_worker[slice(*part.neighbour_indptr[at : at + 2])]
            adding = np.unique(leaf_of(senders.astype(int), leaves))
            crosses = adding.tolist() != [home]
            waiting[block[at], part.worker, home, vertex % spines if crosses else None] += 1
            up[adding, vertex % spines] += crosses
    down, local = np.zeros_like(up), 0
    for (_, _, home, spine), sums in waiting.items():
        frames = -(-sums // plan.manifest.rows)
        if spine is None:
            local += frames
        else:
            down[home, spine] += frames
    return up, down, local


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("leaves", [1, 3, 7])
@pytest.mark.parametrize(
    "kind", [each for name, each in test_plan.KINDS.items() if name != "strawman"]
)
def test_parts_go_up_one_by_one_and_bundles_come_down(graph, kind, leaves, whole):
    plan, network = planned(graph, **kind), LeafSpineOptions(leaves, 3)
    record, rows = plan.manifest.direction(FORWARD), plan.manifest.rows
    # A row of 12 numbers goes up in a frame of 16.
    lanes = (32, 16 if rows == 1 else 12)
    here, star = (
        plan_setup(plan, 2, leaf_spine=where, whole_features=whole, lanes=lanes)
        for where in (network, None)
    )
    run, star = run_simulation(here, QUIET, leaf_spine=network), run_simulation(star, QUIET)
    up, down, local = frames_between(plan, leaves, 3)
    said = predict_leaf_spine(split_for_leaf_spine(plan, network.attach(WORKERS)), record, rows)
    assert np.array_equal((up, down), (said.partial_sums, said.sums))
    # DONE of each leaf goes to the first spine, once per block and fragment.
    control = np.zeros_like(up)
    control[:, 0] = 88 * len(record.block_numbers) * (2 - whole)
    both = 2 * (60 + 16 * (rows > 1)) + 4 * rows * sum(lanes)
    assert np.array_equal(np.reshape(run.inside.sums_up, up.shape), 2 * up)
    assert np.array_equal(np.reshape(run.inside.bytes_up, up.shape), (188 + 124) * up + control)
    assert np.array_equal(np.reshape(run.inside.bytes_down, up.shape), both * down + control)
    assert sum(run.inside.features_up) == 0
    assert sum(run.sums_down) == 2 * (down.sum() + local)
    assert sum(run.sum_bytes_down) == both * (down.sum() + local)
    assert (run.features_up, run.bytes_up, run.sums) == (star.features_up, star.bytes_up, star.sums)
    assert run.contributions == star.contributions + 2 * up.sum()
    assert run.max_slots <= plan.manifest.slots


def test_leaves_that_complete_sums_take_no_bundles(graph):
    with pytest.raises(SimulatorError, match="take no bundles"):
        on_network(planned(graph, rows=2), 1, LeafSpineOptions(3, 2, LEAF))


@pytest.mark.parametrize("leaves", [1, 2, 3, 7])
def test_links_carry_what_the_plan_says_where_leaves_complete(plan, leaves):
    spines, fragments = 3, 2
    run = on_network(plan, fragments, LeafSpineOptions(leaves, spines, LEAF))
    pairs = fragments * partial_sums(plan, leaves)
    up = np.array(run.inside.sums_up).reshape(leaves, spines)
    assert np.array_equal(up.sum(axis=1), pairs.sum(axis=0))
    assert sum(run.inside.features_up) == 0
    # DONE of each leaf goes to the first spine, once per block and fragment.
    barriers = fragments * len(plan.manifest.direction(FORWARD).block_numbers)
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
    assert np.array_equal(down.sum(axis=0), up.sum(axis=0))
    star = check_against_star(run, plan, fragments)
    if leaves == 1:
        assert (run.max_slots, run.passes) == (star.max_slots, star.passes)


def passes_of(leaf, plan, order):
    """The passes of one fragment at a leaf; `order`: (worker, index among all packets)."""
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
                # A sum is complete: what is left of the banks takes another pass.
                passes += left and bank != banks[-1]
    return passes


@pytest.mark.parametrize("leaves", [2, 3])
def test_each_leaf_makes_the_passes_of_its_own_tables(plan, leaves):
    """Played with those tables in the order of arrival; a part takes one pass at its spine."""
    network = LeafSpineOptions(leaves, 2)
    run = on_network(plan, 1, network, trace=True)
    parts = split_for_leaf_spine(plan, network.attach(WORKERS))
    came = [each[1:] for each in features_at_switch(run)]
    assert run.passes - sum(run.inside.sums_up) == sum(
        passes_of(leaf, plan, [each for each in came if each[0] in leaf.below])
        for leaf in parts.leaves
    )


@pytest.mark.parametrize("rows", [1, 2, 4, 8])
def test_a_star_makes_the_passes_of_its_tables(graph, rows):
    """A sum that waits on its shelf ends a pass as one that leaves."""
    plan = planned(graph, rows=rows)
    run = run_simulation(plan_setup(plan, 1), QUIET, trace=True)
    assert run.passes == passes_of(plan, plan, [each[1:] for each in features_at_switch(run)])


@pytest.mark.parametrize("entries", [1, 100])
def test_a_plan_may_be_shared_out_some_blocks_at_a_time(graph, entries, monkeypatch):
    plan, network = planned(graph, directions="both"), LeafSpineOptions(3, 2)
    at_once = plan_setup(plan, 1, leaf_spine=network).arrays
    # The package has a function of the name of the module.
    monkeypatch.setattr(import_module("switchgnn.lab.simulator.setup"), "_ENTRIES_SHARED", entries)
    in_groups = plan_setup(plan, 1, leaf_spine=network).arrays
    assert at_once.keys() == in_groups.keys()
    assert all(np.array_equal(at_once[name], in_groups[name]) for name in at_once)


@both_completions
@pytest.mark.parametrize("kind", [*KINDS.values(), STRAWMAN])
def test_whole_features_need_the_slots_of_a_fragment(graph, kind, completion):
    """All fragments together: as many frames, a slot for all of them, and one barrier."""
    plan, fragments = planned(graph, **kind), 3
    network = LeafSpineOptions(3, 2, completion)
    apart = on_network(plan, fragments, network)
    run = on_network(plan, fragments, network, whole_features=True)
    assert run.features_up == apart.features_up
    assert run.max_slots <= plan.manifest.slots
    if kind is STRAWMAN:
        return
    assert sum(run.inside.sums_up) == sum(apart.inside.sums_up)
    assert (run.sums_down, run.contributions) == (apart.sums_down, apart.contributions)
    barriers = len(plan.manifest.direction(FORWARD).block_numbers)
    assert sum(run.inside.frames_up) - sum(run.inside.sums_up) == 3 * barriers


def test_a_row_goes_over_the_spine_that_its_number_leads_to(graph):
    """All of its partial sums, in every fragment; and a spine has its share of the rows."""
    leaves, spines = 3, 4
    network = LeafSpineOptions(leaves, spines, LEAF)
    sums = {
        ((each.worker - WORKERS) % (leaves * spines) % spines, each.id)
        for each in on_network(planned(graph, slots=4_000), 2, network, trace=True).trace
        if each.worker >= WORKERS and each.kind == Kind.SUM
    }
    assert len(sums) > 200
    assert all(spine == mixed(row) % spines for spine, row in sums)
    share = np.bincount([spine for spine, _ in sums]) / len(sums)
    assert share == pytest.approx(np.full(spines, 1 / spines), abs=0.08)


@pytest.mark.parametrize("leaves", [1, 3])
def test_hosts_alone_send_between_leaves_what_other_leaves_need(graph, leaves):
    spines, fragments = 4, 3
    copies = rows_per_pair(copy_schedules(graph, planned(graph).assignment, workers=WORKERS))
    options = NetworkOptions()
    setup = host_setup(copies, LANES * fragments, options.pace, FRAGMENT)
    run = run_simulation(setup, options, leaf_spine=LeafSpineOptions(leaves, spines))
    leaf = leaf_of(np.arange(WORKERS), leaves)
    data, acks = np.zeros((2, leaves, spines), dtype=np.int64)
    for sender, receiver in zip(*np.nonzero(leaf[:, None] != leaf), strict=True):
        frames = fragments * copies[sender, receiver]
        data[leaf[sender], mixed(int(sender) << 32 | int(receiver)) % spines] += frames
        answers = mixed(int(receiver) << 32 | int(sender)) % spines
        acks[leaf[receiver], answers] += -(-frames // 8)
    assert np.array_equal(np.reshape(run.inside.features_up, data.shape), data)
    assert np.array_equal(np.reshape(run.inside.bytes_up, data.shape), 188 * data + 60 * acks)
    assert sum(run.inside.bytes_down) == sum(run.inside.bytes_up)
    assert on_host_links(run) == on_host_links(run_simulation(setup, options))


@both_completions
@pytest.mark.parametrize("slots", [8, 40, 400])
def test_the_strawmans_contributions_all_arrive(graph, slots, completion):
    plan = planned(graph, **STRAWMAN, slots=slots)
    run = on_network(plan, 2, LeafSpineOptions(3, 2, completion), NetworkOptions(), trace=True)
    got = np.zeros(len(plan.switch.result_expected), dtype=np.int64)
    for each in run.trace:
        if not each.at_switch and each.kind in (Kind.SUM, Kind.FEATURE):
            got[each.id] += each.count
            assert each.worker == plan.switch.result_worker[each.id]
    assert np.array_equal(got, 2 * plan.switch.result_expected.astype(np.int64))
    assert run.max_slots <= slots
    star = run_simulation(plan_setup(plan, 2), NetworkOptions())
    assert run.features_up == star.features_up
    # What is added at a second switch is a contribution there.
    across = sum(run.inside.sums_up) + sum(run.inside.features_up)
    assert run.contributions == star.contributions + across
    assert (run.overflowed > 0) == (slots < 400)


# The same examples in every run; a simulation is a process.
@settings(
    deadline=None, derandomize=True, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    *(NETWORKS, st.integers(2, 9), st.integers(1, 9), st.integers(1, 5)),
    *(st.sampled_from([SPINE, LEAF]), st.sampled_from([*KINDS.values(), STRAWMAN])),
    st.integers(0, 10**6),
)
def test_no_network_changes_what_is_sent(options, workers, leaves, spines, completion, kind, seed):
    """Whatever rates, windows and marks, nobody waits for ever and the counts are the same."""
    rng = np.random.default_rng(seed)
    graph = load_graph(f"random:{rng.integers(35, 150)}:{rng.integers(50, 500)}:{seed}")
    plan = planned(graph, workers, **kind)
    network = LeafSpineOptions(min(leaves, workers), spines, completion)
    run = on_network(plan, 1, network, options)
    assert run.features_up == plan.manifest.directions["forward"].prediction.packets_up
    if kind is not STRAWMAN:
        assert run.sums_down == plan.manifest.directions["forward"].prediction.packets_down
        if completion == SPINE:
            assert run.inside.sums_up == tuple(np.ravel(predicted(plan, network)[0]))
        else:
            assert sum(run.inside.sums_up) == partial_sums(plan, network.leaves).sum()
    assert run.max_slots <= plan.manifest.slots
    copies = copies_of_plan(plan)
    run = run_simulation(
        host_setup(copies, LANES, options.pace, FRAGMENT), options, leaf_spine=network
    )
    assert run.features_down == tuple(copies.sum(axis=0))


@cache
def over(switches):
    graph = load_graph("random:300:1500:1")
    return planned(graph, blocks=f"destination-cover{switches}", send="cover", slots=8)


@both_completions
def test_blocks_over_leaves_and_spines_stay_within_the_slots_of_each(completion):
    network = LeafSpineOptions(4, 3, completion)
    for_one, plan = over(""), over(":4:3" if completion == SPINE else ":4:0")
    assert np.bincount(plan.switch.result_block).max() > 8
    run, before = (on_network(each, 2, network) for each in (plan, for_one))
    assert run.max_slots <= 8
    assert run.sums == before.sums
    assert plan.manifest.blocks < for_one.manifest.blocks
    assert run.seconds < before.seconds
    if completion == SPINE:
        up, _ = predicted(plan, network)
        assert np.array_equal(np.reshape(run.inside.sums_up, up.shape), 2 * up)
