# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Frames that leave and arrive in batches are the same frames, in their order."""

import errno
import socket
import struct
import threading

import numpy as np
import pytest

from switchgnn.host.direct.outbox import Departures
from switchgnn.host.wire import link
from switchgnn.host.wire.batches import FrameRows
from switchgnn.host.wire.faults import Faults, FaultyLink
from switchgnn.host.wire.link import SocketLink, UdpLink, open_link
from switchgnn.topologies.free_ports import free_udp_addresses
from tests.support.speed import seconds_here

SIZE = 188
_UDP_SEGMENT = 103
SECONDS = seconds_here(5.0)


@pytest.fixture(params=["native", "plain"])
def links(request, monkeypatch):
    """Two links; plain ones take one frame out of each message, which the kernel has cut."""
    if request.param == "plain":
        monkeypatch.setattr(link, "native_frames", lambda: None)
    here, there = free_udp_addresses(2)
    with open_link(f"udp:{here}:{there}") as a, open_link(f"udp:{there}:{here}") as b:
        yield a, b


def some_rows(count, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, SIZE), dtype=np.uint8)


def received(end, count, *, batches=True):
    frames = []
    while len(frames) < count:
        if not batches:
            frame = end.receive(SECONDS)
            assert frame is not None
            frames.append(bytes(frame))
            continue
        batch = end.receive_batch(SECONDS)
        assert batch is not None
        frames += [bytes(batch.frame(place)) for place in range(batch.first, batch.count)]
    return frames


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize("batches", [True, False])
def test_rows_arrive_as_they_left(links, cut, batches):
    """More than one message, and more than one batch, holds."""
    a, b = links
    a._cuts = cut
    frames = some_rows(200)
    a.send_rows(FrameRows(frames), 3, 190)
    assert received(b, 190, batches=batches) == [bytes(row) for row in frames[3:193]]
    assert a.traffic[:2] == b.traffic[2:] == (190, 190 * SIZE)
    assert b.receive_batch(0.0) is None


def test_one_at_a_time_and_many_may_alternate(links):
    a, b = links
    frames = some_rows(10)
    a.send_rows(FrameRows(frames), 0, 10)
    got = received(b, 1, batches=False)
    got += received(b, 9)
    assert got == [bytes(row) for row in frames]


def test_rows_that_are_filled_anew_leave_anew(links):
    a, b = links
    frames = some_rows(4)
    rows = FrameRows(frames)
    for number in range(3):
        frames[:] = number
        a.send_rows(rows, 0, 4)
        assert received(b, 4) == [bytes([number]) * SIZE] * 4


def test_a_message_arrives_whole_and_is_cut_here(links):
    """Or the kernel cuts it: nobody can tell, but for the last frame, which may be shorter."""
    a, b = links
    message, size = bytes(range(200)), struct.pack("H", 60)
    a._socket.sendmsg([message], [(socket.SOL_UDP, _UDP_SEGMENT, size)])
    assert received(b, 4) == [message[at : at + 60] for at in range(0, 200, 60)]
    assert b.traffic[2:] == (4, 200)


def test_who_waits_is_woken(links):
    a, b = links
    sender = threading.Thread(target=a.send, args=(bytes(60),))
    assert b.receive_batch(0.001) is None
    sender.start()
    batch = b.receive_batch(SECONDS)
    sender.join()
    assert batch is not None and bytes(batch.frame(batch.first)) == bytes(60)


def test_frames_of_different_sizes(links):
    a, b = links
    sizes = (60, 188, 0, 88, 1, 1500, 9000)
    for size in sizes:
        a.send(bytes([size % 256]) * size)
    assert received(b, len(sizes)) == [bytes([size % 256]) * size for size in sizes]
    assert a.traffic[:2] == b.traffic[2:] == (len(sizes), sum(sizes))


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize("longest", [60, 188, 1512, 9216])
def test_rows_of_which_some_are_shorter(links, monkeypatch, longest, cut):
    """In their order, whole, and counted; whoever cuts, and however many fit a message."""
    a, b = links
    if not cut:
        monkeypatch.setattr(UdpLink, "_send_rows", SocketLink._send_rows)
    rng = np.random.default_rng(longest)
    frames = rng.integers(0, 256, (150, longest), dtype=np.uint8)
    sizes = np.full(150, longest, dtype=np.uint32)
    shorter = [0, 7, 8, 60, 148, 149]
    sizes[shorter] = rng.integers(1, longest, len(shorter))
    whole = [bytes(frame[:size]) for frame, size in zip(frames, sizes, strict=True)]
    rows = FrameRows(frames, sizes)
    assert [bytes(rows.frame(place)) for place in range(150)] == whole
    for first, count in ((0, 150), (7, 1), (8, 53), (100, 50)):
        a.send_rows(rows, first, count)
        expected = whole[first : first + count]
        assert received(b, count) == expected
        assert rows.bytes_of(first, count) == sum(map(len, expected))
    assert a.traffic[:2] == b.traffic[2:]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO])
def test_a_kernel_that_does_not_cut(links, monkeypatch, number):
    a, b = links

    def refuse(*_):
        raise OSError(number, "no")

    monkeypatch.setattr(FrameRows, "send_cut", refuse)
    frames = some_rows(20)
    a.send_rows(FrameRows(frames), 0, 20)
    assert received(b, 20) == [bytes(row) for row in frames]


@pytest.mark.parametrize("cut", [True, False])
def test_nobody_listens(cut):
    """What is lost is asked for again later; nothing hangs, and nothing is raised."""
    here, there = free_udp_addresses(2)
    with open_link(f"udp:{here}:{there}") as alone:
        alone._cuts = cut
        for _ in range(3):
            alone.send_rows(FrameRows(some_rows(100)), 0, 100)
            assert alone.receive_batch(0.0) is None
            assert alone.receive_batch(0.01) is None


def test_departures_keep_the_order(links):
    a, b = links
    one, other = FrameRows(some_rows(10)), FrameRows(some_rows(10, seed=1))
    order = [(one, 0), (one, 1), (other, 5), (other, 6), (one, 2), (one, 2), (one, 1)]
    departures = Departures()
    for rows, place in order:
        departures.add(rows, place)
    departures.leave(a)
    departures.leave(a)
    assert received(b, len(order)) == [bytes(rows.frame(place)) for rows, place in order]
    assert b.receive_batch(0.0) is None


def test_batches_of_a_link_with_faults(links):
    a, b = links
    faulty = FaultyLink(b, Faults.parse("down.duplicate=0.5,seed=1"), 0)
    frames = some_rows(50)
    a.send_rows(FrameRows(frames), 0, 50)
    got = received(faulty, 1)
    while (batch := faulty.receive_batch(0.0)) is not None:
        got += [bytes(batch.frame(place)) for place in range(batch.first, batch.count)]
    assert list(dict.fromkeys(got)) == [bytes(row) for row in frames]
    assert len(got) == 50 + faulty.counts["down"].duplicated > 50
