# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn soak --simulated`: what it says and writes of a failure."""

import json
import os
import shlex
import signal
from pathlib import Path

import pytest

from switchgnn.base.errors import SwitchGNNError
from switchgnn.lab.commands.soak_simulated import SimulatedOptions, soak_simulated
from switchgnn.lab.virtual.scenario import (
    Rates,
    Scenario,
    ScenarioError,
    read_scenario,
    scenario_text,
)
from switchgnn.lab.virtual.soak import Soak
from tests.support.commands import switchgnn
from tests.virtual.mistaken import sums_that_are_recalled_are_wrong

BAD = Rates(loss=0.15)
FAILS = Scenario(seed=5, graph="random:8:12:1", rounds=1, up=BAD, down=BAD)


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "fails.json"
    file.write_text(scenario_text(FAILS))
    return file


def soak(file, out=None, *, as_json=True):
    with sums_that_are_recalled_are_wrong():
        options = SimulatedOptions(0, None, 1.0, None, None, str(file), only=True, out=out)
        return soak_simulated(options, as_json=as_json)


def test_a_failure_says_how_it_is_replayed_and_made_small(file, capsys):
    assert soak(file) == 1
    (failure,) = json.loads(capsys.readouterr().out)["failures"]
    assert failure["seed"] == FAILS.seed
    assert failure["name"] == "sums exact"
    assert "wrong sums" in failure["what"]
    assert failure["command"] == f"switchgnn soak --simulated --scenario {file}"
    assert failure["shrink"] == f"{failure['command']} --out FOLDER"
    assert failure["files"] is None
    assert soak(file, as_json=False) == 1
    said = capsys.readouterr().out
    assert failure["command"] in said
    assert failure["shrink"] in said


@pytest.mark.whole
def test_what_is_written_replays(file, tmp_path, capsys):
    assert soak(file, tmp_path / "a" / "b") == 1
    (failure,) = json.loads(capsys.readouterr().out)["failures"]
    files = failure["files"]
    assert files["least"]
    small = read_scenario(tmp_path / "a" / "b" / "seed-5.json")
    assert (small.workers, small.up, len(small.faults)) == (2, Rates(), 1)
    assert sorted(each.name for each in (tmp_path / "a" / "b").iterdir()) == [
        "seed-5.json",
        "seed-5.svg",
        "seed-5.txt",
    ]
    assert soak(Path(files["scenario"])) == 1
    again = json.loads(capsys.readouterr().out)
    assert again["failures"][0]["name"] == "sums exact"
    assert again["faults"] == {small.faults[0].kind.value: 1}
    assert again["failures"][0]["what"] in (tmp_path / "a" / "b" / "seed-5.txt").read_text()


def test_ctrl_c_while_it_is_made_small_writes_what_there_is(file, tmp_path, capsys, monkeypatch):
    runs = []

    def run(soak, scenario, **options):
        runs.append(scenario)
        # The first run finds the failure.
        if len(runs) == 6:
            os.kill(os.getpid(), signal.SIGINT)
        return whole(soak, scenario, **options)

    whole = Soak.run
    monkeypatch.setattr(Soak, "run", run)
    assert soak(file, tmp_path / "out") == 1
    (failure,) = json.loads(capsys.readouterr().out)["failures"]
    assert not failure["files"]["least"]
    # One run for the trace comes behind.
    assert failure["files"]["runs"] == 5 == len(runs) - 2
    assert (tmp_path / "out" / "seed-5.svg").exists()


def test_nothing_is_written_of_what_holds(tmp_path, capsys):
    file = tmp_path / "holds.json"
    file.write_text(scenario_text(Scenario(seed=1, graph="random:8:12:1")))
    assert soak(file, tmp_path / "out") == 0
    assert json.loads(capsys.readouterr().out)["failures"] == []
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_cannot_be_is_refused_before_anything_runs(file, monkeypatch):
    monkeypatch.setattr(Soak, "run", None)
    with pytest.raises(SwitchGNNError, match="give --out another folder"):
        soak(file, file / "out")


@pytest.mark.parametrize(
    "text",
    [
        "not JSON",
        '{"seed": 1, "colour": "red"}',
        '{"seed": 1, "faults": [{"kind": "theft", "line": "w0.up", "frame": 1}]}',
        '{"seed": 1, "faults": [{"kind": "loss", "line": "w0.up"}]}',
    ],
)
def test_what_is_no_scenario_is_refused(tmp_path, text):
    file = tmp_path / "wrong.json"
    file.write_text(text)
    with pytest.raises(ScenarioError, match="holds no scenario"):
        soak(file)


@pytest.mark.whole
def test_as_a_user_starts_it(tmp_path):
    wrong = switchgnn("soak", "--simulated", "--scenario", tmp_path / "none.json")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.count("\n") <= 3
    assert "holds no scenario" in " ".join(wrong.stderr.split())
    lone = switchgnn("soak", "--out", tmp_path)
    assert lone.returncode == 2
    assert "need --simulated" in " ".join(lone.stderr.split())
    words = shlex.split("soak --simulated --seed 3 --json --out found")
    right = switchgnn(*words, folder=tmp_path)
    assert right.returncode == 0, right.stderr
    assert json.loads(right.stdout)["failures"] == []


@pytest.mark.parametrize("name", ["endless", "large"])
def test_a_scenario_has_an_end(name, tmp_path):
    (tmp_path / "endless").symlink_to("/dev/zero")
    with (tmp_path / "large").open("wb") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(ScenarioError, match=r"not a regular file|larger than 65,536 kB"):
        read_scenario(tmp_path / name)
