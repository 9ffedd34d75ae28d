# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m switchgnn.train`: what cannot be done is one sentence and exit code 2."""

import sys

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

import switchgnn.torch as sg
from switchgnn.training import load_dataset
from switchgnn.training.command import main
from tests.support.gpu import cuda_missing
from tests.torch.machines import one_machine


def refused(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["train", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    return capsys.readouterr().err


def test_what_cannot_be_done_is_a_sentence(monkeypatch, capsys, tmp_path):
    said = refused(monkeypatch, capsys, tmp_path)
    assert said.startswith(f"Error: {tmp_path} holds no job")
    said = refused(monkeypatch, capsys, tmp_path, "--model", "own.py:Net")
    assert "own.py does not exist" in said
    said = refused(monkeypatch, capsys, tmp_path, "--metrics", "http")
    assert said.startswith("Error: Metrics cannot be served on 'http'")


@pytest.mark.skipif(cuda_missing() is None, reason="there is a GPU")
def test_a_gpu_that_is_not_there(monkeypatch, capsys, tmp_path):
    said = refused(monkeypatch, capsys, tmp_path, "--device", "cuda")
    assert said.startswith("Error: There is no GPU here that PyTorch can use")


FAILING = """
from torch_geometric.nn import GCN

class Net(GCN):
    def __init__(self, inputs, classes):
        super().__init__(inputs, 8, 2, classes)

    def forward(self, x, edges):
        raise RuntimeError("no such rows")
"""


@pytest.mark.whole
def test_a_model_that_fails_shows_its_own_lines(tmp_path):
    sg.write_job(load_dataset("karate"), 1, tmp_path / "job", slots=16)
    (tmp_path / "own.py").write_text(FAILING)
    with one_machine(1, tmp_path) as machine:
        program = (sys.executable, "-m", "switchgnn.train", "job", "--model", "own.py:Net")
        code, _, error = machine.try_to_run(("env", "RANK=0", "WORLD_SIZE=1", *program))
    assert code == 2
    lines = error.splitlines()
    assert lines[-1].endswith("failed, in line 9 (forward): RuntimeError: no such rows.")
    trace = "\n".join(lines[lines.index("Traceback (most recent call last):") : -1])
    assert 'own.py", line 9, in forward' in trace
    assert "switchgnn/" not in trace
