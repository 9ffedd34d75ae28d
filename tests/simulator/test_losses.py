# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Queues that are full lose packets, and everything arrives once all the same."""

from dataclasses import replace

import numpy as np
import pytest

from switchgnn.host.wire.header import LANES, Kind
from switchgnn.lab.simulator import (
    FRAGMENT,
    NetworkOptions,
    SimulatorError,
    copies_of_plan,
    host_setup,
    plan_setup,
    run_simulation,
)
from switchgnn.planner import Direction, build_plan, load_graph

from .scenes import Row, Sent, acks_at_workers, arrivals, scene, sums_at_workers

# At 100 Gbit/s a byte takes 80 ps.
FEATURE, BARRIER, ACK = 188 * 80, 88 * 80, 60 * 80
DELAY = 2_000_000
OPENING = 2 * (BARRIER + DELAY)
THERE = OPENING + FEATURE + DELAY
# Ten round trips of an empty network.
TIMEOUT = 10 * 2 * (FEATURE + DELAY)
KINDS = [
    {},
    {"blocks": "destination-cover", "send": "cover"},
    {"slots": 4_000, "order": "peel"},
    {"slots": 8},
]


def simulated(setup, **options):
    return run_simulation(setup, NetworkOptions(**options), opening=True, trace=True)


def three_sums():
    """Complete at the same time, all for worker 2."""
    rows = [Row(2, 2), Row(2, 2), Row(2, 2)]
    return scene(3, rows, [Sent(0, [[0, 1, 2]]), Sent(1, [[0, 1, 2]])])


def test_a_lost_sum_is_recalled():
    """Two of three sums fit; a time-out after the second the third is asked for."""
    run = simulated(three_sums(), buffer=3 * 188 - 1)
    second = THERE + 2 * FEATURE + DELAY
    asked = second + TIMEOUT
    again = asked + (ACK + DELAY) + (FEATURE + DELAY)
    assert arrivals(run, Kind.RECALL, at_switch=True) == [(asked + ACK + DELAY, 2, 2)]
    assert sums_at_workers(run) == [(second - FEATURE, 2, 0), (second, 2, 1), (again, 2, 2)]
    assert run.finished == (again + OPENING,) * 3
    assert (run.lost, run.recalled, run.sent_again, run.repeated) == (1, 1, 1, 0)
    assert (run.sums, run.sums_down) == (3, (0, 0, 3))


@pytest.mark.parametrize("control", [True, False])
def test_who_got_a_marked_packet_asks_after_what_round_trips_say(control):
    """The second sum finds one waiting, so its receiver takes the third for lost, not for late."""
    rows = [Row(2, 2), Row(2, 2), Row(2, 2), Row(0, 1)]
    packets = [Sent(0, [[0, 1, 2]]), Sent(1, [[0, 1, 2]]), Sent(2, [[3]])]
    run = simulated(
        scene(3, rows, packets),
        buffer=3 * 188 - 1,
        ecn_threshold=0,
        timeout=4_000.0,
        congestion_control=control,
    )
    # Its own feature is acknowledged behind two sums. RFC 6298: once, and four times the half.
    round_trip = 3 * FEATURE + ACK + 2 * DELAY
    patience = 3 * round_trip if control else 4_000_000_000
    asked = OPENING + round_trip + patience
    assert arrivals(run, Kind.RECALL, at_switch=True) == [(asked + ACK + DELAY, 2, 2)]
    assert (run.lost, run.recalled, run.sent_again, run.repeated) == (1, 1, 1, 0)


def test_the_shortest_time_out_is_an_option():
    run = simulated(three_sums(), buffer=3 * 188 - 1, timeout=4_000.0)
    asked = THERE + 2 * FEATURE + DELAY + 4_000_000_000
    assert arrivals(run, Kind.RECALL, at_switch=True) == [(asked + ACK + DELAY, 2, 2)]


def test_who_asks_too_early_is_told_so_and_asks_later():
    """The loop holds a feature for long: after a time-out, and two more, it has not left."""
    rows = [Row(1, 1, bank) for bank in range(2)]
    run = simulated(scene(2, rows, [Sent(0, [[0], [1]])]), buffer=10_000, recirculation_rate=5e3)
    first = THERE + FEATURE + DELAY
    # The sum that comes puts the question off; a quarter of the time since the beginning is less.
    asked = [first + TIMEOUT, first + 3 * TIMEOUT]
    late = arrivals(run, Kind.RECALL, at_switch=True)
    assert late == [(at + ACK + DELAY, 1, 1) for at in asked]
    told = arrivals(run, Kind.MISSING, at_switch=False)
    assert told == [(at + 2 * (ACK + DELAY), 1, 1) for at in asked]
    assert sums_at_workers(run)[1] == (THERE + 200_000_000 + FEATURE + DELAY, 1, 1)
    assert (run.lost, run.recalled, run.sent_again, run.repeated) == (0, 2, 0, 0)


