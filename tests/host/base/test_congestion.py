"""Window and rate: cut by the share that came marked, grown by a segment; all workers are told."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.host.base.congestion import CongestionWindow, StallClock
from switchgnn.host.base.pace import CongestionRule, Pace, RoundTrip
from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.responder import Notifier
from switchgnn.host.innetwork.schedule import block_schedules
from switchgnn.host.wire.header import Header, Kind
from switchgnn.planner import Direction, build_plan, load_graph
from tests.host.addresses import ADDRESSES, Recorder
from tests.support.hand_clock import HandClock

ROUND_TRIP = 0.01
SEGMENT = 8


@pytest.fixture
def round_trip():
    made = RoundTrip()
    made.measured(ROUND_TRIP)
    return made


def windows(congestion, shares):
    """The window after each window of features of which such a share came marked."""
    after = []
    for share in shares:
        whole = -(-congestion.window // 1)
        congestion.marked(share * whole, 0.0)
        congestion.acknowledged(int(whole))
        after.append(congestion.window)
    return after


def opened(round_trip, window=128):
    congestion = CongestionWindow(Pace(window=window), round_trip)
    while congestion.window < window:
        congestion.acknowledged(int(congestion.window))
    return congestion


def test_before_the_first_mark_the_window_doubles(round_trip):
    congestion = CongestionWindow(Pace(window=128), round_trip)
    assert congestion.window == 16
    assert windows(congestion, [0] * 4) == [32, 64, 128, 128]
    assert (congestion.rate, congestion.cuts) == (None, 0)
    for most, first in ((128, 100), (64, 64)):
        assert CongestionWindow(Pace(window=most, first_window=100), round_trip).window == first
    assert CongestionWindow(Pace(window=64, first_window=5), round_trip).window == 8


def test_after_the_first_mark_or_loss_it_does_not_double(round_trip):
    marked, lost = (CongestionWindow(Pace(window=512), round_trip) for _ in range(2))
    assert windows(marked, [0, 1 / 32, 0]) == [32, 32 * (1 - 1 / 64) + SEGMENT, 39.5 + SEGMENT]
    assert windows(lost, [0]) == [32]
    lost.lost(1.0)
    assert windows(lost, [0]) == [16 + SEGMENT]


@pytest.mark.parametrize("share", [0.0, 0.125, 0.5, 1.0, 7.0])
def test_it_is_cut_by_half_of_the_share_that_came_marked(round_trip, share):
    """More marks than features may have been made of features of the window before."""
    congestion = opened(round_trip)
    assert windows(congestion, [share]) == [min(128, 128 * (1 - min(share, 1) / 2) + SEGMENT)]
    assert congestion.cuts == (share > 0)


def test_losses_in_one_round_trip_halve_once(round_trip):
    congestion = opened(round_trip)
    for at in (1.0, 1.0 + ROUND_TRIP / 3, 1.0 + ROUND_TRIP / 2):
        congestion.lost(at)
    assert (congestion.window, congestion.cuts) == (64, 1)
    congestion.lost(1.0 + 1.5 * ROUND_TRIP)
    assert (congestion.window, congestion.cuts) == (32, 2)


def test_the_rate_is_kept_and_tells_how_long_to_wait(round_trip):
    congestion = opened(round_trip)
    for at in range(20):
        congestion.lost(1.0 + at)
    rate = congestion.rate
    assert rate == pytest.approx(1.25 * congestion.window / ROUND_TRIP)
    sent, now = 0, 100.0
    while now < 101.0:
        allowed = congestion.allowance(0, now)
        congestion.sent(allowed)
        sent += allowed
        assert allowed or congestion.wait() > 0
        now += 0.001
    assert sent == pytest.approx(rate, rel=0.02, abs=2 * SEGMENT)


def test_by_the_papers_rule_a_mark_halves_and_a_window_without_one_grows(round_trip):
    """Whatever the share, at once, and once per round trip; marks without a cut prevent growth."""
    congestion = CongestionWindow(
        Pace(window=128, first_window=128, congestion=CongestionRule.PAPER), round_trip
    )
    windows = []
    for at in (1.0, 1.0 + ROUND_TRIP / 2, 1.0 + 1.5 * ROUND_TRIP):
        congestion.acknowledged(40)
        congestion.marked(1 / 16, at)
        windows.append(congestion.window)
    congestion.marked(0, 2.0)  # a notice that claims nothing
    for _ in range(2):
        congestion.acknowledged(31)
        windows.append(congestion.window)
    assert windows == [64, 64, 32, 32, 32 + SEGMENT]
    assert congestion.cuts == 2


def test_without_control_marks_and_losses_change_nothing(round_trip):
    congestion = CongestionWindow(Pace(window=64, congestion=CongestionRule.NONE), round_trip)
    assert windows(congestion, [1.0] * 3) == [64] * 3
    congestion.lost(1.0)
    assert (congestion.window, congestion.rate) == (64, None)
    assert congestion.allowance(10, 1.0) == 54


@given(
    st.lists(
        st.tuples(st.floats(0.0001, 1.0), st.floats(0, 1e6), st.integers(0, 64), st.booleans()),
        max_size=80,
    ),
    *(st.integers(1, 500), st.sampled_from(CongestionRule)),
)
def test_window_and_rate_stay_within_bounds(events, window, rule):
    round_trip = RoundTrip()
    pace = Pace(window=window, congestion=rule)
    congestion = CongestionWindow(pace, round_trip)
    now = 1.0
    for gap, marked, came, lost in events:
        now += gap
        round_trip.measured(gap)
        before = congestion.window
        congestion.marked(marked, now)
        congestion.acknowledged(came)
        assert before / 2 <= congestion.window <= max(2 * before, before + SEGMENT)
        if lost:
            congestion.lost(now)
        assert pace.group_size <= congestion.window <= window
        assert congestion.rate is None or congestion.rate > 0
        assert 0 <= congestion.allowance(0, now) <= window


def notifier_at(clock, round_trip, wire, **pace):
    """A notifier of worker 3, which sends three features for two sums in block 2."""
    told = Pace(**pace, first_window=1_000)
    endpoint = Endpoint(3, 1, wire, ADDRESSES, told, clock=clock)
    endpoint.round_trip = round_trip
    endpoint.congestion = CongestionWindow(told, round_trip)
    notifier = Notifier(endpoint, SimpleNamespace(directions={}), ())
    notifier._features_per_sum, notifier._most_marks = [1.0, 1.5], [(9, 9), (100, 30)]
    return notifier, endpoint


def test_others_are_told_once_per_round_trip_how_many_came_marked(round_trip):
    clock, wire = HandClock(5.0), Recorder()
    notifier, endpoint = notifier_at(clock, round_trip, wire)
    for gap in (0.0, ROUND_TRIP / 2, ROUND_TRIP / 4, ROUND_TRIP):
        clock.seconds += gap
        notifier.notify(Header(kind=Kind.SUM, dst_id=9, block_id=2, fragment=1, round=7, ecn=True))
    assert len(wire.sent) == endpoint.counters.notices == 2
    first, second = wire.sent
    assert (first.count, second.count) == (1, 3)
    assert (first.kind, first.src_id) == (Kind.NOTICE, 3)
    assert (first.round, first.block_id, first.fragment) == (7, 2, 1)


def test_only_data_packets_count(round_trip):
    wire = Recorder()
    notifier, _ = notifier_at(HandClock(5.0), round_trip, wire)
    for kind in (Kind.ACK, Kind.ADVANCE, Kind.NOTICE, Kind.MISSING):
        notifier.notify(Header(kind=kind, block_id=2, ecn=True))
    assert wire.sent == []


def test_a_notice_counts_as_marked_features(round_trip):
    """20 of the sums of all workers, for each of which this one sends one and a half."""
    notifier, endpoint = notifier_at(HandClock(5.0), round_trip, Recorder(), window=120)
    for block, count in ((0, 65_535), (3, 65_535), (2, 20)):  # there is no block 0 or 3
        notifier.take(Header(kind=Kind.NOTICE, block_id=block, count=count))
    endpoint.congestion.acknowledged(120)
    assert endpoint.congestion.window == 120 * (1 - 20 * 1.5 / 120 / 2) + SEGMENT


def test_a_worker_cannot_claim_more_marks_than_it_gets_sums(round_trip):
    notifier, endpoint = notifier_at(HandClock(5.0), round_trip, Recorder(), window=120)
    for count in (20, 65_535, 65_535):  # of 30
        notifier.take(Header(kind=Kind.NOTICE, src_id=1, block_id=2, round=7, count=count))
    endpoint.congestion.acknowledged(120)
    assert endpoint.congestion.window == 120 * (1 - 30 * 1.5 / 120 / 2) + SEGMENT
    notifier.take(Header(kind=Kind.NOTICE, src_id=1, block_id=2, round=8, count=65_535))
    before = endpoint.congestion.window
    endpoint.congestion.acknowledged(120)
    assert endpoint.congestion.window < before + SEGMENT


def test_features_per_sum_follow_from_the_plan():
    """Over all workers and blocks they add up to features over sums."""
    plan = build_plan(load_graph("random:300:1500:1"), workers=5, slots=64, program="0" * 64)
    prediction = plan.manifest.direction(Direction.FORWARD).prediction
    blocks = plan.manifest.blocks
    endpoint = Endpoint(0, 1, Recorder(), ADDRESSES, Pace())
    ratios = [
        Notifier(endpoint, plan.manifest, block_schedules(part, ADDRESSES, 8, 1))._features_per_sum
        for part in plan.workers
    ]
    assert blocks > 1
    assert {len(each) for each in ratios} == {blocks}
    mean = sum(map(sum, ratios)) / blocks
    assert mean == pytest.approx(sum(prediction.packets_up) / sum(prediction.packets_down))


def test_it_counts_what_is_waited_and_what_goes_on():
    clock = HandClock(10.0)
    waiting = StallClock(clock)
    clock.seconds += 5
    assert waiting.seconds == 0
    waiting.start()
    clock.seconds += 2
    assert waiting.seconds == 2
    clock.seconds += 1
    waiting.stop()
    clock.seconds += 7
    assert waiting.seconds == 3
    waiting.start()
    clock.seconds += 0.5
    waiting.stop()
    assert waiting.seconds == 3.5
