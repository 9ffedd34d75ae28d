"""Faults and recordings: which link, which way, how often; and what a file then has."""

import time
from collections import deque

import numpy as np
import pytest

from switchgnn.base.files import WriteError
from switchgnn.capture.files import CaptureFiles
from switchgnn.host.links.faults import FaultError, FaultRates, Faults, FaultyDirection, FaultyLink
from switchgnn.host.links.recording import EMPTY_BYTES, Recording, RecordingLink, begin_recording
from switchgnn.host.wire.batches import FrameRows, new_batch
from switchgnn.host.wire.link import Link, Traffic

LINKS = ("w0", "w1", "l0s0", "l1s0")


def test_the_nearest_description_wins():
    faults = Faults.parse(
        "loss=0.1,up.loss=0.2,cables.loss=0.3,cables.down.loss=0.4,l1s0.loss=0.5,"
        "l1s0.up.loss=0.6,w1.corrupt=0.7,workers.corrupt=0.8,seed=3"
    )
    assert {(link, way): faults.of(link, way) for link in LINKS for way in ("up", "down")} == {
        ("w0", "up"): FaultRates(loss=0.2, corrupt=0.8),
        ("w0", "down"): FaultRates(loss=0.1, corrupt=0.8),
        ("w1", "up"): FaultRates(loss=0.2, corrupt=0.7),
        ("w1", "down"): FaultRates(loss=0.1, corrupt=0.7),
        ("l0s0", "up"): FaultRates(loss=0.3),
        ("l0s0", "down"): FaultRates(loss=0.4),
        ("l1s0", "up"): FaultRates(loss=0.6),
        ("l1s0", "down"): FaultRates(loss=0.5),
    }
    assert faults.seed == 3


@pytest.mark.parametrize(
    ("text", "cables"),
    [
        *((text, False) for text in ("", "seed=1", "workers.loss=0.1,w3.corrupt=0.1")),
        *((text, True) for text in ("loss=0.1", "down.loss=0", "cables.loss=0")),
        ("l0s1.up.loss=0.1", True),
    ],
)
def test_relays_are_for_who_speaks_of_cables(text, cables):
    assert Faults.parse(text).on_cables is cables


@pytest.mark.parametrize("name", ["w2", "l2s0", "l0s1"])
def test_a_link_that_is_not_there_is_refused(name):
    faults = Faults.parse(f"loss=0.1,{name}.up.loss=0.2")
    with pytest.raises(FaultError, match=rf"no link {name} for faults: .* w0, w1, l0s0, l1s0"):
        faults.check(LINKS)


def test_a_star_has_no_cables():
    Faults.parse("loss=0.1,workers.loss=0.2,w1.loss=0.1").check(LINKS[:2])
    with pytest.raises(FaultError, match="There is no link cables for faults"):
        Faults.parse("cables.loss=0.1").check(LINKS[:2])


@pytest.mark.parametrize("word", ["x.loss=0.1", "l0.loss=0.1", "loss=1", "lost=0.1", "loss=much"])
def test_what_cannot_be_read_is_refused(word):
    with pytest.raises(FaultError, match=r"loss|probability|cable"):
        Faults.parse(word)


def test_each_way_of_each_link_draws_for_itself():
    faults = Faults.parse("loss=0.5,seed=1")
    frame = bytes(60)
    fates = {
        (link, way): tuple(bool(direction.disturb(frame)) for _ in range(64))
        for link in LINKS
        for way in ("up", "down")
        for direction in [FaultyDirection(faults, link, way)]
    }
    assert len(set(fates.values())) == len(fates)
    again = FaultyDirection(faults, "l1s0", "down")
    assert fates["l1s0", "down"] == tuple(bool(again.disturb(frame)) for _ in range(64))


class Hose(Link):
    """A link on which everything that was poured in comes out; what was sent is kept."""

    name = "hose"
    traffic = Traffic(0, 0, 0, 0)

    def __init__(self, coming=()):
        self.coming, self.sent, self.closed = deque(coming), [], False

    def send(self, frame):
        self.sent.append(bytes(frame))

    def receive(self, _seconds):
        return memoryview(self.coming.popleft()) if self.coming else None

    def close(self):
        self.closed = True


def frames_in(path):
    with CaptureFiles([str(path)]) as opened:
        found = [(each.time, each.frame) for each in opened]
        assert opened.damages == []
    return found


@pytest.fixture
def path(tmp_path):
    begin_recording(tmp_path / "w0.pcap")
    return tmp_path / "w0.pcap"


def test_all_ways_are_recorded(path):
    coming = [bytes([number]) * 60 for number in range(5)]
    hose = Hose(coming)
    rows = FrameRows(np.arange(4 * 70, dtype=np.uint8).reshape(4, 70))
    before = time.time_ns()
    with RecordingLink(hose, Recording(path)) as link:
        link.send(b"one" * 20)
        link.send_rows(rows, 1, 2)
        assert bytes(link.receive(0)) == coming[0]
        batch = link.receive_batch(0)
        got = [bytes(batch.frame(index)) for index in range(batch.first, batch.count)]
        assert link.receive(0) is None and link.receive_batch(0) is None
    assert hose.closed
    sent = [b"one" * 20, *(bytes(rows.frame(index)) for index in (1, 2))]
    assert (hose.sent, got) == (sent, coming[1:])
    found = frames_in(path)
    assert [frame for _, frame in found] == [*sent, *coming]
    times = [when for when, _ in found]
    assert times == sorted(times)
    assert before <= times[0] and times[-1] <= time.time_ns()


def test_what_was_taken_of_a_batch_before_is_not_recorded_twice(path):
    batch = new_batch(4, 60)
    for number in range(4):
        batch.put(bytes([number]) * 60)
    batch.first = 2
    hose = Hose()
    hose.receive_batch = lambda _: batch
    RecordingLink(hose, Recording(path)).receive_batch(0)
    assert [frame[0] for _, frame in frames_in(path)] == [2, 3]


def test_of_faults_a_file_has_what_the_switch_sees(path):
    """What is lost on the way up has not come to it, and what is lost on the way down has left."""
    hose = Hose([bytes(60)] * 100)
    faults = Faults.parse("up.loss=0.5,down.loss=0.5,seed=1")
    with FaultyLink(RecordingLink(hose, Recording(path)), faults, 0) as link:
        for _ in range(100):
            link.send(b"u" * 60)
        came = 0
        while link.receive(0) is not None:
            came += 1
    assert 20 < len(hose.sent) < 80 and 20 < came < 80
    kinds = [frame[:1] for _, frame in frames_in(path)]
    assert (kinds.count(b"u"), kinds.count(b"\0")) == (len(hose.sent), 100)


def test_a_file_is_made_once(tmp_path, path):
    with pytest.raises(FileExistsError):
        begin_recording(path)
    assert path.stat().st_size == EMPTY_BYTES
    assert frames_in(path) == []
    with pytest.raises(WriteError, match=r"gone\.pcap"):
        Recording(tmp_path / "gone.pcap")
