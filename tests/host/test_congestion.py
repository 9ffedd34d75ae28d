# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Window and rate: halved once per round trip, grown by a segment; all workers are told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.host.addresses import Addresses
from switchgnn.host.congestion import Congestion
from switchgnn.host.header import Header, Kind, unpack_header
from switchgnn.host.notice import Notifier
from switchgnn.host.pace import Pace
from switchgnn.host.round_trip import RoundTrip
from switchgnn.host.tally import Tally

ROUND_TRIP = 0.01
SEGMENT = 8


@pytest.fixture
def round_trip():
    made = RoundTrip()
    made.measured(ROUND_TRIP)
    return made


def test_a_mark_halves_and_more_marks_in_one_round_trip_do_not(round_trip):
    congestion = Congestion(Pace(window=128), round_trip)
    congestion.acknowledged(1000, 0.0)
    congestion.acknowledged(1000, 0.0)
    wide = congestion.window
    assert wide == 128
    for at in (1.0, 1.0 + ROUND_TRIP / 3, 1.0 + ROUND_TRIP / 2):
        congestion.slow_down(at)
    assert congestion.window == wide / 2
    assert congestion.rate == pytest.approx(wide / ROUND_TRIP / 2)
    assert congestion.cuts == 1
    congestion.slow_down(1.0 + 1.5 * ROUND_TRIP)
    assert congestion.window == wide / 4
    assert congestion.rate == pytest.approx(wide / ROUND_TRIP / 4)


def test_it_never_stops_and_grows_by_a_segment_per_round_trip(round_trip):
    congestion = Congestion(Pace(window=128), round_trip)
    for at in range(20):
        congestion.slow_down(1.0 + at)
    assert congestion.window == Pace(window=128).group_size
    assert congestion.rate == pytest.approx(SEGMENT / ROUND_TRIP)
    narrow = congestion.window
    congestion.acknowledged(int(narrow), 30.0)
    assert congestion.window == narrow + SEGMENT
    assert congestion.rate == pytest.approx(2 * SEGMENT / ROUND_TRIP)


def test_the_rate_is_kept_and_tells_how_long_to_wait(round_trip):
    congestion = Congestion(Pace(window=128), round_trip)
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
    assert sent == pytest.approx(rate, abs=2 * SEGMENT)


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
            congestion.acknowledged(pace.group_size, now)
        assert pace.group_size <= congestion.window <= window or congestion.window == 1
        assert congestion.rate is None or congestion.rate > 0
        assert 0 <= congestion.allowance(0, now) <= window


class _Wire:
    name = "wire"

    def __init__(self):
        self.frames = []

    def send(self, frame):
        self.frames.append(bytes(frame))


def test_others_are_told_once_per_round_trip(round_trip, monkeypatch):
    clock = [5.0]
    monkeypatch.setattr("switchgnn.host.notice.time.monotonic", lambda: clock[0])
    wire, tally = _Wire(), Tally()
    addresses = Addresses("02:00:00:00:00:01", "10.0.0.1", "02:00:00:00:ff:fe", "10.0.255.254")
    notifier = Notifier(wire, addresses, 3, round_trip, tally)
    for gap in (0.0, ROUND_TRIP / 2, ROUND_TRIP):
        clock[0] += gap
        notifier.notify(Header(kind=Kind.SUM, dst_id=9, block_id=2, fragment=1, round=7, ecn=True))
    assert len(wire.frames) == tally.notices == 2
    header = unpack_header(memoryview(wire.frames[0]))
    assert (header.kind, header.src_id) == (Kind.NOTICE, 3)
    assert (header.round, header.block_id, header.fragment) == (7, 2, 1)