def test_a_lost_copy_is_sent_again():
    """Two copies meet at one port that holds one. The sender asks after a time-out."""
    copies = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]], dtype=np.int64)
    run = simulated(host_setup(copies, LANES, NetworkOptions().pace, FRAGMENT), buffer=188)
    answered = TIMEOUT + 4 * (ACK + DELAY)
    came = answered + 2 * (FEATURE + DELAY)
    assert [at for at, *_ in arrivals(run, Kind.FEATURE, at_switch=False)] == [
        2 * (FEATURE + DELAY),
        came,
    ]
    # Behind the copy comes a question, whose answer is the acknowledgement.
    assert run.finished[1:] == (came + ACK + 2 * (ACK + DELAY), came)
    assert (run.lost, run.recalled, run.sent_again, run.repeated) == (1, 2, 1, 0)


def test_control_packets_are_not_lost():
    """A sum fills the queue, and the acknowledgement that follows it is taken all the same."""
    setup = scene(2, [Row(0, 1), Row(1, 1)], [Sent(0, [[1]]), Sent(1, [[0]])])
    run = simulated(setup, buffer=188)
    assert acks_at_workers(run)[1] == (THERE + FEATURE + ACK + DELAY, 1, 0)
    # At the other port the acknowledgement is first, and the sum is lost.
    assert (acks_at_workers(run)[0], run.lost) == ((THERE + ACK + DELAY, 0, 0), 1)


def test_a_buffer_that_never_fills_changes_nothing():
    plan = build_plan(load_graph("random:300:1500:1"), workers=5, slots=64, program="0" * 64)
    options = NetworkOptions(ecn_threshold=4, window=64, recirculation_rate=3e8)
    limited = replace(options, buffer=10**9)
    for setup in (
        plan_setup(plan, 2),
        host_setup(copies_of_plan(plan), 2 * LANES, options.pace, FRAGMENT),
    ):
        first, second = (run_simulation(setup, each, trace=True) for each in (options, limited))
        assert first.finished == second.finished
        assert first.trace == second.trace
        assert (second.lost, second.sent_again, second.repeated) == (0, 0, 0)


@pytest.mark.parametrize("seed", range(16))
def test_everything_arrives_once(seed):
    """Whatever is lost, at whatever rates: sums and copies that are news are those of the plan."""
    rng = np.random.default_rng(seed)
    graph = load_graph(f"random:{rng.integers(20, 200)}:{rng.integers(50, 600)}:{seed}")
    parts = {"workers": int(rng.integers(2, 9)), "slots": 64, "program": "0" * 64}
    plan = build_plan(graph, **{**parts, **KINDS[seed % len(KINDS)]})
    options = NetworkOptions(
        bandwidth=float(rng.choice([10.0, 1e3, 1e5])),
        delay=float(rng.choice([0.0, 0.5, 50.0])),
        ecn_threshold=int(rng.choice([0, 1, 5, 50])),
        window=int(rng.choice([1, 2, 3, 5, 16, 100])),
        recirculation_rate=rng.choice([None, 1e5, 1e9]),
        buffer=int(rng.choice([188, 400, 1_000, 5_000])),
        congestion_control=bool(rng.integers(2)),
    )
    prediction = plan.manifest.direction(Direction.FORWARD).prediction
    run = run_simulation(plan_setup(plan, 1), options)
    assert run.features_up == prediction.packets_up
    assert run.contributions == prediction.contributions
    assert run.sums == sum(prediction.packets_down)
    assert sum(run.sums_down) == run.sums + run.sent_again - run.lost == run.sums + run.repeated
    copies = copies_of_plan(plan)
    run = run_simulation(host_setup(copies, LANES, options.pace, FRAGMENT), options)
    assert sum(run.features_up) == copies.sum() + run.sent_again
    assert sum(run.features_down) == sum(run.features_up) - run.lost
    assert sum(run.features_down) == copies.sum() + run.repeated


def test_slots_forget_the_fragment_before():
    """Who asks too early in the second fragment must not get the sum of the first."""
    rows = [Row(1, 1, bank) for bank in range(2)]
    setup = scene(2, rows, [Sent(0, [[0], [1]])], fragments=2)
    run = simulated(setup, buffer=10_000, recirculation_rate=5e3)
    assert (run.recalled, run.sent_again, run.sums_down) == (4, 0, (0, 4))


def test_a_strawman_cannot_lose():
    """What it passed on is in no slot."""
    rows = [Row(1, 1), Row(1, 1)]
    setup = scene(2, rows, [Sent(0, [[0, 1]])], pools=[2])
    simulated(setup, buffer=2 * 188)
    with pytest.raises(SimulatorError, match=r"queue to worker 1 is full.*larger buffer"):
        simulated(setup, buffer=2 * 188 - 1)


def test_a_wrong_plan_is_found_out_though_workers_ask_again_and_again():
    with pytest.raises(SimulatorError, match="Nothing happens any more"):
        simulated(scene(2, [Row(1, 2)], [Sent(0, [[0]])]), buffer=188)


def test_a_buffer_without_room_for_a_frame_is_refused():
    with pytest.raises(SimulatorError, match="must hold a frame of 188 bytes"):
        simulated(three_sums(), buffer=187)
