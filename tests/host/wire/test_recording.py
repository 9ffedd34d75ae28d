# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A recorded link passes what it gets, in the same order, and all of it is in the file."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque

import numpy as np
import pytest

from switchgnn.base.full_disk import WriteError
from switchgnn.capture.files import CaptureFiles
from switchgnn.host.wire.batches import FrameRows, new_batch
from switchgnn.host.wire.faults import Faults, FaultyLink, open_worker_link
from switchgnn.host.wire.link import Link, Traffic, UdpLink, open_link
from switchgnn.host.wire.recording import EMPTY_BYTES, Recording, RecordingLink, begin_recording
from switchgnn.topologies.free_ports import free_udp_addresses


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
        got = [bytes(batch.frame(place)) for place in range(batch.first, batch.count)]
        assert link.receive(0) is None and link.receive_batch(0) is None
    assert hose.closed
    sent = [b"one" * 20, *(bytes(rows.frame(place)) for place in (1, 2))]
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


def test_a_link_of_udp(path):
    here, there = free_udp_addresses(2)
    with (
        RecordingLink(open_link(f"udp:{here}:{there}"), Recording(path)) as link,
        open_link(f"udp:{there}:{here}") as other,
    ):
        rows = FrameRows(np.arange(40 * 70, dtype=np.uint8).reshape(40, 70))
        link.send_rows(rows, 0, 40)
        got = []
        while len(got) < 40:
            got.append(bytes(other.receive(5.0)))
        other.send(b"back" * 15)
        assert bytes(link.receive(5.0)) == b"back" * 15
        assert link.traffic.frames_up == 40
        assert link.name.startswith("udp:")
    assert [frame for _, frame in frames_in(path)] == [*got, b"back" * 15]


def test_a_link_that_is_not_recorded_is_the_link_itself(path):
    """It costs nothing where nobody asks."""
    here, there = free_udp_addresses(2)
    for recording, kind in ((None, UdpLink), (path, RecordingLink)):
        with open_worker_link(f"udp:{here}:{there}", "", 0, recording=recording) as link:
            assert type(link) is kind


def test_a_file_is_made_once(tmp_path, path):
    with pytest.raises(FileExistsError):
        begin_recording(path)
    assert path.stat().st_size == EMPTY_BYTES
    assert frames_in(path) == []
    with pytest.raises(WriteError, match=r"gone\.pcap"):
        Recording(tmp_path / "gone.pcap")


def test_a_full_disk_leaves_whole_packets(path, monkeypatch):
    recording = Recording(path)
    recording.add([b"a" * 60])
    real = os.write

    def little(file, content):
        """Take a part, and then nothing more."""
        monkeypatch.setattr(os, "write", full)
        return real(file, content[:50])

    def full(_file, _content):
        raise OSError(28, "No space left on device")

    # The sentence speaks of this folder, which Python finds by writing to it.
    tempfile.gettempdir()
    monkeypatch.setattr(os, "write", little)
    with pytest.raises(WriteError, match="No space left"):
        recording.add([b"b" * 60, b"c" * 60])
    recording.close()
    assert [frame for _, frame in frames_in(path)] == [b"a" * 60]


KILLED = """
import sys
from pathlib import Path
from switchgnn.host.wire.recording import Recording
recording = Recording(Path(sys.argv[1]))
for number in range(100):
    recording.add([bytes([number]) * 60])
print("written", flush=True)
sys.stdin.read()
"""


def test_a_file_is_whole_when_its_writer_is_killed(path):
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"written\n"
        process.send_signal(signal.SIGKILL)
    assert [frame[0] for _, frame in frames_in(path)] == list(range(100))
