# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn plan --parts` writes the job that `write_job` writes."""

import json

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from typer.testing import CliRunner

import switchgnn.torch as sg
from switchgnn.commands.plan.command import app
from switchgnn.planner.chosen import Asked


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def test_it_is_that_job(tmp_path):
    words = ("--data", "karate", "--workers", 4, "--slots", 16, "--leaves", 2, "--spines", 2)
    told = run(*words, "--partition", "chunk", "--parts", "--out", tmp_path / "job", "--json")
    assert told.exit_code == 0, told.output
    asked = Asked(partition="chunk")
    expected = sg.write_job(
        "karate", 4, tmp_path / "other", asked=asked, slots=16, leaves=2, spines=2
    )
    assert sg.read_job(tmp_path / "job") == expected
    assert json.loads(told.stdout)["plan"] == expected.plan
    told = run(*words, "--parts", "--out", tmp_path / "job")
    assert "karate with 34 vertices, 156 directed edges" in told.output


@pytest.mark.parametrize(
    "words",
    [
        ("--data", "karate", "--workers", 2, "--parts"),
        ("--data", "karate", "--parts", "--out", "job"),
        ("--workers", 2, "--parts", "--out", "job"),
        ("karate", "--data", "karate", "--workers", 2, "--parts", "--out", "job"),
        ("karate", "--workers", 2, "--parts", "--out", "job"),
        ("--data", "karate", "--workers", 2, "--out", "job"),
    ],
)
def test_what_is_missing_or_too_much(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = run(*words)
    assert told.exit_code == 2
    assert not list(tmp_path.iterdir())
