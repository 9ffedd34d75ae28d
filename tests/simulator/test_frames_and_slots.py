# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Slots of the strawman and of whole features, and frames of 8 to 256 numbers."""

from dataclasses import replace

import numpy as np
import pytest

from switchgnn.host.wire.header import Kind
from switchgnn.lab.simulator import NetworkOptions, SimulatorError, plan_setup, run_simulation
from switchgnn.lab.simulator.setup import Setup
from switchgnn.planner import Direction, PlannerError, build_plan, load_graph
from switchgnn.planner.costs.bounds import _play
from switchgnn.planner.lanes import fragment_lanes

from .scenes import Row, Sent, arrivals, features_at_switch, scene, sums_at_workers
from .test_by_hand import DELAY, FEATURE, OPENING, THERE
from .test_command import GRAPH, as_json, simulate

FRAGMENTS = 3
ROOM = 60


def together(setup, fragments):
    return replace(setup, fragments=1, together=fragments)


def test_fragments_follow_each_other_without_a_barrier():
    setup = together(scene(2, [Row(1, 1), Row(1, 1)], [Sent(0, [[0]]), Sent(0, [[1]])]), 2)
    run = run_simulation(setup, NetworkOptions(), opening=True, trace=True)
    # Packet 0 in two fragments, then packet 1; each adds to its own fragment of the sum.
    assert features_at_switch(run) == [(THERE + i * FEATURE, 0, i) for i in range(4)]
    came = THERE + FEATURE + DELAY
    assert sums_at_workers(run) == [(came + i * FEATURE, 1, i) for i in range(4)]
    assert run.finished == (came + 3 * FEATURE + OPENING,) * 2


def test_a_slot_is_taken_from_the_first_to_the_last_fragment():
    """Both workers send to one destination, then to the other; or in opposite orders."""
    rows = [Row(2, 2), Row(2, 2)]
    for second, most in (((0, 1), 1), ((1, 0), 2)):
        packets = [Sent(0, [[0]]), Sent(0, [[1]]), *(Sent(1, [[row]]) for row in second)]
        run = run_simulation(together(scene(3, rows, packets), FRAGMENTS), NetworkOptions())
        assert run.max_slots == most


@pytest.fixture(scope="module")
def graph():
    return load_graph("random:300:1500:1")


@pytest.mark.parametrize("slots", [16, 64, 4_000])
def test_as_many_frames_and_fewer_barriers(graph, slots):
    plan = build_plan(graph, workers=5, slots=slots, program="0" * 64)
    one_by_one, whole = (
        run_simulation(plan_setup(plan, FRAGMENTS, whole_features=it), NetworkOptions(), trace=True)
        for it in (False, True)
    )
    assert whole.features_up == one_by_one.features_up
    assert whole.sums_down == one_by_one.sums_down
    assert whole.contributions == one_by_one.contributions
    assert whole.max_slots <= slots
    blocks = len(plan.manifest.direction(Direction.FORWARD).block_numbers)
    for run, rounds in ((one_by_one, FRAGMENTS * blocks), (whole, blocks)):
        assert len(arrivals(run, Kind.ADVANCE, at_switch=False)) == 5 * rounds
        assert run.barriers == rounds


def game_of_fragments(setup, order, slots):
    """Sums and features that overflow, when the fragments arrive in that order; one pool."""
    arrays, taken = setup.arrays, {}
    added, seen = {}, {}
    sums, overflowed = 0, 0
    for fragment in order:
        packet, part = divmod(fragment, FRAGMENTS)
        start = int(arrays["packet_start"][packet])
        for word in arrays["contribution"][start : start + int(arrays["packet_length"][packet])]:
            row = int(word) & 0x7FFFFFFF
            key = row, part
            seen[key] = seen.get(key, 0) + 1
            last = seen[key] == arrays["row_expected"][row]
            if key in added:
                if last:
                    sums += 1
                    del added[key]
                    taken[row].remove(part)
                    if not taken[row]:
                        del taken[row]
            elif row not in taken and len(taken) == slots:
                overflowed += 1
            elif last:
                sums += 1
            else:
                added[key] = True
                taken.setdefault(row, set()).add(part)
    return sums, overflowed


