# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Slots that hold a whole feature, as the paper counts: its fragments travel together."""

from dataclasses import replace

import pytest

from switchgnn.host.wire.header import Kind
from switchgnn.lab.simulator import NetworkOptions, SimulatorError, plan_setup, run_simulation
from switchgnn.planner import Direction, build_plan, load_graph

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


def game(setup, order, slots):
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
    assert (run.sums, run.overflowed) == game(setup, order, slots)
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
