# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What cannot be written is said before the work begins, and nothing stays of the trial."""

import importlib.util
import os
from pathlib import Path

import pytest

from switchgnn.base.full_disk import WriteError
from switchgnn.commands.shared.outputs import check_outputs
from tests.support.commands import switchgnn


def refused(**outputs):
    with pytest.raises(WriteError) as caught:
        check_outputs(**outputs)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["folders", "files", "replaced"])
class TestEveryKind:
    def test_what_can_be_written(self, kind, tmp_path):
        check_outputs(**{kind: {"--out": tmp_path / "new", "--plots": None}})
        assert not list(tmp_path.iterdir())

    def test_a_name_alone_is_in_the_folder_where_one_works(self, kind, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        check_outputs(**{kind: {"--out": Path("new")}})

    def test_a_folder_that_is_not_there_is_named_and_not_made(self, kind, tmp_path):
        sentence = refused(**{kind: {"--out": tmp_path / "gone" / "new"}})
        assert f"there is no folder {tmp_path / 'gone'}; make it" in sentence
        assert sentence.startswith("--out: ")
        assert not list(tmp_path.iterdir())

    def test_a_file_in_place_of_a_folder(self, kind, tmp_path):
        (tmp_path / "file").touch()
        assert "there is no folder" in refused(**{kind: {"--out": tmp_path / "file" / "new"}})

    def test_a_place_that_takes_nothing(self, kind):
        assert "/proc takes no new files" in refused(**{kind: {"--out": Path("/proc/new")}})

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_folder_of_somebody_else(self, kind, tmp_path):
        tmp_path.chmod(0o500)
        assert "Permission denied" in refused(**{kind: {"--out": tmp_path / "new"}})


@pytest.mark.parametrize("kind", ["folders", "replaced"])
def test_a_folder_that_is_there(kind, tmp_path):
    (tmp_path / "here").mkdir()
    check_outputs(**{kind: {"--out": tmp_path / "here"}})
    assert not list((tmp_path / "here").iterdir())
    (tmp_path / "file").write_text("kept")
    assert "it is no folder" in refused(**{kind: {"--out": tmp_path / "file"}})


def test_a_file_that_is_there_and_a_folder_in_its_place(tmp_path):
    (tmp_path / "file").write_text("kept")
    check_outputs(files={"--checkpoint": tmp_path / "file"})
    assert (tmp_path / "file").read_text() == "kept"
    assert "it is a folder" in refused(files={"--checkpoint": tmp_path})


needs_training = pytest.mark.skipif(
    importlib.util.find_spec("torch_geometric") is None, reason="PyTorch Geometric is not installed"
)
TRAIN = ("train", "--data", "karate", "--workers", 2, "--epochs", 2, "--transport", "local")
PLAN = ("plan", "karate", "--workers", 2)


@pytest.mark.whole
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param((*TRAIN, "--plots"), marks=needs_training),
        pytest.param((*TRAIN, "--tensorboard"), marks=needs_training),
        pytest.param((*TRAIN, "--checkpoint"), marks=needs_training),
        (*PLAN, "--plots"),
        (*PLAN, "--out"),
        ("shard", "karate", "--ranks", 2, "--out"),
        ("figures", "example", "--out"),
        ("soak", "--simulated", "--seed", 1, "--out"),
    ],
    ids=lambda words: f"{words[0]}{words[-1]}",
)
def test_every_command_looks_first(arguments, tmp_path):
    done = switchgnn(*arguments, tmp_path / "gone" / "new", scratch=tmp_path)
    assert done.returncode == 2, done.stderr
    [sentence] = done.stderr.splitlines()
    assert f"there is no folder {tmp_path / 'gone'}" in sentence
    assert done.stdout == ""
    assert not (tmp_path / "gone").exists()


@pytest.mark.whole
def test_a_folder_that_is_no_plan_is_refused_before_planning(tmp_path):
    (tmp_path / "thesis.tex").touch()
    # Planning would say first that there is no such graph.
    done = switchgnn("plan", "no-such-graph", "--workers", 2, "--out", tmp_path)
    assert done.returncode == 2
    assert "is not a plan, so it is not overwritten" in done.stderr
