# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Window and rate: halved once per round trip, grown by a segment; all workers are told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.host.congestion import Congestion
from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.notice import Notifier
from switchgnn.host.innetwork.tally import InNetworkTally
from switchgnn.host.pace import Pace
from switchgnn.host.round_trip import RoundTrip
from switchgnn.host.wire.header import Header, Kind, unpack_header
from tests.host.addresses import ADDRESSES
from tests.support.hand_clock import HandClock

ROUND_TRIP = 0.01
SEGMENT = 8


@pytest.fixture
def round_trip():
    made = RoundTrip()
    made.measured(ROUND_TRIP)
    return made


def opened(round_trip, window=128):
    """A control that has opened its window."""
    congestion = Congestion(Pace(window=window), round_trip)
    while congestion.window < window:
        congestion.acknowledged(int(congestion.window))
    return congestion


def test_before_the_first_mark_the_window_doubles(round_trip):
    congestion = Congestion(Pace(window=128), round_trip)
    windows = []
    for _ in range(4):
        windows.append(congestion.window)
        congestion.acknowledged(int(congestion.window))
    assert windows == [16, 32, 64, 128]
    assert congestion.rate is None


def test_a_mark_halves_and_more_marks_in_one_round_trip_do_not(round_trip):
    congestion = opened(round_trip)
    for at in (1.0, 1.0 + ROUND_TRIP / 3, 1.0 + ROUND_TRIP / 2):
        congestion.slow_down(at)
    assert (congestion.window, congestion.cuts) == (64, 1)
    assert congestion.rate == pytest.approx(1.25 * 64 / ROUND_TRIP)
    congestion.slow_down(1.0 + 1.5 * ROUND_TRIP)
    assert (congestion.window, congestion.cuts) == (32, 2)


def test_half_of_what_is_missing_comes_back_then_a_segment_per_round_trip(round_trip):
    congestion = opened(round_trip)
    congestion.slow_down(1.0)
    congestion.slow_down(2.0)
    windows = []
    for _ in range(7):
        congestion.acknowledged(128)
        windows.append(congestion.window)
    assert windows[:5] == [48, 56, 60, 62, 63]
    assert windows[5:] == [(63 + 72) / 2, ((63 + 72) / 2 + 80) / 2]


def test_it_never_stops(round_trip):
    congestion = opened(round_trip)
    for at in range(20):
        congestion.slow_down(1.0 + at)
    assert congestion.window == Pace(window=128).group_size
    assert congestion.rate == pytest.approx(1.25 * SEGMENT / ROUND_TRIP)


def test_loss_narrows_only_what_a_ring_may_not_hold(round_trip):
    congestion = opened(round_trip)
    for at in range(20):
        congestion.lost(1.0 + at)
    assert congestion.window == 16


def test_the_rate_is_kept_and_tells_how_long_to_wait(round_trip):
    congestion = opened(round_trip)
    for at in range(20):
        congestion.slow_down(1.0 + at)
    rate = congestion.rate
    sent, now = 0, 100.0
    while now < 101.0:
        allowed = congestion.allowance(0, now)
        congestion.sent(allowed)
        sent += allowed
        assert allowed or congestion.wait() > 0
        now += 0.001
    assert sent == pytest.approx(rate, rel=0.02, abs=2 * SEGMENT)


def test_without_control_marks_change_nothing(round_trip):
    congestion = Congestion(Pace(window=64, congestion_control=False), round_trip)
    congestion.slow_down(1.0)
    assert (congestion.window, congestion.rate) == (64, None)
    assert congestion.allowance(10, 1.0) == 54


@given(st.lists(st.tuples(st.floats(0.0001, 1.0), st.booleans()), max_size=80), st.integers(1, 500))
def test_window_and_rate_stay_within_bounds(events, window):
    round_trip = RoundTrip()
    pace = Pace(window=window)
    congestion = Congestion(pace, round_trip)
    now = 1.0
    for gap, is_mark in events:
        now += gap
        round_trip.measured(gap)
        if is_mark:
            congestion.slow_down(now)
        else:
            congestion.acknowledged(pace.group_size)
        assert pace.group_size <= congestion.window <= window or congestion.window == 1
        assert congestion.rate is None or congestion.rate > 0
        assert 0 <= congestion.allowance(0, now) <= window


class _Wire:
    name = "wire"

    def __init__(self):
        self.frames = []

    def send(self, frame):
        self.frames.append(bytes(frame))


def test_others_are_told_once_per_round_trip(round_trip):
    clock = HandClock(5.0)
    wire, tally = _Wire(), InNetworkTally()
    pace = Pace()
    congestion = Congestion(pace, round_trip)
    known = (3, 1, 0, wire, ADDRESSES, pace, round_trip, congestion, tally)
    notifier = Notifier(Endpoint(*known, clock=clock))
    for gap in (0.0, ROUND_TRIP / 2, ROUND_TRIP):
        clock.seconds += gap
        notifier.notify(Header(kind=Kind.SUM, dst_id=9, block_id=2, fragment=1, round=7, ecn=True))
    assert len(wire.frames) == tally.notices == 2
    header = unpack_header(memoryview(wire.frames[0]))
    assert (header.kind, header.src_id) == (Kind.NOTICE, 3)
    assert (header.round, header.block_id, header.fragment) == (7, 2, 1)
