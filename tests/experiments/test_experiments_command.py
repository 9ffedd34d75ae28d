# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn figures` as a user runs it."""

import json
import signal
import subprocess
import sys

import pytest

from switchgnn.simulator.compile import compiled_models, what_is_missing

MISSING = what_is_missing()
COMMAND = [sys.executable, "-m", "switchgnn.cli", "figures"]


@pytest.fixture(scope="module", autouse=True)
def models():
    if MISSING:
        pytest.skip(MISSING)
    compiled_models()


def figures(*arguments):
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=100
    )


def test_a_small_figure_end_to_end(tmp_path):
    out = tmp_path / "out"
    told = figures("example", "--out", out)
    assert told.returncode == 0, told.stderr
    assert "1 figure of 4 points, 4 of them simulated" in told.stdout
    assert {path.name for path in out.iterdir()} == {
        ".lock",
        "points",
        "example.csv",
        "example.png",
        "example.svg",
        "table.md",
    }
    kept = [json.loads(path.read_text()) for path in (out / "points").iterdir()]
    assert {each["result"]["system"] for each in kept} == {"bns-gcn", "paper"}
    for each in kept:
        assert each["parameters"]["workers"] == each["result"]["workers"]
        assert each["versions"]["ns3"][0].isdigit()
    again = figures("example", "--out", out)
    assert again.returncode == 0, again.stderr
    assert "0 of them simulated" in again.stdout
    assert "4 of 4 points have a result" in again.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_goes_on_after_an_interruption(tmp_path, number):
    command = [*COMMAND, "example", "--jobs", "1", "--out", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("[1/4]")
        process.send_signal(number)
        assert "the same command goes on" in process.stderr.read()
    assert process.returncode == 130
    assert not (tmp_path / "work").exists()
    done = len(list((tmp_path / "points").iterdir()))
    assert 1 <= done < 4
    told = figures("example", "--out", tmp_path)
    assert told.returncode == 0, told.stderr
    assert f"{done} of 4 points have a result" in told.stderr


def test_unknown_names_are_a_sentence(tmp_path):
    for arguments in (["figure3"], ["example", "--scale", "huge"]):
        told = figures(*arguments, "--out", tmp_path)
        assert told.returncode == 2
        assert told.stderr.startswith("Error: ")
        assert "known: " in told.stderr
