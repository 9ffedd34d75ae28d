# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Rows that go through the native sieve first end where those end that are looked at one by one."""

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchgnn.host.direct.arrivals import Arrivals, Incoming
from switchgnn.host.direct.data_frames import data_frames, send_order
from switchgnn.host.direct.frames import GROUP, Envelopes, unpack
from switchgnn.host.direct.tally import DirectTally
from switchgnn.host.wire.batches import new_batch
from switchgnn.host.wire.header import BODY_AT, HEADER_AT
from switchgnn.station import Station
from tests.support.native import needs_compiler

pytestmark = needs_compiler
WORKERS, RECEIVER, MARK = 3, 1, 77
# How many rows each worker sends; the receiver none to itself.
ROWS = np.array([11, 0, 5])
WIDTH, FRAGMENTS = 40, 2
ROUNDS = (4, 5)
STATIONS = tuple(Station(f"02:00:00:00:00:{w:02x}", f"10.0.0.{w + 1}") for w in range(WORKERS))
_ECN_AT = 15


class Sink:
    def __init__(self):
        self.sent = []

    def send(self, frame):
        self.sent.append(bytes(frame))


def frames_of(sender, round_number, mark, asks):
    """All frames of a worker for the receiver."""
    rows = int(ROWS[sender])
    indptr = np.cumsum([0, *(rows * (peer == RECEIVER) for peer in range(WORKERS))])
    order = send_order(sender, indptr, FRAGMENTS, np.arange(rows))
    values = np.random.default_rng(sender + 10 * round_number).random((rows, WIDTH), np.float32)
    return data_frames(
        order,
        values,
        np.ones(rows, dtype=np.int64),
        worker=sender,
        envelopes=Envelopes(sender, STATIONS),
        round_number=round_number,
        mark=mark,
        asking=np.full(rows * FRAGMENTS, asks),
    )


class End:
    """The receiver, with two open rounds."""

    def __init__(self, *, sieve):
        self.tally, self.link, self.heard = DirectTally(), Sink(), {}
        self.arrivals = Arrivals(
            RECEIVER,
            self.link,
            Envelopes(RECEIVER, STATIONS),
            one_way=frozenset(),
            round_number=ROUNDS[0] - 1,
            tally=self.tally,
        )
        if not sieve:
            self.arrivals._sifter = None
        self.incoming = [Incoming(MARK, ROWS, FRAGMENTS) for _ in ROUNDS]
        for number, incoming in zip(ROUNDS, self.incoming, strict=True):
            self.arrivals.open_round(number, incoming)

    def take(self, frames):
        batch = new_batch(len(frames) + 1, 256)
        batch.put(b"somebody has taken this one")
        batch.first = 1
        for frame in frames:
            batch.put(frame)
        left = self.arrivals.sift(batch, 1.0, self.heard)
        news = len(left) < len(frames)
        for place in left:
            packet = unpack(batch.frame(place), RECEIVER)
            if packet is not None:
                self.heard[packet.sender] = 1.0
                news |= self.arrivals.take(packet)
        return news, len(left)

    def state(self):
        return (
            asdict(self.tally),
            self.heard,
            # Also what is said of a group while some of it is still to come.
            self.link.sent,
            [
                (
                    incoming.done,
                    incoming.waiting_for,
                    *(getattr(incoming.arrays, name).tobytes() for name in ARRAYS),
                )
                for incoming in self.incoming
            ],
        )


ARRAYS = ("seen", "payloads", "left_of_row", "whole")
PLAIN = [(w, r, MARK, False) for w in (0, 2) for r in ROUNDS]
OTHERS = [(0, ROUNDS[1], MARK, True), (2, ROUNDS[0], MARK + 1, False), (0, 9, MARK, False)]
FRAMES = {each: frames_of(*each) for each in (*PLAIN, *OTHERS)}


def one_frame():
    kinds = st.sampled_from([*PLAIN, *PLAIN, *OTHERS])
    damage = st.sampled_from([*("not",) * 8, "flipped", "cut", "marked"])
    return st.tuples(kinds, st.integers(0, 21), damage, st.integers(0, 4000))


def as_it_arrives(kind, number, damage, at):
    frame = FRAMES[kind][number % len(FRAMES[kind])].tobytes()
    changed = bytearray(frame)
    if damage == "flipped":
        changed[HEADER_AT + at % (len(frame) - HEADER_AT)] ^= 1 << at % 8
    elif damage == "marked":
        changed[_ECN_AT] |= 3
    return bytes(changed[: at % len(frame)] if damage == "cut" else changed)


@settings(max_examples=150, deadline=None)
@given(batches=st.lists(st.lists(one_frame(), min_size=1, max_size=60), max_size=4))
def test_the_sieve_changes_nothing(batches):
    quick, careful = End(sieve=True), End(sieve=False)
    for batch in batches:
        frames = [as_it_arrives(*each) for each in batch]
        assert quick.take(frames)[0] == careful.take(frames)[0]
        assert quick.state() == careful.state()


def test_what_is_plainly_right_is_taken():
    """Of each group but one frame, which is to be acknowledged."""
    end = End(sieve=True)
    frames = [bytes(frame) for kind in PLAIN for frame in FRAMES[kind]]
    news, left = end.take(frames)
    groups = sum(-(-int(rows) * FRAGMENTS // GROUP) for rows in ROWS) * len(ROUNDS)
    assert (news, left, len(end.link.sent)) == (True, groups, groups)
    assert all(incoming.done for incoming in end.incoming)


@pytest.mark.parametrize("size", [0, BODY_AT, 9000])
def test_frames_of_any_length_are_no_danger(size):
    end = End(sieve=True)
    batch = new_batch(2, 100)
    batch.put(FRAMES[PLAIN[0]][0].tobytes()[:100])
    batch.sizes[0] = size
    assert list(end.arrivals.sift(batch, 1.0, {})) == [0]
