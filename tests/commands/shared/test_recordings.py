# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The files of `--pcap` are made before the work begins, or nothing is."""

import pytest

from switchgnn.capture.files import CaptureFiles
from switchgnn.commands.shared.outputs import RecordingsError, recordings_in
from switchgnn.host.wire.recording import Recording
from switchgnn.planner.partition.leaf_spine import LeafSpine


def test_a_file_for_each_link(tmp_path):
    folder = tmp_path / "kept"
    with recordings_in(folder, 4, LeafSpine((0, 0, 1, 1), 2)) as recordings:
        assert [path.name for path in recordings.workers] == [f"w{w}.pcap" for w in range(4)]
        assert sorted(recordings.cables) == ["l0s0", "l0s1", "l1s0", "l1s1"]
        assert recordings.of_worker(2) == folder / "w2.pcap"
        with CaptureFiles([str(folder)]) as opened:
            assert list(opened) == []
        recording = Recording(recordings.files[0])
        recording.add([bytes(60)])
        recording.close()
    # Who has said nothing has no file.
    assert [path.name for path in folder.iterdir()] == ["w0.pcap"]


def test_nothing_is_left_where_nothing_was_sent(tmp_path):
    with recordings_in(tmp_path / "kept", 2, None, inside="switch") as recordings:
        assert recordings.files[0] == tmp_path / "kept/switch/w0.pcap"
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    with pytest.raises(KeyboardInterrupt), recordings_in(tmp_path / "mine", 2, None):
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_nobody_asked():
    with recordings_in(None, 3, None) as recordings:
        assert recordings.files == ()
        assert recordings.of_worker(2) is None


def test_two_in_one_folder(tmp_path):
    with (
        recordings_in(tmp_path / "kept", 1, None, inside="switch"),
        recordings_in(tmp_path / "kept", 1, None, inside="host") as recordings,
    ):
        assert recordings.files[0] == tmp_path / "kept/host/w0.pcap"
        assert recordings.files[0].exists()
    assert list(tmp_path.iterdir()) == []


def test_packets_of_another_run_are_not_mixed_in(tmp_path):
    (tmp_path / "w7.pcap").write_text("")
    with (
        pytest.raises(RecordingsError, match=r"another run \(w7.pcap\)"),
        recordings_in(tmp_path, 2, None),
    ):
        raise AssertionError
    assert [path.name for path in tmp_path.iterdir()] == ["w7.pcap"]


@pytest.mark.parametrize("place", ["none/kept", "file/kept", "file"])
def test_a_place_that_cannot_be_written(tmp_path, place):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(RecordingsError, match="Packets cannot be kept in"),
        recordings_in(tmp_path / place, 2, None),
    ):
        raise AssertionError