@pytest.fixture(scope="module")
def crowded(graph):
    plan = build_plan(
        graph, workers=5, slots=ROOM, program="0" * 64, blocks="strawman", order="random"
    )
    return plan_setup(plan, FRAGMENTS, whole_features=True)


@pytest.mark.parametrize("slots", [1, ROOM, 1_000])
@pytest.mark.parametrize("window", [4, 512])
def test_the_strawmans_slots_hold_all_fragments(crowded, slots, window):
    setup = replace(crowded, pools=(slots,))
    run = run_simulation(setup, NetworkOptions(window=window, ecn_threshold=None), trace=True)
    order = [packet for _, _, packet in features_at_switch(run)]
    assert (run.sums, run.overflowed) == game_of_fragments(setup, order, slots)
    assert run.max_slots <= slots
    assert (run.overflowed == 0) == (slots == 1_000)


def test_the_command_counts_memory_by_whole_features():
    size = 4 * 602
    told = as_json(*GRAPH, "--system", "paper", "--memory", f"{16 * size}B", "--slot-features", 602)
    assert (told["slots"], told["memory_bytes"], told["slot_features"]) == (16, 16 * size, 602)
    fragment = as_json(*GRAPH, "--system", "paper", "--memory", f"{16 * 128}B")
    assert (fragment["slots"], fragment["slot_features"]) == (16, None)
    assert told["plan"] == fragment["plan"]
    assert told["communication_seconds"] < fragment["communication_seconds"]


def test_a_slot_that_is_too_narrow_is_refused():
    with pytest.raises(SimulatorError, match="A slot of 64 numbers does not hold a feature of 128"):
        simulate(*GRAPH, "--system", "paper", "--features", 128, "--slot-features", 64)


WORKERS = 6


@pytest.fixture(scope="module")
def strawman():
    graph = load_graph("random:400:4000:3")
    plan = build_plan(
        graph, workers=WORKERS, slots=100, program="0" * 64, blocks="strawman", order="random"
    )
    return plan_setup(plan, 1)


def with_pools(strawman, pools):
    return Setup(strawman.workers, False, strawman.arrays, pools=pools)


def played(strawman, order, slots):
    """Sums and overflows of each destination, when packets arrive in that order."""
    arrays = strawman.arrays
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
def test_overflows_are_those_of_the_planners_game(strawman, slots, window):
    """One pool, as the planner has it; the loop takes no time, so packets come one by one."""
    options = NetworkOptions(window=window, ecn_threshold=None)
    run = run_simulation(with_pools(strawman, (slots,)), options, trace=True)
    order = [packet for _, _, packet in features_at_switch(run)]
    sums, overflowed = played(strawman, order, slots)
    assert (run.sums, run.overflowed) == (sums.sum(), overflowed.sum())
    came = {Kind.SUM: np.zeros(len(sums), int), Kind.FEATURE: np.zeros(len(sums), int)}
    for each in run.trace:
        if not each.at_switch and each.kind in came:
            came[each.kind][each.id] += 1
    assert np.array_equal(came[Kind.SUM], sums)
    assert np.array_equal(came[Kind.FEATURE], overflowed)
    assert run.max_slots <= slots


# At 100 Gbit/s a byte takes 80 ps; frames of 64 and of 16 numbers.
WIDE, NARROW, CONTROL = (60 + 256) * 80, (60 + 64) * 80, 88 * 80


def test_the_last_fragment_is_as_narrow_as_it_can_be():
    setup = replace(
        scene(2, [Row(1, 1)], [Sent(0, [[0]])], fragments=2), lanes=fragment_lanes(80, 64)
    )
    run = run_simulation(setup, NetworkOptions(), trace=True)
    closed = 2 * (WIDE + DELAY) + 2 * (CONTROL + DELAY)
    assert features_at_switch(run) == [(WIDE + DELAY, 0, 0), (closed + NARROW + DELAY, 0, 0)]
    assert [at for at, *_ in sums_at_workers(run)] == [
        2 * (WIDE + DELAY),
        closed + 2 * (NARROW + DELAY),
    ]
    assert run.bytes_up == (316 + 124 + 2 * 88, 2 * 88)
    assert run.sum_bytes_down == (0, 316 + 124)
    assert run.barriers == 2


