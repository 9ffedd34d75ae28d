"""Rows that go through the native fast path end where those end that Python takes."""

import zlib
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchgnn.host.base.status import DirectCounters
from switchgnn.host.direct.arrivals import Arrivals, Incoming
from switchgnn.host.direct.frames import GROUP, Envelopes, Outgoing, data_frames, send_order, unpack
from switchgnn.host.direct.framing import Framing, Runs
from switchgnn.host.wire.batches import new_batch
from switchgnn.host.wire.header import BODY_AT, HEADER_AT
from tests.host.addresses import Recorder, station
from tests.support.markers import needs_compiler

pytestmark = needs_compiler
WORKERS, RECEIVER, MARK = 3, 1, 77
ROWS = np.array([11, 0, 5])
WIDTH = 40
# Frames of fragments, and frames with parts of several rows of which the last one is shorter.
FRAMINGS = {"fragment": Framing(None), "packed": Framing(46 + 100)}
ROUNDS = (4, 5)
STATIONS = tuple(map(station, range(WORKERS)))
_ECN_AT = 15


def frames_of(sender, round_number, mark, asks, framing):
    """All frames of a worker for the receiver."""
    rows = int(ROWS[sender])
    indptr = np.cumsum([0, *(rows * (peer == RECEIVER) for peer in range(WORKERS))])
    outgoing = Outgoing(Runs(FRAMINGS[framing], WIDTH, indptr))
    values = np.random.default_rng(sender + 10 * round_number).random((rows, WIDTH), np.float32)
    whole = outgoing.give(np.arange(rows), values, np.ones(rows, dtype=np.int64))
    packed = data_frames(
        send_order(sender, outgoing.runs.first, whole),
        outgoing,
        worker=sender,
        envelopes=Envelopes(sender, STATIONS),
        round_number=round_number,
        mark=mark,
        asking=np.full(len(whole), asks),
    )
    return [bytes(packed.frame(index)) for index in range(packed.count)]


class End:
    """The receiver, with two open rounds."""

    def __init__(self, framing, *, fast_path):
        self.counters, self.link, self.heard = DirectCounters(), Recorder(), {}
        self.arrivals = Arrivals(
            *(RECEIVER, self.link, Envelopes(RECEIVER, STATIONS)),
            one_way=frozenset(),
            counters=self.counters,
        )
        if not fast_path:
            self.arrivals._native = None
        runs = Runs(FRAMINGS[framing], WIDTH, np.cumsum([0, *ROWS]))
        self.incoming = [Incoming(MARK, runs) for _ in ROUNDS]
        for number, incoming in zip(ROUNDS, self.incoming, strict=True):
            self.arrivals.open_round(number, incoming)

    def take(self, frames):
        batch = new_batch(len(frames) + 1, 256)
        batch.put(b"somebody has taken this one")
        batch.first = 1
        for frame in frames:
            batch.put(frame)
        left = self.arrivals.take_plain(batch, 1.0, self.heard)
        news = len(left) < len(frames)
        for index in left:
            packet = unpack(batch.frame(index), RECEIVER)
            if packet is not None:
                self.heard[packet.sender] = 1.0
                news |= self.arrivals.take(packet)
        return news, len(left)

    def state(self):
        return (
            asdict(self.counters),
            self.heard,
            # Also what is said of a group while some of it is still to come.
            self.link.frames,
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
FRAMES = {
    (framing, each): frames_of(*each, framing) for framing in FRAMINGS for each in (*PLAIN, *OTHERS)
}


def one_frame():
    kinds = st.sampled_from([*PLAIN, *PLAIN, *OTHERS])
    damage = st.sampled_from([*("not",) * 8, "flipped", "cut", "marked", "other length", "longer"])
    return st.tuples(kinds, st.integers(0, 21), damage, st.integers(0, 4000))


def as_it_arrives(framing, kind, number, damage, at):
    frame = FRAMES[framing, kind][number % len(FRAMES[framing, kind])]
    changed = bytearray(frame)
    if damage == "flipped":
        changed[HEADER_AT + at % (len(frame) - HEADER_AT)] ^= 1 << at % 8
    elif damage == "marked":
        changed[_ECN_AT] |= 3
    elif damage == "other length":
        changed = resealed(changed[: BODY_AT + 4 + at % (len(frame) - BODY_AT - 4) // 4 * 4])
    elif damage == "longer":
        changed = resealed(changed + bytes(4 + at % 50 // 4 * 4))
    return bytes(changed[: at % len(frame)] if damage == "cut" else changed)


def resealed(frame):
    """A sound frame of another length, as its IPv4 header and its checksum say."""
    frame[16:18] = (len(frame) - 14).to_bytes(2, "big")
    head = zlib.crc32(frame[HEADER_AT : BODY_AT - 4])
    frame[BODY_AT - 4 : BODY_AT] = zlib.crc32(frame[BODY_AT:], head).to_bytes(4, "big")
    return frame


@pytest.mark.parametrize("framing", FRAMINGS)
@settings(max_examples=100, deadline=None)
@given(batches=st.lists(st.lists(one_frame(), min_size=1, max_size=60), max_size=4))
def test_the_fast_path_changes_nothing(framing, batches):
    quick, careful = End(framing, fast_path=True), End(framing, fast_path=False)
    for batch in batches:
        frames = [as_it_arrives(framing, *each) for each in batch]
        assert quick.take(frames)[0] == careful.take(frames)[0]
        assert quick.state() == careful.state()


@pytest.mark.parametrize("framing", FRAMINGS)
def test_what_is_plainly_right_is_taken(framing):
    """Of each group but one frame, which is to be acknowledged."""
    end = End(framing, fast_path=True)
    news, left = end.take([frame for kind in PLAIN for frame in FRAMES[framing, kind]])
    groups = sum(-(-len(FRAMES[framing, kind]) // GROUP) for kind in PLAIN)
    assert (news, left, len(end.link.frames)) == (True, groups, groups)
    assert all(incoming.done for incoming in end.incoming)


@pytest.mark.parametrize("fast_path", [True, False])
def test_a_frame_that_comes_twice_counts_once(fast_path):
    end = End("packed", fast_path=fast_path)
    frame = FRAMES["packed", PLAIN[0]][0]
    end.take([frame, frame])
    assert (end.counters.repeated, end.counters.data_received) == (1, 1)


@pytest.mark.parametrize("fast_path", [True, False])
@pytest.mark.parametrize("change", [-4, 4])
def test_a_frame_of_another_length_is_dropped(fast_path, change):
    """Sound, and of our schedule: but what it says of its length cannot be."""
    end = End("packed", fast_path=fast_path)
    frame = bytearray(FRAMES["packed", PLAIN[0]][0])
    other = frame[:change] if change < 0 else frame + bytes(change)
    assert end.take([bytes(resealed(other))]) == (False, 1)
    assert (end.counters.wrong, end.counters.data_received) == (1, 0)
    assert not end.incoming[0].arrays.seen.any()


@pytest.mark.parametrize("size", [0, BODY_AT, 9000])
def test_frames_of_any_length_are_no_danger(size):
    end = End("packed", fast_path=True)
    batch = new_batch(2, 100)
    batch.put(FRAMES["packed", PLAIN[0]][0][:100])
    batch.sizes[0] = size
    assert list(end.arrivals.take_plain(batch, 1.0, {})) == [0]
