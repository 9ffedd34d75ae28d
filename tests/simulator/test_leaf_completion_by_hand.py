# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The variant in which leaves complete sums: a few packets, with times worked out by hand."""

from functools import partial

import pytest

from switchgnn.host.wire.header import Kind
from switchgnn.lab.simulator import LEAF, SimulatorError

from .leaf_spine_scenes import (
    ACK,
    ACROSS,
    BARRIER,
    DELAY,
    DOWN,
    FEATURE,
    NOTICE,
    OPENING,
    THERE,
    at_workers,
    inside,
)
from .leaf_spine_scenes import simulated as simulated_over
from .scenes import Row, Sent, acks_at_workers, arrivals, scene

simulated = partial(simulated_over, completion=LEAF)


def test_one_feature_one_sum_behind_the_other_leaf():
    """Two workers, one on each leaf: the slot at the first leaf is complete at once."""
    run = simulated(scene(2, [Row(1, 1)], [Sent(0, [[0]])]))
    # Links: leaf 0 to the spine, leaf 1 to the spine, and back.
    assert inside(run, 2, Kind.DONE)[:2] == [(2 * (BARRIER + DELAY), link, 0, 1) for link in (0, 1)]
    assert inside(run, 2, Kind.ADVANCE)[:2] == [
        (3 * (BARRIER + DELAY), link, 0, 1) for link in (2, 3)
    ]
    assert arrivals(run, Kind.ADVANCE, at_switch=False)[:2] == [(OPENING, 0, 0), (OPENING, 1, 0)]
    assert inside(run, 2, Kind.SUM) == [
        (THERE + FEATURE + DELAY, 0, 0, 1),
        (THERE + 2 * (FEATURE + DELAY), 3, 0, 1),
    ]
    came = THERE + ACROSS
    assert at_workers(run, Kind.SUM) == [(came, 1, Kind.SUM, 0, 1)]
    # The sender's leaf acknowledges.
    assert acks_at_workers(run) == [(THERE + ACK + DELAY, 0, 0)]
    assert run.finished == (came + OPENING, came + OPENING)
    # A pass at each leaf, and the first one's acknowledgement goes around.
    assert (run.passes, run.loop_passes, run.contributions, run.sums) == (2, 1, 2, 1)
    assert (run.frames_up, run.frames_down) == ((3, 2), (3, 3))
    assert run.inside.frames_up == (2 + 1, 2)
    assert run.inside.bytes_down == (2 * 88, 2 * 88 + 188)
    assert run.inside.sums_up == (1, 0)


def test_two_levels_add_up():
    """Workers 0, 1 | 2, 3: what 0 and 1 contribute comes to leaf 1 as one sum of two."""
    packets = [Sent(0, [[0]]), Sent(1, [[0]]), Sent(3, [[0]])]
    run = simulated(scene(4, [Row(2, 3)], packets))
    assert inside(run, 4, Kind.SUM) == [
        (THERE + FEATURE + DELAY, 0, 0, 2),
        (THERE + 2 * (FEATURE + DELAY), 3, 0, 2),
    ]
    assert at_workers(run, Kind.SUM) == [(THERE + ACROSS, 2, Kind.SUM, 0, 3)]
    assert (run.sums, run.contributions, run.passes, run.max_slots) == (1, 4, 4, 1)


def test_a_sum_leaves_where_its_last_contribution_is_added():
    """That of worker 3 comes last: its pass completes the sum that waited for it."""
    packets = [Sent(0, [[0]]), Sent(1, [[0]]), *[Sent(3, [[1]])] * 600, Sent(3, [[0]])]
    run = simulated(scene(4, [Row(2, 3), Row(2, 600)], packets), window=1_000, ecn_threshold=None)
    last = arrivals(run, Kind.FEATURE, at_switch=True)[-1][0]
    assert last > THERE + ACROSS
    assert at_workers(run, Kind.SUM)[-1] == (last + DOWN, 2, Kind.SUM, 0, 3)


def test_partial_sums_of_workers_count_as_their_rows():
    packets = [Sent(0, [[0]], count=3), Sent(1, [[0]], count=4), Sent(3, [[0]], count=5)]
    run = simulated(scene(4, [Row(2, 12)], packets))
    assert [count for *_, count in inside(run, 4, Kind.SUM)] == [7, 7]
    assert at_workers(run, Kind.SUM) == [(THERE + ACROSS, 2, Kind.SUM, 0, 12)]


def test_what_stays_behind_a_leaf_never_leaves_it():
    run = simulated(scene(4, [Row(1, 1)], [Sent(0, [[0]])]))
    assert at_workers(run, Kind.SUM) == [(THERE + DOWN, 1, Kind.SUM, 0, 1)]
    assert sum(run.inside.sums_up) == 0
    # Leaf 0 could wait at most for the others' barrier.
    assert run.finished == (THERE + DOWN + OPENING,) * 4


def test_one_leaf_adds_as_a_star_does():
    run = simulated(scene(2, [Row(1, 1)], [Sent(0, [[0]])]), leaves=1, spines=3)
    assert at_workers(run, Kind.SUM) == [(THERE + DOWN, 1, Kind.SUM, 0, 1)]
    # DONE and ADVANCE, at the opening and after the block; over the first spine.
    assert run.inside.frames_up == run.inside.frames_down == (2, 0, 0)