def test_fragments_that_travel_together_have_their_own_widths():
    setup = replace(
        scene(2, [Row(1, 1)], [Sent(0, [[0]])]), together=3, lanes=fragment_lanes(140, 64)
    )
    run = run_simulation(setup, NetworkOptions(), trace=True)
    at = [WIDE + DELAY, 2 * WIDE + DELAY, 2 * WIDE + NARROW + DELAY]
    assert features_at_switch(run) == [(when, 0, i) for i, when in enumerate(at)]
    assert run.sum_bytes_down == (0, 2 * 316 + 124)


def test_a_lost_sum_comes_again_as_wide():
    """The buffer of worker 2 has room for one of two sums of 64 numbers at a time."""
    rows = [Row(2, 2), Row(2, 2)]
    setup = replace(
        scene(3, rows, [Sent(0, [[0, 1]]), Sent(1, [[0, 1]])]), lanes=(64,), data_frame_bytes=316
    )
    run = run_simulation(setup, NetworkOptions(buffer=400), trace=True)
    assert (run.lost, run.sent_again) == (1, 1)
    assert run.sum_bytes_down == (0, 0, 2 * 316)
    assert [each.id for each in run.trace if each.kind == Kind.SUM] == [0, 1]


@pytest.mark.parametrize("lanes", [8, 32, 128])
def test_bytes_are_those_of_the_plans_packets(lanes):
    plan = build_plan(load_graph("random:300:1500:1"), workers=5, slots=64, program="0" * 64)
    fragments = fragment_lanes(140, lanes)
    run = run_simulation(plan_setup(plan, len(fragments), lanes=fragments), NetworkOptions())
    told = plan.manifest.direction(Direction.FORWARD)
    each = sum(60 + 4 * carried for carried in fragments)
    control = 88 * len(fragments) * len(told.block_numbers)
    down = np.array(told.prediction.packets_down) * each
    assert run.sum_bytes_down == tuple(down)
    # A worker's acknowledgements have 60 bytes, and come from the switch.
    acks = np.array(run.frames_down) - len(fragments) * len(told.block_numbers)
    acks -= np.array(run.sums_down)
    assert run.bytes_down == tuple(down + 60 * acks + control)
    assert run.bytes_up == tuple(np.array(told.prediction.packets_up) * each + control)


@pytest.mark.parametrize(("lanes", "banks"), [(8, 8), (32, 8), (64, 4), (128, 2), (256, 1)])
def test_a_pass_adds_to_as_many_slots_as_there_are_groups_of_banks(lanes, banks):
    told = as_json(*GRAPH, "--system", "paper", "--features", lanes, "--lanes", lanes)
    assert told["lanes"] == lanes
    assert told["contributions"] <= banks * told["passes"]
    # The same memory has fewer slots.
    assert told["memory_bytes"] == told["slots"] * 128 * (8 // banks)
    narrow = as_json(*GRAPH, "--system", "paper")
    assert told["slots"] == narrow["slots"] * banks // 8
    assert told["barriers"] == told["blocks"]


def test_auto_takes_the_fewest_bytes():
    told = as_json(*GRAPH, "--system", "paper", "--features", 40, "--lanes", "auto")
    assert told["lanes"] == 32
    assert told["barriers"] == 2 * told["blocks"]
    told = as_json(*GRAPH, "--system", "paper", "--features", 16, "--lanes", "auto")
    assert told["lanes"] == 16


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (("--system", "paper", "--lanes", 24), PlannerError, "no frames of '24' numbers"),
        (("--system", "bns-gcn", "--lanes", 64), SimulatorError, "leave --lanes out"),
    ],
)
def test_other_widths_are_refused(arguments, error, said):
    with pytest.raises(error, match=said):
        as_json(*GRAPH, *arguments)
