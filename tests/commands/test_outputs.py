"""What cannot be written is said before the work begins, and nothing stays of the trial."""

import logging
from functools import partial
from pathlib import Path

import pytest

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import WriteError
from switchgnn.capture.files import CaptureFiles
from switchgnn.commands.shared.outputs import check_outputs
from switchgnn.host.links.recording import Recording
from switchgnn.jobs.logs import RecordingsError, recordings_in, run_logs, told_aloud
from switchgnn.planner.partition.leaf_spine import LeafSpine
from tests.planner.helpers import refusal_of
from tests.support.kept_logs import take_kept_logs

refused = partial(refusal_of, WriteError, check_outputs)


@pytest.mark.parametrize("kind", ["folders", "files", "replaced"])
class TestEveryKind:
    def test_what_can_be_written(self, kind, tmp_path):
        check_outputs(**{kind: {"--out": tmp_path / "new", "--plots": None}})
        assert not list(tmp_path.iterdir())

    def test_a_folder_that_is_not_there_is_named_and_not_made(self, kind, tmp_path):
        sentence = refused(**{kind: {"--out": tmp_path / "gone" / "new"}})
        assert f"there is no folder {tmp_path / 'gone'}; make it" in sentence
        assert sentence.startswith("--out: ")
        assert not list(tmp_path.iterdir())

    def test_a_file_in_place_of_a_folder(self, kind, tmp_path):
        (tmp_path / "file").touch()
        assert "there is no folder" in refused(**{kind: {"--out": tmp_path / "file" / "new"}})

    def test_a_folder_that_takes_nothing(self, kind, tmp_path, monkeypatch):
        monkeypatch.setattr("os.access", lambda path, _: path != tmp_path)
        assert f"{tmp_path} takes no new files" in refused(**{kind: {"--out": tmp_path / "new"}})


@pytest.mark.parametrize("kind", ["folders", "replaced"])
def test_a_folder_that_is_there(kind, tmp_path):
    (tmp_path / "here").mkdir()
    check_outputs(**{kind: {"--out": tmp_path / "here"}})
    assert not list((tmp_path / "here").iterdir())
    (tmp_path / "file").write_text("kept")
    assert "it is no folder" in refused(**{kind: {"--out": tmp_path / "file"}})


def test_a_file_that_is_there_and_a_folder_instead_of_it(tmp_path):
    (tmp_path / "file").write_text("kept")
    check_outputs(files={"--checkpoint": tmp_path / "file"})
    assert (tmp_path / "file").read_text() == "kept"
    assert "it is a folder" in refused(files={"--checkpoint": tmp_path})


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


def refused_to_record(folder, words):
    with pytest.raises(RecordingsError, match=words), recordings_in(folder, 2, None):
        raise AssertionError


def test_packets_of_another_run_are_not_mixed_in(tmp_path):
    (tmp_path / "w7.pcap").write_text("")
    refused_to_record(tmp_path, r"another run \(w7.pcap\)")
    assert [path.name for path in tmp_path.iterdir()] == ["w7.pcap"]


@pytest.mark.parametrize("name", ["none/kept", "file/kept", "file"])
def test_a_folder_that_cannot_be_written(tmp_path, name):
    (tmp_path / "file").write_text("")
    refused_to_record(tmp_path / name, "Cannot write packets to")


LOG = logging.getLogger("switchgnn.some.part")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """That of a run; temporary files go beside it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    made = tmp_path / "run"
    made.mkdir()
    return made


def run(folder, asked=None, error=None, said="a word", failed=False):
    with run_logs(asked, folder) as logs:
        LOG.info("a step")
        (logs.folder / "worker-0.log").write_text(said)
        logs.failed = failed
        if error is not None:
            raise error


@pytest.mark.parametrize(("verbose", "lines"), [(False, "care\n"), (True, "a step\ncare\n")])
def test_warnings_are_printed_and_steps_if_asked(capsys, verbose, lines):
    with told_aloud(verbose=verbose):
        LOG.info("a step")
        LOG.warning("care")
    assert capsys.readouterr().err == lines


def kept(folder):
    return take_kept_logs(folder.parent / "temporary")


def test_what_goes_well_leaves_nothing(folder, capsys):
    run(folder)
    assert kept(folder) == {}
    assert capsys.readouterr().err == ""


def test_what_fails_is_kept_and_named(folder, capsys):
    with pytest.raises(SwitchGNNError):
        run(folder, error=SwitchGNNError("the worker is gone"))
    said = capsys.readouterr().err
    assert Path(said.split(": ")[1].strip()).parent == folder.parent / "temporary"
    found = kept(folder)
    assert found["worker-0.log"] == "a word"
    assert "a step" in found["command.log"]
    assert "the worker is gone" in found["command.log"]


def test_a_wrong_sum_is_a_failure(folder):
    run(folder, failed=True)
    assert "worker-0.log" in kept(folder)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyboardInterrupt(), "a word"),
        # Nobody was started, or nobody had anything to say.
        (SwitchGNNError("there is no such graph"), ""),
    ],
)
def test_what_needs_no_logs_leaves_none(folder, error, said, capsys):
    with pytest.raises(type(error)):
        run(folder, error=error, said=said)
    assert kept(folder) == {}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("error", [None, KeyboardInterrupt(), SwitchGNNError("it failed")])
def test_what_was_asked_for_is_kept(folder, error, capsys):
    asked = folder.parent / "logs"
    try:
        run(folder, asked, error)
    except (KeyboardInterrupt, SwitchGNNError) as raised:
        assert raised is error
    assert {path.name for path in asked.iterdir()} == {"worker-0.log", "command.log"}
    assert (str(asked) in capsys.readouterr().err) is isinstance(error, SwitchGNNError)
    assert kept(folder) == {}
