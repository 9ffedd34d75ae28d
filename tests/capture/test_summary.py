"""The summary counts each packet once."""

import pytest

from switchgnn.capture.packet import Captured, decode, usual_names
from switchgnn.capture.summary import Summary
from switchgnn.host.direct.frames import PROTOCOL as DIRECT
from switchgnn.host.wire.header import Header, Kind
from tests.capture.drawn import WORD, WORKERS, control, feature, flipped, frame_of, over_link

NAMES = usual_names()


def note(summary, time, frame, link="-"):
    return list(summary.note(decode(Captured(time, link, frame, len(frame)), NAMES)))


def chapters_of(frames, link="-", **limits):
    """The chapters of (ns, frame) or (ns, frame, link), and the summary."""
    summary = Summary(**limits)
    chapters = []
    for time, frame, *where in frames:
        chapters += note(summary, time, frame, *(where or [link]))
    return [*chapters, *summary.rest()], summary


def told(frames, link="-", **limits):
    chapters, summary = chapters_of(frames, link, **limits)
    return [each.to_dict() for each in chapters], summary


def test_a_block_from_its_first_feature_to_its_advance():
    header = Header(kind=Kind.SUM, dst_id=7, block_id=2, count=2, fragment=WORD, session=1, round=3)
    sum_of_7 = over_link(header, bytes(128), WORKERS[1], down=True)
    frames = [
        (10, control(Kind.DONE, 0, round=3)),
        (20, control(Kind.ADVANCE, 0, down=True, round=3)),
        (30, feature(0, src_id=5, block_id=2, round=3)),
        (31, feature(0, src_id=6, block_id=2, round=3)),
        (32, feature(1, src_id=8, block_id=2, round=3)),
        (33, feature(0, src_id=5, block_id=2, round=3, fragment=1)),
        (40, sum_of_7),
        (41, control(Kind.ACK, 0, down=True, block_id=2, round=3)),
        (50, feature(0, src_id=5, block_id=2, round=3)),
        (51, feature(1, src_id=8, block_id=2, round=3, resend=True)),
        (60, control(Kind.RECALL, 1, block_id=2, round=3)),
        (70, control(Kind.ADVANCE, 1, down=True, block_id=2, round=3)),
    ]
    chapters, summary = told(frames)
    opening, block = chapters
    assert (opening["block"], opening["begin_ns"], opening["end_ns"]) == (0, 10, 20)
    assert (block["session"], block["round"], block["block"], block["fragments"]) == (1, 3, 2, 2)
    assert block["parties"] == {
        "w0": {"sent": {"feature": 4, "again": 1}, "got": {"ack": 1}},
        "w1": {"sent": {"feature": 2, "raw": 1, "recall": 1}, "got": {"sum": 1, "advance": 1}},
    }
    assert (block["begin_ns"], block["end_ns"]) == (30, 70)
    assert (block["first_ns"]["feature"], block["last_ns"]["sum"]) == (30, 40)
    assert (summary.late, summary.unsound) == (0, 0)


def reduce_frame(kind, number, worker=0, *, down=False, **fields):
    """A frame of an all-reduce, of 32 numbers, from a worker or to it."""
    header = Header(kind=kind, session=1, block_id=number % 2**16, round=number >> 16, **fields)
    if kind is Kind.REDUCING:
        return control(kind, worker, down=down, block_id=header.block_id, round=header.round)
    header = header._replace(fragment=WORD)
    return over_link(header, bytes(128), WORKERS[worker], down=down)


def test_an_all_reduce_has_a_chapter_for_as_many_fragments_as_there_are_slots():
    first = 2**16 - 512
    frames = [
        reduce_frame(Kind.REDUCING, 0),
        reduce_frame(Kind.REDUCE, first),
        reduce_frame(Kind.REDUCE, first + 511),
        reduce_frame(Kind.REDUCE, first + 512),
        reduce_frame(Kind.REDUCE, first, resend=True),
        reduce_frame(Kind.REDUCE, first, 1),
        reduce_frame(Kind.REDUCED, first, down=True),
        reduce_frame(Kind.REDUCED, first, 1, resend=True),
        reduce_frame(Kind.REDUCING, first + 1, 1, down=True),
    ]
    chapters, _ = chapters_of([(10**9 * time, frame) for time, frame in enumerate(frames)])
    assert [line for chapter in chapters for line in chapter.lines(0)] == [
        f"session 1, all-reduce of fragments {first} to {first + 511}: 1.000000 to 8.000000 s, "
        "2 fragments; first reduce at 1.000000; last reduced at 7.000000",
        "  w0 sent 3 reduce (1 again); got 1 reduced",
        "  w1 sent 1 reduce, 1 reduced; got 1 reducing",
        f"session 1, all-reduce of fragments {first + 512} to {first + 1023}: "
        "3.000000 to 3.000000 s, 1 fragment; first reduce at 3.000000",
        "  w0 sent 1 reduce",
    ]


def test_blocks_are_told_as_soon_as_newer_ones_are_there():
    summary, blocks = Summary(most_open=2), []
    for block in range(1, 6):
        blocks += [each.key.block for each in note(summary, block, feature(0, block_id=block))]
    assert blocks == [1, 2, 3]
    assert not note(summary, 9, feature(0, block_id=1))
    assert summary.late == 1


def test_what_is_not_sound_says_nothing():
    chapters, summary = told([(1, flipped(feature(0, block_id=1), 70))])
    assert (chapters, summary.unsound) == ([], 1)


def test_packets_between_hosts_count_at_their_own_ends_only():
    """A packet that is read from several links counts once."""
    header = Header(kind=Kind.FEATURE, src_id=3, block_id=1, round=2)
    row = frame_of(header, bytes(128), WORKERS[0], WORKERS[1], protocol=DIRECT)
    header = header._replace(block_id=1 << 8)
    back = frame_of(header, bytes(128), WORKERS[1], WORKERS[0], protocol=DIRECT)
    frames = [(1, row, "w0"), (2, row, "l0s0"), (3, row, "w1"), (4, back, "w1"), (5, back, "w0")]
    [chapter], _ = told(frames)
    one = {"sent": {"feature": 1}, "got": {"feature": 1}}
    assert chapter["direct"] and chapter["round"] == 2
    assert chapter["parties"] == {"w0": one, "w1": one}


@pytest.mark.parametrize("link", ["w0", "s1-eth3"])
def test_a_worker_counts_wherever_it_was_captured(link):
    [chapter], _ = told([(1, feature(0, block_id=1))], link)
    assert chapter["parties"] == {"w0": {"sent": {"feature": 1}, "got": {}}}


def test_few_features_are_remembered():
    frames = [(number, feature(0, src_id=number, block_id=1)) for number in range(50)]
    [chapter], _ = told([*frames, frames[0]], remembered=10)
    assert chapter["repetitions_known"] is False
    assert chapter["parties"]["w0"]["sent"]["feature"] == 51
    [chapter], _ = told([*frames, frames[0]], remembered=50)
    assert chapter["repetitions_known"] is True
    assert chapter["parties"]["w0"]["sent"] == {"feature": 51, "again": 1}


def test_many_addresses_are_counted_together():
    frame = bytearray(feature(0, block_id=1))
    frames = []
    for number in range(600):
        frame[6:12] = b"\x04" + number.to_bytes(5, "big")
        frames.append((number, bytes(frame)))
    [chapter], _ = told(frames)
    assert len(chapter["parties"]) <= 515
    assert chapter["parties"]["others"]["sent"]["feature"] == 600 - 512
