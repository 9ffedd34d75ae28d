# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn soak --simulated`, without a process of its own."""

import json

import pytest
from typer.testing import CliRunner

from switchgnn.commands.application import app


def soak(*words):
    return CliRunner().invoke(app, ["soak", "--simulated", *map(str, words)])


def told(*words):
    return json.loads(soak(*words, "--json").stdout)


def test_one_object_says_all():
    said = told("--seed", 3, "--exchanges", 1)
    assert {"seed", "exchanges", "failures", "faults", "virtual_seconds", "seconds"} <= set(said)
    assert said["scenarios"] == 1
    assert said["failures"] == []
    assert len(said["trace_digest"]) == 64
    again = told("--seed", 3)
    assert {**said, "seconds": 0} == {**again, "seconds": 0}


def test_words_for_people():
    done = soak("--seed", 3)
    assert done.exit_code == 0
    assert "8 exchanges in 1 scenario from seed 3" in done.stdout
    assert "Nothing was otherwise than it must be." in done.stdout


def test_another_seed_is_another_soak():
    assert told("--seed", 8)["trace_digest"] != told("--seed", 9)["trace_digest"]


def test_leaves_and_spines():
    words = ("--topology", "leaf-spine", "--leaves", 2, "--spines", 1)
    assert told("--seed", 3, *words)["trace_digest"] != told("--seed", 3)["trace_digest"]


@pytest.mark.parametrize("suffix", [".json", ".toml"])
def test_a_scenario_of_ones_own(tmp_path, suffix):
    file = tmp_path / f"mine{suffix}"
    file.write_text('{"seed": 4, "rounds": 3}' if suffix == ".json" else "seed = 4\nrounds = 3\n")
    said = told("--scenario", file)
    assert (said["scenarios"], said["exchanges"]) == (1, 3)
    assert said["seed"] == 4
    assert "3 exchanges in 1 scenario as told:" in soak("--scenario", file).stdout


@pytest.mark.parametrize("option", ["--exchanges=1", "--scenario=x.json", "--out=x"])
def test_what_is_for_simulated_alone(option):
    done = CliRunner().invoke(app, ["soak", option])
    assert done.exit_code != 0
