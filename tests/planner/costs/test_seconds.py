"""Predicted times against times worked out by hand, and queues against a loop."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from switchgnn.host.direct.frames import send_order
from switchgnn.host.direct.framing import Framing
from switchgnn.planner import Direction
from switchgnn.planner.costs import seconds as costs
from tests.planner import helpers
from tests.planner.helpers import given, graph_of

# A byte takes a nanosecond on a link, and a link a microsecond: times below are nanoseconds.
SLOW = costs.NetworkModel(bits_per_second=8e9, delay=1e-6)
FEATURE, ACK, DONE, WAY = 188, 60, 88, 1000
BARRIER = 2 * (DONE + WAY)
PAIR = FEATURE + WAY + FEATURE + ACK + WAY + BARRIER
# A full frame between hosts: 363 numbers.
FULL, NUMBERS = 1512, 363


def plan_of(edges, owners, **options):
    graph = graph_of(*np.array(edges).T, len(owners), directed=True)
    options = {"slots": 64, "blocks": "destination", "assignment": np.array(owners)} | options
    return helpers.plan_of(graph, **({"workers": max(owners) + 1} | options))


def nanoseconds(plan, network=SLOW, width=32):
    return costs.plan_seconds(plan, Direction.FORWARD, width, network) * 1e9


@pytest.fixture
def pair():
    return plan_of([(0, 1), (1, 0)], [0, 1])


def test_one_pair_and_one_block(pair):
    # The acknowledgement waits for the sum, or the sum for it.
    assert nanoseconds(pair) == pytest.approx(PAIR, abs=1e-3)


def test_sums_queue_for_their_worker():
    """Two workers with five features each for ten vertices of a third one."""
    crowd = plan_of([(10 + at, at) for at in range(10)], [0] * 10 + [1] * 5 + [2] * 5)
    # Ten sums queue for one worker from the first two on.
    expected = FEATURE + WAY + 10 * FEATURE + WAY + BARRIER
    assert nanoseconds(crowd) == pytest.approx(expected, abs=1e-3)


def test_fragments_and_blocks_follow_each_other(pair):
    once = nanoseconds(pair)
    assert nanoseconds(pair, width=64) == pytest.approx(2 * once)
    # The last fragment of 40 numbers has 8, in frames of 92 bytes.
    narrow = once - 2 * (FEATURE - 92)
    assert nanoseconds(pair, width=40) == pytest.approx(once + narrow)
    two = plan_of([(2, 0), (3, 1)], [0, 0, 1, 1], slots=1, blocks="destination")
    assert two.manifest.blocks == 2
    alone = FEATURE + WAY + FEATURE + WAY + BARRIER
    assert nanoseconds(two) == pytest.approx(2 * alone)


def test_units_of_other_pools_do_not_wait_for_a_barrier():
    both = {"edges": [(0, 1), (1, 0)], "owners": [0, 1]}
    halves, thirds = (plan_of(**both, pools=pools) for pools in (2, 3))
    # The sum of the second fragment waits for the first one, and both acknowledgements.
    assert nanoseconds(halves, width=64) == pytest.approx(PAIR + FEATURE + ACK)
    assert nanoseconds(thirds, width=96) == pytest.approx(PAIR + 2 * (FEATURE + ACK))
    # The third one begins when the first barrier has passed, and finds idle links.
    assert nanoseconds(halves, width=96) == pytest.approx(2 * PAIR)


def test_blocks_in_flight_share_the_loop_and_not_links():
    """A feature of worker 0 for three sums of worker 1, and one of worker 1 for worker 0."""
    edges, owners = [(6, 0), (6, 1), (6, 2), (3, 4), (3, 5), (3, 7)], [1, 1, 1, 1, 0, 0, 0, 0]
    one, two = (plan_of(edges, owners, slots=3 * n, banks=1, pools=n) for n in (1, 2))
    assert one.manifest.blocks == two.manifest.blocks == 2
    alone = FEATURE + WAY + 3 * FEATURE + WAY + BARRIER
    assert (nanoseconds(one), nanoseconds(two)) == pytest.approx((2 * alone, alone + ACK))
    slow, ends = replace(SLOW, passes_per_second=1e5), 4 * FEATURE + 2 * WAY + BARRIER
    expected = 2 * (3 * 10_000 + ends), 6 * 10_000 + ends
    assert (nanoseconds(one, slow), nanoseconds(two, slow)) == pytest.approx(expected)


def test_passes_queue_in_the_loop():
    # One feature for three sums of one bank: a pass each, and one for the acknowledgement, after
    # which the sums leave.
    plan = plan_of([(3, 0), (3, 1), (3, 2)], [0, 0, 0, 1], banks=1)
    slow = replace(SLOW, passes_per_second=2e6)
    alone = FEATURE + WAY + 3 * FEATURE + WAY + BARRIER
    assert nanoseconds(plan, slow) == pytest.approx(alone + 3 * 500)
    # Two such features: the loop serves the second one after the first.
    both = plan_of([(s, d) for s in (3, 4) for d in range(3)], [0, 0, 0, 1, 2], banks=1)
    assert nanoseconds(both, slow) == pytest.approx(alone + (2 + 3) * 500)


def test_processors_take_their_time(pair):
    busy = replace(SLOW, host_frame=1e-6)
    assert nanoseconds(pair, busy) == pytest.approx(1000 + WAY + 2 * 1000 + WAY + 2 * (1000 + WAY))
    # On one core four frames of both workers, and then DONE and ADVANCE of both.
    shared = replace(busy, cores=1)
    assert nanoseconds(pair, shared) == pytest.approx(5 * 1000 + 2 * 2 * 1000 + 2 * WAY)
    many = replace(shared, host_frame=2e-6, delay=0.0)
    assert nanoseconds(pair, many) == pytest.approx(2 * 4 * 2000)
    slow_switch = replace(SLOW, switch_frame=5e-6, barrier=3e-6)
    expected = FEATURE + WAY + 2 * 5000 + FEATURE + WAY + BARRIER + 2 * 5000 + 3000
    assert nanoseconds(pair, slow_switch) == pytest.approx(expected)


def test_nothing_takes_no_time():
    assert nanoseconds(plan_of([(0, 1)], [0, 0], workers=1)) == 0
    assert costs.host_seconds(np.zeros((3, 3), dtype=np.int64), 16, SLOW) == 0


def test_hosts_send_frames_and_acknowledge_them():
    rows = np.array([[0, 1], [1, 0]])
    expected = 2 * (FEATURE + WAY) + 2 * (ACK + WAY)
    assert costs.host_seconds(rows, 32, SLOW) * 1e9 == pytest.approx(expected)
    crowd = np.array([[0, 0, 0], [8, 0, 0], [8, 0, 0]])
    expected = FULL + WAY + 16 * FULL + WAY + 2 * (ACK + WAY)
    assert costs.host_seconds(crowd, NUMBERS, SLOW) * 1e9 == pytest.approx(expected)


def test_parts_on_the_same_links_take_at_least_the_longer_and_at_most_both():
    """Rows fill the link of worker 2, on which each of three blocks waits."""
    plan = plan_of([(0, 2), (0, 3), (0, 4)], [0, 1, 2, 2, 2], slots=1)
    rows = np.array([[0, 0, 400], [0, 0, 400], [0, 0, 0]])
    near = replace(SLOW, delay=4e-9)
    switch = costs.plan_seconds(plan, Direction.FORWARD, 32, near)
    hosts = costs.host_seconds(rows, 32, near)
    taken = costs.exchange_seconds(plan, Direction.FORWARD, 32, near, rows)
    assert max(switch, hosts) <= taken <= switch + hosts


def test_parts_that_are_empty_take_no_time():
    """Worker 0 contributes to three sums of worker 2, worker 1 to one of them."""
    edges, owners = [(0, 3), (1, 4), (2, 3), (0, 5)], [0, 0, 1, 2, 2, 2]

    def both_parts(left, rows):
        plan = plan_of(edges, owners, left=np.isin(np.arange(6), left))
        return costs.exchange_seconds(plan, Direction.FORWARD, 32, SLOW, rows) * 1e9

    assert both_parts([], np.zeros((3, 3), dtype=int)) == nanoseconds(plan_of(edges, owners))
    rows = np.array([[0, 0, 2], [0, 0, 1], [0, 0, 0]])
    assert both_parts([3, 4, 5], rows) == costs.host_seconds(rows, 32, SLOW) * 1e9 > 0


def test_windows_open_as_tcps():
    # Ten frames leave, eight at once; the eighth is acknowledged, and twice as many may.
    rows = np.array([[0, 12], [0, 0]])
    far = replace(SLOW, delay=1e-3)
    trip = 2 * FULL + 4 * 1_000_000 + 2 * ACK
    # The first acknowledgement, and the one of the last four frames, a round trip later.
    expected = (8 - 1) * FULL + trip + (4 - 2) * FULL + trip - FULL
    taken = costs.host_seconds(rows, NUMBERS, far) * 1e9
    assert 2 * trip < taken
    assert taken == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(("width", "mtu"), [(16, 1_500), (602, 1_500), (64, 9_000), (5, 1_501)])
def test_frames_are_those_of_hosts(width, mtu):
    rows = np.random.default_rng(width).integers(0, 90, (5, 5))
    np.fill_diagonal(rows, 0)
    frames, sizes = costs.packed_frames(rows, width, mtu)
    framing = Framing(mtu)
    assert np.array_equal(frames, framing.frames(rows, width))
    assert np.array_equal(sizes, framing.frame_bytes(rows, width))
    order = costs._SendOrder.of(frames)
    for worker, begin in enumerate(order.begin.tolist()):
        indptr = np.append(0, np.cumsum(frames[worker]))
        theirs = send_order(worker, indptr, np.arange(int(indptr[-1])))
        end = begin + len(theirs.peer)
        assert np.array_equal(order.receiver[begin:end], theirs.peer)
        confirmed = np.flatnonzero(np.diff(order.complete)[begin:end]) + 1
        assert np.array_equal(confirmed, theirs.run_start[1:])


customers = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 9)))


@given(customers)
def test_queues_are_those_served_one_by_one(drawn):
    rows = sorted(drawn, key=lambda row: row[:2])
    queue, arrival, service = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    free, ends = {}, []
    for which, came, takes in rows:
        free[which] = max(free.get(which, 0), came) + takes
        ends.append(free[which])
    assert costs.served(arrival, service, queue).tolist() == ends
