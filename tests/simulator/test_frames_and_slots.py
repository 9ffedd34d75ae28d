"""Slots of the strawman and of whole features, and frames of 8 to 256 numbers."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from switchgnn.host.wire.header import Kind
from switchgnn.lab.simulator.request import NetworkOptions
from switchgnn.lab.simulator.setup import plan_setup
from switchgnn.lab.simulator.simulation import run_simulation
from switchgnn.planner import Direction
from switchgnn.planner.base.lanes import fragment_lanes

from . import scenes
from .scenes import DELAY, FEATURE, Row, Sent, arrivals, features_at_switch, scene, sums_at_workers
from .test_by_hand import OPENING, THERE
from .test_command import GRAPH, as_json

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


@pytest.mark.parametrize(("slots", "rows"), [(16, 1), (64, 2), (4_000, 8)])
def test_as_many_frames_and_fewer_barriers(graph, slots, rows):
    plan = scenes.planned(graph, slots=slots, rows=rows)
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


def played(setup, order, slots):
    """Sums and features that overflow, of each row, when features arrive in that order; one bank.

    A slot holds all fragments of a row. The loop takes no time, so packets are added one by one.
    """
    arrays, rows = setup.arrays, len(setup.arrays["row_expected"])
    taken, added, seen = {}, set(), Counter()
    sums, overflowed = np.zeros((2, rows), dtype=int)
    for feature in order:
        packet, part = divmod(feature, setup.together)
        start = int(arrays["packet_start"][packet])
        for word in arrays["contribution"][start : start + int(arrays["packet_length"][packet])]:
            row = int(word) & 0x7FFFFFFF
            seen[row, part] += 1
            last = seen[row, part] == arrays["row_expected"][row]
            if (row, part) in added:
                if last:
                    sums[row] += 1
                    added.remove((row, part))
                    taken[row].remove(part)
                    if not taken[row]:
                        del taken[row]
            elif row not in taken and len(taken) == slots:
                overflowed[row] += 1
            elif last:
                sums[row] += 1
            else:
                added.add((row, part))
                taken.setdefault(row, set()).add(part)
    return sums, overflowed


@pytest.fixture(scope="module")
def crowded(graph):
    return scenes.planned(graph, slots=ROOM, blocks="strawman", order="random")


@pytest.mark.parametrize("fragments", [1, FRAGMENTS])
@pytest.mark.parametrize("slots", [1, ROOM, 1_000])
@pytest.mark.parametrize("window", [4, 512])
def test_the_strawmans_slots_are_first_come_first_served(crowded, fragments, slots, window):
    setup = replace(plan_setup(crowded, fragments, whole_features=True), bank_slots=(slots,))
    run = run_simulation(setup, NetworkOptions(window=window, ecn_threshold=None), trace=True)
    sums, overflowed = played(setup, [it for _, _, it in features_at_switch(run)], slots)
    assert (run.sums, run.overflowed) == (sums.sum(), overflowed.sum())
    for kind, expected in ((Kind.SUM, sums), (Kind.FEATURE, overflowed)):
        came = Counter(row // fragments for _, _, row in arrivals(run, kind, at_switch=False))
        assert came == {row: number for row, number in enumerate(expected) if number}
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


# At 100 Gbit/s a byte takes 80 ps; frames of 64 and of 16 numbers.
WIDE, NARROW, CONTROL = (60 + 256) * 80, (60 + 64) * 80, 88 * 80


def test_the_last_fragment_is_as_narrow_as_it_can_be():
    setup = scene(2, [Row(1, 1)], [Sent(0, [[0]])], fragments=2)
    run = run_simulation(replace(setup, lanes=fragment_lanes(80, 64)), NetworkOptions(), trace=True)
    closed = 2 * (WIDE + DELAY) + 2 * (CONTROL + DELAY)
    assert features_at_switch(run) == [(WIDE + DELAY, 0, 0), (closed + NARROW + DELAY, 0, 0)]
    came = [2 * (WIDE + DELAY), closed + 2 * (NARROW + DELAY)]
    assert [at for at, *_ in sums_at_workers(run)] == came
    assert run.bytes_up == (316 + 124 + 2 * 88, 2 * 88)
    assert run.sum_bytes_down == (0, 316 + 124)
    assert run.barriers == 2


def test_fragments_that_travel_together_have_their_own_widths():
    setup = replace(scene(2, [Row(1, 1)], [Sent(0, [[0]])]), lanes=fragment_lanes(140, 64))
    run = run_simulation(together(setup, 3), NetworkOptions(), trace=True)
    at = [WIDE + DELAY, 2 * WIDE + DELAY, 2 * WIDE + NARROW + DELAY]
    assert features_at_switch(run) == [(when, 0, i) for i, when in enumerate(at)]
    assert run.sum_bytes_down == (0, 2 * 316 + 124)


def test_a_lost_sum_comes_again_as_wide():
    """The buffer of worker 2 has room for one of two sums of 64 numbers at a time."""
    setup = scene(3, [Row(2, 2)] * 2, [Sent(0, [[0, 1]]), Sent(1, [[0, 1]])])
    setup = replace(setup, lanes=(64,), data_frame_bytes=316)
    run = run_simulation(setup, NetworkOptions(buffer=400), trace=True)
    assert (run.lost, run.sent_again) == (1, 1)
    assert run.sum_bytes_down == (0, 0, 2 * 316)
    assert [each.id for each in run.trace if each.kind == Kind.SUM] == [0, 1]


@pytest.mark.parametrize(("lanes", "banks"), [(8, 8), (32, 8), (64, 4), (128, 2), (256, 1)])
def test_a_pass_adds_to_as_many_slots_as_there_are_groups_of_banks(lanes, banks):
    told = as_json(*GRAPH, "--system", "paper", "--features", lanes, "--lanes", lanes)
    assert told["lanes"] == lanes
    assert told["contributions"] <= banks * told["passes"]
    assert told["memory_bytes"] == told["slots"] * 128 * (8 // banks)
    assert told["slots"] == as_json(*GRAPH, "--system", "paper")["slots"] * banks // 8
    assert told["barriers"] == told["blocks"]
