"""A few packets, with times worked out by hand to the picosecond; and what full queues lose."""

from dataclasses import replace

import numpy as np
import pytest

from switchgnn.host.base.pace import CongestionRule
from switchgnn.host.wire.header import Kind
from switchgnn.lab.simulator.request import NetworkOptions, SimulatorError
from switchgnn.lab.simulator.simulation import run_simulation

from .scenes import (
    ACK,
    BARRIER,
    BYTE,
    DELAY,
    FEATURE,
    Row,
    Sent,
    acks_at_workers,
    arrivals,
    features_at_switch,
    hosts_alone,
    scene,
    sums_at_workers,
    three_sums,
)

# DONE up and ADVANCE down.
OPENING = 2 * (BARRIER + DELAY)
# When the first features are at the switch.
THERE = OPENING + FEATURE + DELAY


def simulated(setup, *, opening=True, **options):
    return run_simulation(setup, NetworkOptions(**options), opening=opening, trace=True)


def test_one_feature_one_sum():
    run = simulated(scene(2, [Row(1, 1)], [Sent(0, [[0]])]))
    done = arrivals(run, Kind.DONE, at_switch=True)[:2]
    assert done == [(BARRIER + DELAY, worker, 0) for worker in (0, 1)]
    assert arrivals(run, Kind.ADVANCE, at_switch=False)[0] == (OPENING, 0, 0)
    assert features_at_switch(run) == [(THERE, 0, 0)]
    came = THERE + FEATURE + DELAY
    assert sums_at_workers(run) == [(came, 1, 0)]
    assert acks_at_workers(run) == [(THERE + ACK + DELAY, 0, 0)]
    assert run.finished == (came + OPENING, came + OPENING)
    assert (run.passes, run.loop_passes, run.contributions) == (1, 1, 1)
    assert (run.frames_up, run.frames_down) == ((3, 2), (3, 3))
    assert run.bytes_up == (188 + 2 * 88, 2 * 88)
    assert run.bytes_down == (60 + 2 * 88, 188 + 2 * 88)


def test_an_exchange_in_steady_state_has_one_barrier_per_block_and_fragment():
    """All of it is the first exchange's without the opening, and earlier by that."""
    rows = [Row(1, 1), Row(1, 1, block=2)]
    setup = scene(2, rows, [Sent(0, [[0]]), Sent(0, [[1]], block=2)], blocks=2, fragments=3)
    first, later = (simulated(setup, opening=opening) for opening in (True, False))
    assert (first.barriers, later.barriers) == (1 + 6, 6)
    assert later.finished == tuple(at - OPENING for at in first.finished)
    assert later.frames_up == tuple(frames - 1 for frames in first.frames_up)
    assert later.bytes_down == tuple(of_link - 88 for of_link in first.bytes_down)
    assert [packet for *_, packet in features_at_switch(later)] == [0, 1] * 3
    opening = [each for each in first.trace if each.picoseconds <= OPENING]
    assert [each.kind for each in opening] == [Kind.DONE] * 2 + [Kind.ADVANCE] * 2
    shifted = [replace(each, picoseconds=each.picoseconds + OPENING) for each in later.trace]
    assert shifted == [*first.trace[len(opening) :]]


def units_in_pools(pools, blocks, fragments, **options):
    """Worker 0 sends eight features to worker 1 in each unit."""
    rows = [Row(1, 1, block=block) for block in range(1, blocks + 1) for _ in range(8)]
    packets = [Sent(0, [[row]], block=rows[row].block) for row in range(len(rows))]
    setup = scene(2, rows, packets, blocks=blocks, fragments=fragments, pools=pools)
    return simulated(setup, **options)


