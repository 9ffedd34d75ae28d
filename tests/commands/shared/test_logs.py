# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Logs are kept where somebody wants them, and when something has failed; otherwise not."""

import logging
from pathlib import Path

import pytest

from switchgnn.base.errors import SwitchGNNError
from switchgnn.commands.shared.outputs import logged_steps, run_logs, told_aloud
from tests.support.kept_logs import take_kept_logs

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


def test_a_full_disk_gets_no_more_logs(folder, monkeypatch, capsys):
    monkeypatch.setattr("switchgnn.commands.shared.outputs.has_room", lambda _: False)
    with pytest.raises(SwitchGNNError):
        run(folder, error=SwitchGNNError("it failed"), said="a word")
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


@pytest.mark.parametrize("verbose", [True, False])
def test_what_is_logged_is_said_aloud_if_that_is_wanted(verbose, capsys):
    with told_aloud(verbose=verbose):
        LOG.info("a process: %s", "its\x1b[31mwords")
    LOG.info("afterwards")
    assert capsys.readouterr().err == ("a process: its?[31mwords\n" if verbose else "")


def test_each_step_is_logged_once(capsys):
    heard = []
    step = logged_steps(lambda *words: heard.append(words))
    with told_aloud(verbose=True):
        for done in range(3):
            step("exchanging", done, 3)
        step("comparing", 0, 0)
    assert capsys.readouterr().err == "exchanging\ncomparing\n"
    assert len(heard) == 4
