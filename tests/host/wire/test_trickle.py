# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Pauses of a link on which frames trickle in."""

import socket

import pytest

from switchgnn.host.wire import batches
from switchgnn.host.wire.batches import Trickle
from switchgnn.host.wire.link import SocketLink

SPACING = 50e-6
# The pause gathers this many frames, but lasts for a millisecond at most.
TOGETHER, LONGEST = 16, 1e-3
SILENCE = 2e-3


def trickle_with(batches, spacing=SPACING, frames=1):
    """Return the pauses after some batches, and the time of the last batch."""
    trickle, now = Trickle(), 50.0
    for _ in range(batches):
        now += spacing * frames
        trickle.received(frames, now)
    return trickle, now


def test_the_first_frames_are_not_delayed():
    assert Trickle().pause(50.0) == 0
    trickle, now = trickle_with(1)
    assert trickle.pause(now) == 0


@pytest.mark.parametrize("frames", [1, 5])
def test_a_pause_gathers_a_batch(frames):
    trickle, now = trickle_with(50, spacing=10e-6, frames=frames)
    assert trickle.pause(now) == pytest.approx(TOGETHER * 10e-6, rel=0.01)


@pytest.mark.parametrize("spacing", [100e-6, 1e-3])
def test_a_pause_on_a_slower_line_is_a_millisecond_long(spacing):
    trickle, now = trickle_with(50, spacing=spacing)
    assert trickle.pause(now) == LONGEST


def test_after_a_large_batch_there_is_no_pause():
    trickle, now = trickle_with(50)
    trickle.received(TOGETHER, now + 1e-3)
    assert trickle.pause(now + 1e-3) == 0


def test_after_a_silence_there_is_no_pause():
    trickle, now = trickle_with(50)
    assert trickle.pause(now + SILENCE / 2) > 0
    assert trickle.pause(now + 2 * SILENCE) == 0


def test_a_silence_says_nothing_about_the_line():
    trickle, now = trickle_with(50)
    before = trickle.pause(now)
    trickle.received(1, now + 1.0)
    assert trickle.pause(now + 1.0) == before


class Time:
    """Stands for the module ``time``; it passes only in ``sleep`` and between frames."""

    def __init__(self):
        self.now, self.slept = 50.0, []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def trickling(monkeypatch):
    """A link on which frames have trickled in, the socket at its other end, and the time."""
    time = Time()
    monkeypatch.setattr(batches, "time", time)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with SocketLink(ours, "test") as here, theirs:
        for _ in range(3):
            theirs.send(b"frame")
            assert here.receive(1.0) is not None
            time.now += SPACING
        yield here, theirs, time


def test_a_batch_is_gathered_where_frames_trickle_in(trickling):
    here, theirs, time = trickling
    assert not time.slept
    theirs.send(b"frame")
    assert here.receive_batch(1.0).count == 1
    (pause,) = time.slept
    assert SPACING < pause <= LONGEST


def test_a_pause_is_no_longer_than_the_caller_waits(trickling):
    here, _, time = trickling
    assert here.receive_batch(1e-4) is None
    assert time.slept == [1e-4]


def test_neither_a_single_frame_nor_a_look_is_delayed(trickling):
    here, theirs, time = trickling
    theirs.send(b"frame")
    assert here.receive(1.0) is not None
    assert here.receive_batch(0.0) is None
    assert not time.slept