@pytest.mark.parametrize(("blocks", "fragments"), [(1, 1), (1, 4), (5, 1), (3, 3)])
@pytest.mark.parametrize("pools", [1, 2, 3, 4])
def test_pools_share_round_trips(pools, blocks, fragments):
    """A unit begins after the barrier of the one before it; four take less than a delay."""
    run = units_in_pools(pools, blocks, fragments)
    sent = 8 * FEATURE
    turn = sent + FEATURE + 2 * DELAY + OPENING
    opened, last = OPENING + (pools - 1) * BARRIER, blocks * fragments - 1
    closed = opened + (1 + last // pools) * turn + last % pools * sent
    assert run.finished == (closed, closed)
    assert run.barriers == pools + blocks * fragments
    assert run.frames_up[1] == run.barriers


def test_two_pools_keep_a_link_busy():
    """Without delays, one unit is sent while the barrier of the other passes."""
    one, two = (units_in_pools(pools, 4, 5, delay=0.0, opening=False) for pools in (1, 2))
    sent, barrier = 20 * 8 * FEATURE, FEATURE + 2 * BARRIER
    assert one.finished[0] == sent + 20 * barrier
    # Each DONE goes ahead of features.
    assert sent + 20 * BARRIER <= two.finished[0] < sent + 20 * BARRIER + barrier


def test_an_exchange_of_nothing_takes_no_time_in_steady_state():
    run = simulated(scene(2, [], [], blocks=0), opening=False)
    assert (run.finished, run.barriers, run.frames_up) == ((0, 0), 0, (0, 0))


def test_a_link_sends_one_after_another():
    """Two packets of a worker, and both sums to one port."""
    run = simulated(scene(2, [Row(1, 1), Row(1, 1)], [Sent(0, [[0]]), Sent(0, [[1]])]))
    assert features_at_switch(run) == [(THERE, 0, 0), (THERE + FEATURE, 0, 1)]
    came = THERE + FEATURE + DELAY
    assert sums_at_workers(run) == [(came, 1, 0), (came + FEATURE, 1, 1)]
    # One sum is sent whole before the next comes; the ACK leaves together with the second.
    assert run.max_port_queue_bytes == 188
    assert run.max_queue_bytes == 188 + 60


def test_sums_that_complete_together_queue():
    run = simulated(three_sums())
    came = THERE + FEATURE + DELAY
    assert sums_at_workers(run) == [(came + i * FEATURE, 2, i) for i in range(3)]
    assert run.max_port_queue_bytes == 3 * 188
    # The ACK of the worker whose packet completed nothing left at the same time.
    assert run.max_queue_bytes == 3 * 188 + 2 * 60
    assert run.max_slots == 3
    # The second packet completes a slot in each of its three banks: three passes.
    assert run.passes == 1 + 3
    assert run.loop_passes == 0 + 2 + 1


def test_sums_wait_on_a_shelf_for_another_of_their_worker():
    """Only the second of three sums leaves, so the acknowledgement waits for no third."""
    packets = [Sent(0, [[0, 1, 2]]), Sent(0, [[3]]), Sent(1, [[0, 1, 2]])]
    run = simulated(replace(scene(3, [Row(2, 2)] * 3 + [Row(2, 1)], packets), rows=2))
    sums = (60 + 16 + 2 * 128) * BYTE
    came = OPENING + (60 + 2 * 128) * BYTE + sums + 2 * DELAY
    assert sums_at_workers(run) == [(came, 2, 1), (came + sums, 2, 3)]
    assert (run.passes, run.loop_passes, run.sums) == (1 + 3 + 1, 2 + 1, 4)


def test_recirculation_serves_one_packet_after_another():
    """Two packets need two more passes each; the loop makes them in a row."""
    rows = [Row(2, 1, bank) for bank in range(6)]
    packets = [Sent(0, [[0], [1], [2]]), Sent(1, [[3], [4], [5]])]
    run = simulated(scene(3, rows, packets), recirculation_rate=1e6)
    turn = 1_000_000
    left = [0, turn, 2 * turn, 0, 4 * turn, 5 * turn]
    came = {row: THERE + left[row] + FEATURE + DELAY for row in range(6)}
    came[3] += FEATURE  # behind row 0, which completed at the same time
    assert {row: at for at, _, row in sums_at_workers(run)} == came
    # The last pass of each let a sum leave, so its acknowledgement took one more.
    acks = [(THERE + (3 + 3 * worker) * turn + ACK + DELAY, worker, 0) for worker in (0, 1)]
    assert acks_at_workers(run) == acks
    assert (run.passes, run.loop_passes, run.max_loop_queue) == (6, 6, 1)


def test_a_partial_sum_counts_as_its_rows():
    run = simulated(scene(3, [Row(2, 5)], [Sent(0, [[0]], count=3), Sent(1, [[0]], count=2)]))
    (arrival,) = (each for each in run.trace if each.kind == Kind.SUM)
    assert (arrival.count, arrival.picoseconds) == (5, THERE + FEATURE + DELAY)


def test_rate_delay_and_overhead_are_options():
    setup = scene(2, [Row(1, 1)], [Sent(0, [[0]])])
    run = simulated(setup, bandwidth=1_000.0, delay=0.5, overhead=24)
    barrier, feature = (88 + 24) * 8_000 + 500_000, (188 + 24) * 8_000 + 500_000
    assert features_at_switch(run) == [(2 * barrier + feature, 0, 0)]
    assert run.finished[0] == 2 * barrier + 2 * feature + 2 * barrier
    assert run.bytes_up == (188 + 2 * 88, 2 * 88)


def test_a_strawman_without_free_slots_passes_features_on():
    """One slot: row 0 takes it, row 1 overflows twice; then it is free for row 2."""
    packets = [Sent(0, [[row]]) for row in (0, 1, 1, 0, 2, 2)]
    run = simulated(scene(3, [Row(2, 2)] * 3, packets, bank_slots=[1]))
    came = [(each.id, each.kind) for each in run.trace if not each.at_switch and each.worker == 2]
    parts = [(row, kind) for row, kind in came if kind in (Kind.SUM, Kind.FEATURE)]
    assert parts == [(1, Kind.FEATURE), (1, Kind.FEATURE), (0, Kind.SUM), (2, Kind.SUM)]
    assert (run.sums, run.overflowed, run.max_slots) == (2, 2, 1)
    assert (run.features_down, run.sums_down) == ((0, 0, 2), (0, 0, 2))


def test_banks_are_apart():
    rows = [Row(1, 2, bank=0), Row(1, 2, bank=0), Row(1, 2, bank=1)]
    packets = [Sent(0, [[row]]) for row in (0, 1, 2, 0, 1, 2)]
    run = simulated(scene(2, rows, packets, bank_slots=[1, 1]))
    assert (run.sums, run.overflowed) == (2 + 1, 1)


def test_what_finds_a_long_queue_is_marked_and_all_are_told():
    """The third of three sums finds two; its receiver tells all workers that it was one."""
    assert simulated(three_sums(), ecn_threshold=2).marked == 0
    for rule in CongestionRule:
        run = simulated(three_sums(), ecn_threshold=1, congestion=rule)
        assert (run.marked, run.notices) == (1, (0, 0, 1))
        heard = THERE + 3 * FEATURE + DELAY + 2 * (ACK + DELAY)
        assert notices(run) == [(heard, each, 1) for each in range(3)]


def notices(run):
    """(picoseconds, worker, marked packets) of the notices that have arrived at workers."""
    return [
        (each.picoseconds, each.worker, each.count)
        for each in run.trace
        if each.kind == Kind.NOTICE and not each.at_switch
    ]


def marked_queue(**options):
    """Two workers send 32 features each, of which as many sums for the third are made at once."""
    rows = [Row(2, 1)] * 64
    sent = [Sent(worker, [[32 * worker + index]]) for worker in (0, 1) for index in range(32)]
    return simulated(
        scene(3, rows, sent, fragments=4), ecn_threshold=4, window=32, delay=20.0, **options
    )


def test_a_window_shrinks_by_half_of_the_share_of_sums_that_came_marked():
    """Of each 64 sums that come at twice the rate, all but nine find more than four.

    Of the pair with number j one finds j and one j + 1. The first marked one is told at once, and
    all others with the first of the next fragment. There are two sums for each feature of a
    worker; when 32 are acknowledged, those that were told in time count: none, 1 and 55.
    """
    run = marked_queue()
    assert 3 * 55 < run.marked < 4 * 55
    assert [told for _, worker, told in notices(run) if worker == 0] == [1, 55, 55, 55]
    # Workers 0 and 1: after the second, third and fourth fragment.
    assert run.window_cuts == 2 * 3
    # The window is 32 (1 - 1 / 2 / 32 / 2) + 8, no wider than 32, and 32 (1 - 55 / 2 / 32 / 2) + 8.
    assert leaving_at_once(run) == [32, 32, 32, 8]
    assert leaving_at_once(marked_queue(congestion=CongestionRule.NONE)) == [32] * 4


def leaving_at_once(run):
    """How many features of worker 0 follow each other without a gap at the beginning of each."""
    came = np.array([at for at, worker, _ in features_at_switch(run) if worker == 0])
    return [
        1 + int(np.argmin(np.append(np.diff(fragment) == FEATURE, False)))
        for fragment in came.reshape(4, 32)
    ]


# Ten round trips of an empty network.
TIMEOUT = 10 * 2 * (FEATURE + DELAY)


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


@pytest.mark.parametrize("rule", CongestionRule)
def test_who_got_a_marked_packet_asks_after_what_round_trips_say(rule):
    """The second sum finds one waiting, so its receiver takes the third for lost, not for late."""
    rows = [Row(2, 2), Row(2, 2), Row(2, 2), Row(0, 1)]
    packets = [Sent(0, [[0, 1, 2]]), Sent(1, [[0, 1, 2]]), Sent(2, [[3]])]
    marks = {"ecn_threshold": 0, "congestion": rule}
    run = simulated(scene(3, rows, packets), buffer=3 * 188 - 1, timeout=4_000.0, **marks)
    # Its feature is acknowledged ahead of the second sum. RFC 6298: once, and four times the half.
    round_trip = 2 * FEATURE + ACK + 2 * DELAY
    patience = 3 * round_trip if rule is not CongestionRule.NONE else 4_000_000_000
    asked = OPENING + round_trip + FEATURE + patience
    assert arrivals(run, Kind.RECALL, at_switch=True) == [(asked + ACK + DELAY, 2, 2)]
    assert (run.lost, run.recalled, run.sent_again, run.repeated) == (1, 1, 1, 0)


def test_who_asks_too_early_is_told_so_and_asks_later():
    """The loop holds a feature for long: after a time-out, and two more, it has not left."""
    rows = [Row(1, 1, bank) for bank in range(2)]
    run = simulated(scene(2, rows, [Sent(0, [[0], [1]])]), buffer=10_000, recirculation_rate=5e3)
    first = THERE + FEATURE + DELAY
    # The sum that comes puts the question off; a quarter of the time since the beginning is less.
    asked = [first + TIMEOUT, first + 3 * TIMEOUT]
    for kind, ways in ((Kind.RECALL, 1), (Kind.MISSING, 2)):
        came = arrivals(run, kind, at_switch=kind == Kind.RECALL)
        assert came == [(at + ways * (ACK + DELAY), 1, 1) for at in asked]
    assert sums_at_workers(run)[1] == (THERE + 200_000_000 + FEATURE + DELAY, 1, 1)
    assert (run.lost, run.recalled, run.sent_again, run.repeated) == (0, 2, 0, 0)


def test_a_sum_on_a_shelf_is_recalled_alone():
    """The other one comes after the time-out, and takes the first one along once more."""
    setup = scene(2, [Row(1, 1), Row(1, 1, 1)], [Sent(0, [[0], [1]])])
    run = simulated(replace(setup, rows=2), buffer=10_000, recirculation_rate=5e3)
    assert [row for *_, row in sums_at_workers(run)] == [0, 1]
    assert (run.lost, run.sent_again, run.repeated, run.sum_bytes_down[1]) == (0, 1, 1, 2 * 332)


def test_a_lost_copy_is_sent_again():
    """Two copies meet at one port that holds one. The sender asks after a time-out."""
    run = simulated(hosts_alone([[0, 0, 1], [0, 0, 1], [0, 0, 0]]), buffer=188)
    answered = TIMEOUT + 4 * (ACK + DELAY)
    came = answered + 2 * (FEATURE + DELAY)
    there = [at for at, *_ in arrivals(run, Kind.FEATURE, at_switch=False)]
    assert there == [2 * (FEATURE + DELAY), came]
    # Behind the copy comes a question, whose answer is the acknowledgement.
    assert run.finished[1:] == (came + ACK + 2 * (ACK + DELAY), came)
    assert (run.lost, run.recalled, run.sent_again, run.repeated) == (1, 2, 1, 0)


def test_control_packets_are_not_lost():
    """Worker 2 sends copies to worker 1 while worker 0 acknowledges one; a copy fills the queue."""
    acknowledged = 2 * (FEATURE + DELAY) + ACK + DELAY
    count = (acknowledged - DELAY) // FEATURE
    free = DELAY + (count + 1) * FEATURE
    assert acknowledged + (188 - 60) * 80 < free
    run = simulated(hosts_alone([[0, 0, 0], [1, 0, 0], [0, count, 0]]), buffer=188)
    assert [at for at, to, _ in acks_at_workers(run) if to == 1] == [free + ACK + DELAY]
    assert run.lost == 0


def test_an_acknowledgement_overtakes_sums():
    """Worker 2 sends a feature while three sums are made for it; the first one has begun."""
    rows = [Row(2, 2), Row(2, 2), Row(2, 2), Row(0, 1)]
    packets = [Sent(0, [[0, 1, 2]]), Sent(1, [[0, 1, 2]]), Sent(2, [[3]])]
    run = simulated(scene(3, rows, packets), ecn_threshold=0, buffer=3 * 188)
    first = THERE + FEATURE + DELAY
    assert [at for at, to, _ in acks_at_workers(run) if to == 2] == [first + ACK]
    sums = [at - first for at, to, _ in sums_at_workers(run) if to == 2]
    assert sums == [0, ACK + FEATURE, ACK + 2 * FEATURE]
    # It is not marked, and counts among all that waits.
    assert (run.marked, run.max_port_queue_bytes) == (2, 3 * 188 + 60)


def test_sums_ignore_the_queue_of_packets_without_numbers():
    """An acknowledgement for worker 0 is being sent when its sum is complete, and the sum fits."""
    run = simulated(scene(2, [Row(0, 2)], [Sent(0, [[0]]), Sent(1, [[0]])]), buffer=188)
    assert acks_at_workers(run)[0] == (THERE + ACK + DELAY, 0, 0)
    assert sums_at_workers(run) == [(THERE + ACK + FEATURE + DELAY, 0, 0)]
    assert run.lost == 0


def test_slots_forget_the_fragment_before():
    """Who asks too early in the second fragment must not get the sum of the first."""
    setup = scene(2, [Row(1, 1, bank) for bank in range(2)], [Sent(0, [[0], [1]])], fragments=2)
    run = simulated(setup, buffer=10_000, recirculation_rate=5e3)
    assert (run.recalled, run.sent_again, run.sums_down) == (4, 0, (0, 4))


def test_a_strawman_cannot_lose():
    """What it passed on is in no slot."""
    setup = scene(2, [Row(1, 1)] * 2, [Sent(0, [[0, 1]])], bank_slots=[2])
    simulated(setup, buffer=2 * 188)
    with pytest.raises(SimulatorError, match=r"queue to worker 1 is full.*larger buffer"):
        simulated(setup, buffer=2 * 188 - 1)