def test_partial_sums_queue_at_the_leaf():
    rows = [Row(2, 2)] * 3
    run = simulated(scene(4, rows, [Sent(0, [[0, 1, 2]]), Sent(1, [[0, 1, 2]])]))
    came = THERE + ACROSS
    assert [at for at, *_ in at_workers(run, Kind.SUM)] == [came + i * FEATURE for i in range(3)]
    # Where they go on there is no queue: one is sent before the next comes.
    assert run.max_port_queue_bytes == 3 * 188
    assert run.max_slots == 3


def test_every_leaf_has_a_loop_of_its_own():
    """Both senders' packets need more passes; no leaf waits for the other."""
    rows = [*[Row(1, 1, bank) for bank in range(3)], *[Row(3, 1, bank) for bank in range(3)]]
    packets = [Sent(0, [[0], [1], [2]]), Sent(2, [[3], [4], [5]])]
    turn = 1_000_000
    run = simulated(scene(4, rows, packets), recirculation_rate=1e6)
    came = {row: at for at, _, _, row, _ in at_workers(run, Kind.SUM)}
    assert came == {row: THERE + DOWN + (row % 3) * turn for row in range(6)}
    assert (run.loop_passes, run.max_loop_queue) == (6, 0)


def test_a_strawman_tries_at_both_leaves():
    """A slot per leaf. Leaf 0: row 0 takes it, row 1 overflows twice, and is added at leaf 1."""
    packets = [Sent(0, [[row]]) for row in (0, 1, 1, 0)]
    run = simulated(scene(2, [Row(1, 2), Row(1, 2)], packets, pools=[1]))
    assert inside(run, 2, Kind.FEATURE) == [
        (THERE + place * FEATURE + hops * (FEATURE + DELAY), link, 1, 1)
        for hops, link in ((1, 0), (2, 3))
        for place in (1, 2)
    ]
    parts = at_workers(run, Kind.SUM, Kind.FEATURE)
    assert parts == [
        (THERE + (place - 1) * FEATURE + ACROSS, 1, Kind.SUM, row, 2)
        for place, row in ((3, 1), (4, 0))
    ]
    assert (run.overflowed, run.sums, run.features_down) == (0, 2, (0, 0))
    assert (run.inside.sums_up, run.inside.features_up) == ((1, 0), (2, 0))


def test_a_strawman_without_slots_at_either_leaf_passes_on_what_came():
    """Row 2 holds leaf 1's slot until the last packet: features and a partial sum go past it."""
    packets = [Sent(2, [[2]]), *[Sent(0, [[row]]) for row in (0, 1, 1, 0, 2)]]
    run = simulated(scene(3, [Row(2, 2)] * 3, packets, pools=[1]))
    parts = [(kind, row, count) for _, _, kind, row, count in at_workers(run, Kind.SUM, 1)]
    assert parts == [(Kind.FEATURE, 1, 1), (Kind.FEATURE, 1, 1), (Kind.SUM, 0, 2), (Kind.SUM, 2, 2)]
    assert (run.overflowed, run.sums, run.features_down) == (3, 2, (0, 0, 2))


def test_a_mark_between_switches_reaches_the_worker_and_all_are_told():
    """The third partial sum finds two at its leaf. The slot keeps the mark for what leaves."""
    setup = scene(4, [Row(2, 2)] * 3, [Sent(0, [[0, 1, 2]]), Sent(1, [[0, 1, 2]])])
    assert simulated(setup, ecn_threshold=2).marked == 0
    run = simulated(setup, ecn_threshold=1)
    assert (run.marked, run.notices) == (1, (0, 0, 1, 0))
    told = [each.count for each in run.trace if each.kind == Kind.NOTICE and not each.at_switch]
    assert told == [1] * 4
    marked = THERE + ACROSS + 2 * FEATURE
    # Its leaf hears of it from the leaf, the other over the first spine.
    near, far = (marked + hops * (NOTICE + DELAY) for hops in (2, 4))
    assert arrivals(run, Kind.NOTICE, at_switch=False) == [
        (near, 2, 0),
        (near, 3, 0),
        (far, 0, 0),
        (far, 1, 0),
    ]


@pytest.mark.parametrize(
    ("workers", "leaves", "held"),
    [(4, 2, [2, 2]), (5, 2, [3, 2]), (7, 3, [3, 2, 2]), (128, 8, [16] * 8), (3, 3, [1, 1, 1])],
)
def test_workers_are_spread_evenly(workers, leaves, held):
    """Each sends to worker 0: what comes up from a leaf is one partial sum."""
    packets = [Sent(worker, [[0]]) for worker in range(1, workers)]
    run = simulated(scene(workers, [Row(0, workers - 1)], packets), leaves=leaves)
    counts = [count for _, link, _, count in inside(run, workers, Kind.SUM) if link < leaves]
    assert counts == held[1:]


def test_a_full_buffer_between_switches_ends_the_simulation():
    setup = scene(4, [Row(2, 2)] * 3, [Sent(0, [[0, 1, 2]]), Sent(1, [[0, 1, 2]])])
    simulated(setup, buffer=3 * 188)
    with pytest.raises(SimulatorError, match="queue to spine 0 is full"):
        simulated(setup, buffer=3 * 188 - 1)
