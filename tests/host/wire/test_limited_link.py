# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A link over UDP with a bandwidth: when frames leave, by a clock of the test."""

import socket

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.host.errors import LinkError
from switchgnn.host.wire.batches import FrameRows
from switchgnn.host.wire.link import LimitedUdpLink, TokenBucket, UdpLink, open_link
from switchgnn.topologies.free_ports import free_udp_addresses
from tests.support.speed import seconds_here

RATE, BURST = 1000.0, 300


class Clock:
    """Time passes only while somebody sleeps; each sleep is late."""

    def __init__(self, late=0.0):
        self.now, self.late, self.sleeps = 50.0, late, 0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        assert seconds > 0
        self.sleeps += 1
        self.now += seconds + self.late


def bucket_with(clock):
    return TokenBucket(RATE, BURST, clock, clock.sleep)


@given(
    st.lists(st.tuples(st.integers(1, 900), st.floats(0, 2)), min_size=1, max_size=40),
    st.floats(0, 0.01),
)
def test_no_interval_has_more_than_the_rate_and_a_burst(sends, late):
    clock = Clock(late)
    bucket, left = bucket_with(clock), []
    for size, pause in sends:
        clock.now += pause
        bucket.take(size)
        left.append((clock.now, size))
    for i, (begin, _) in enumerate(left):
        for j in range(i, len(left)):
            # What is longer than a burst may leave as soon as the bucket is full.
            most = max(BURST, left[j][1]) + (left[j][0] - begin) * RATE
            assert sum(size for _, size in left[i : j + 1]) <= most + 1e-6


@pytest.mark.parametrize("late", [0.0, 0.05])
def test_a_busy_sender_gets_the_whole_rate_even_if_sleeps_are_late(late):
    clock = Clock(late)
    bucket = bucket_with(clock)
    begin = clock.now
    for _ in range(1000):
        bucket.take(100)
    assert clock.now - begin == pytest.approx((1000 * 100 - BURST) / RATE, abs=0.1 + 2 * late)


def test_a_burst_leaves_without_a_wait():
    clock = Clock()
    bucket = bucket_with(clock)
    for _ in range(3):
        bucket.take(100)
    assert clock.sleeps == 0
    bucket.take(1)
    assert clock.sleeps == 1


@pytest.fixture
def switch():
    """Where the other end of a link receives."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(seconds_here(5))
        yield receiver


def description(switch, *bandwidth):
    fields = "udp", *free_udp_addresses(1), "127.0.0.1", switch.getsockname()[1], *bandwidth
    return ":".join(map(str, fields))


def test_rows_leave_at_the_rate_and_in_order(switch):
    frames = np.arange(60, dtype=np.uint8).repeat(1000).reshape(60, 1000)
    sizes = np.full(60, 1000, dtype=np.uint32)
    sizes[::7] = 400
    clock = Clock()
    with open_link(description(switch, 0.8)) as link:  # 100 bytes in a millisecond
        assert isinstance(link, LimitedUdpLink)
        link._bucket = TokenBucket(100_000.0, 2000, clock, clock.sleep)
        begin = clock.now
        link.send_rows(FrameRows(frames, sizes), 0, 50)
        link.send(bytes(frames[50]))
        total = int(sizes[:50].sum()) + 1000
        assert link.traffic[:2] == (51, total)
    assert clock.now - begin == pytest.approx((total - 2000) / 100_000)
    came = [switch.recv(2000) for _ in range(51)]
    assert [frame[0] for frame in came] == list(range(51))
    assert [len(frame) for frame in came[:50]] == sizes[:50].tolist()


def test_a_link_without_a_bandwidth_has_no_bucket(switch):
    with open_link(description(switch)) as link:
        assert type(link) is UdpLink


@pytest.mark.parametrize("bandwidth", ["0", "-1", "nan", "inf", "fast", "", "1:2"])
def test_what_is_no_bandwidth_is_refused(switch, bandwidth):
    with pytest.raises(LinkError, match=r"SWITCH_PORT\[:MBIT\]"):
        open_link(description(switch, bandwidth))
