# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Where the logs of a run are, what it says aloud, and what Ctrl-C leaves to read."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.end_to_end.conftest import switchgnn
from tests.support.kept_logs import take_kept_logs
from tests.support.processes import descendants, is_alive
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

LOOPBACK = ("--target", "embedded", "--fabric", "loopback")
RUN = ("run", "--graph", "karate", "--workers", 2, "--rounds", 1, *LOOPBACK)
TRAIN = ("train", "--data", "karate", "--workers", 2, "--epochs", 2, "--dropout", 0, *LOOPBACK)
OVER_SWITCH = ("--transport", "switch")
SOAK = ("soak", "--minutes", 0, "--seed", 7, *LOOPBACK)
LOGS = {"command.log", "switch.log", "worker-0.log", "worker-1.log"}
needs_training = pytest.mark.skipif(
    importlib.util.find_spec("torch_geometric") is None, reason="PyTorch Geometric is not installed"
)


@pytest.mark.parametrize(
    ("command", "place"),
    [
        (RUN, "."),
        pytest.param((*TRAIN, *OVER_SWITCH), "switch", marks=needs_training),
        (SOAK, "run-0"),
    ],
    ids=["run", "train", "soak"],
)
def test_logs_where_they_are_wanted(command, place, tmp_path):
    scratch, logs = tmp_path / "scratch", tmp_path / "logs"
    scratch.mkdir()
    done = switchgnn(*command, "--log-dir", logs, "--verbose", scratch=scratch)
    assert done.returncode == 0, done.stderr[-2000:]
    assert {path.name for path in (logs / place).iterdir()} >= LOGS
    told = (logs / place / "command.log").read_text()
    for words in ("starting the switch", "Worker 1: process ", "verified in", "Session 1."):
        assert words in told
        assert words in done.stderr
    # The switch's own log.
    assert "serves P4Runtime on" in (logs / place / "switch.log").read_text()
    assert "The embedded switch said: " in done.stderr
    assert not [path for path in scratch.iterdir() if not path.name.startswith("torchinductor")]


def test_simulated_exchanges_have_no_logs(tmp_path):
    done = switchgnn("soak", "--simulated", "--seed", 1, "--log-dir", tmp_path / "logs")
    assert done.returncode == 2
    assert "remove --log-dir" in done.stderr


def test_a_run_that_fails_says_where_its_logs_are(tmp_path):
    options = ("--faults", "w1.up.loss=0.9999999", "--patience", 0.5)
    done = switchgnn(*RUN, *options, scratch=tmp_path)
    assert done.returncode == 2
    [place] = tmp_path.iterdir()
    assert f"Logs of switches, workers and this command: {place}" in done.stderr
    found = take_kept_logs(tmp_path)
    assert found.keys() >= LOGS
    assert "failed: " in found["command.log"]


@needs_training
@pytest.mark.parametrize("as_json", [True, False])
def test_ctrl_c_shows_what_a_training_has_reached(as_json, tmp_path):
    words = (*TRAIN, *OVER_SWITCH, "--epochs", 100_000, *(("--json",) if as_json else ()))
    log = tmp_path / "log"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with log.open("w") as error:
        process = subprocess.Popen(
            [sys.executable, "-m", "switchgnn.commands", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=error,
            text=True,
            env={**os.environ, "TMPDIR": str(scratch), "FORCE_COLOR": "1", "TERM": "xterm"},
        )
    try:
        if as_json:
            assert json.loads(process.stdout.readline())["epoch"] == 1
        else:
            wait_until(lambda: "loss" in log.read_text(errors="replace"))
        children = descendants(process.pid)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=seconds_here())
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert "Traceback" not in log.read_text()
    wait_until(lambda: not any(is_alive(child) for child in children))
    assert not [path for path in scratch.iterdir() if not path.name.startswith("torchinductor")]
    if as_json:
        *_, last = map(json.loads, output.splitlines())
        assert last["event"] == "interrupted"
        assert len(last["losses"]) == last["epochs"] >= 1
    else:
        assert "Interrupted over switch after " in output
        assert "What was reached" in output


@pytest.mark.parametrize("election_id", [1, 9])
def test_a_watch_leaves_a_run_alone(election_id, tmp_path):
    """Even a watch with a higher election id, or for the same plan."""
    # So short that the socket is in the run's own folder.
    with tempfile.TemporaryDirectory() as scratch:
        watch_a_run(election_id, Path(scratch), tmp_path / "log")


def watch_a_run(election_id, scratch, log):
    words = (*RUN, "--rounds", 100_000, "--json")
    with log.open("w") as error:
        process = subprocess.Popen(
            [sys.executable, "-m", "switchgnn.commands", *map(str, words)],
            stderr=error,
            env={**os.environ, "TMPDIR": str(scratch), "FORCE_COLOR": "1", "TERM": "xterm"},
        )
    try:
        wait_until(lambda: "exchanging" in log.read_text(errors="replace"))
        [plan] = scratch.glob("switchgnn-*/plan")
        address = f"unix:{plan.parent}/switch-0.sock"
        watch = ("controller", "watch", plan, "--address", address, "--election-id", election_id)
        done = switchgnn(*watch)
        assert done.returncode == 2
        assert "is under the control of somebody else" in done.stderr
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(seconds_here())
    assert process.returncode == 130
    assert not list(scratch.iterdir())
