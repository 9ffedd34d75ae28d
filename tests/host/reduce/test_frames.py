"""What leaves a worker, frame by frame."""

import numpy as np
import pytest

from switchgnn.host.reduce.frames import FragmentFrames, SumRing
from switchgnn.host.wire.header import BODY_AT, Header, Kind, unpack_header
from tests.host.addresses import Recorder, addresses_of

SLOTS, WORKER, SESSION = 8, 2, 7


def fragment_frames():
    return FragmentFrames(addresses_of(WORKER), WORKER, SESSION, SLOTS)


def write(frames, number, lanes, code):
    rows = np.atleast_2d(lanes).astype(np.int32)
    frames.write(number, rows, np.full(len(rows), code, dtype=np.uint8))


def expected(number, width, code):
    return Header(
        kind=Kind.REDUCE,
        src_id=WORKER,
        count=1,
        fragment=width,
        feature_group=code,
        session=SESSION,
        round=number >> 16,
        block_id=number & 0xFFFF,
    )


WIDTHS = [(1, 0), (8, 0), (9, 1), (16, 1), (17, 2), (33, 4), (128, 15), (129, 16), (255, 31)]


@pytest.mark.parametrize(("rest", "width"), WIDTHS)
def test_the_last_frame_is_as_narrow_as_possible_and_padded_with_zeros(rest, width):
    frames, wire = fragment_frames(), Recorder()
    write(frames, 8, np.full((SLOTS, 256), -1), 255)
    write(frames, 16, np.arange(256), 3)
    write(frames, 17, np.arange(256, 256 + rest), 3)
    write(frames, 18, np.full(256, 5), 4)
    frames.send(wire, 16, 3)
    codes = [(16, 31, 3), (17, width, 3), (18, 31, 4)]
    assert list(map(unpack_header, wire.frames)) == [expected(*each) for each in codes]
    narrow = np.frombuffer(wire.frames[1], dtype=">i4", offset=BODY_AT).tolist()
    assert narrow == [*range(256, 256 + rest), *[0] * (8 * (width + 1) - rest)]
    assert len(wire.frames[1]) == BODY_AT + 32 * (width + 1)


def test_sums_are_held_until_their_slot_is_used_again():
    frames = fragment_frames()
    sums = SumRing(frames, 3, SESSION, 16)
    write(frames, 17, np.zeros(44), 9)
    sums.await_sums(16, 2)
    total = expected(17, 5, 50)._replace(kind=Kind.REDUCED, src_id=0, count=3)
    frame = addresses_of(WORKER).frame(total.pack(np.arange(48, dtype=">i4").tobytes()))
    assert sums.awaits(17)
    assert sums.take(total, memoryview(frame))
    assert not sums.awaits(17)
    header, body = sums.held(17)
    assert header == total._replace(resend=True)
    assert body == frame[BODY_AT:]
    # Not here; never sent; sent by others before this stream began.
    assert [sums.held(number) for number in (16, 18, 15, 9)] == [None] * 4
    sums.await_sums(18, 7)
    assert sums.held(17) is not None
    sums.await_sums(25, 1)
    assert sums.held(17) is None
