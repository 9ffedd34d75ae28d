"""What a run leaves: nothing on the machine, however it ends, and logs where they are wanted."""

import json
import os
import re
import signal
import tempfile
import time
from pathlib import Path

import pytest

from tests.end_to_end.conftest import (
    CACHES,
    LEAF_SPINE,
    LOOPBACK,
    all_end,
    needs_training,
    said,
    succeeded,
)
from tests.support.commands import started
from tests.support.markers import COMBINATIONS, MININET_COMBINATIONS, some_of, words_of
from tests.support.processes import all_pids, descendants, network_of, process_of
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

STAGES = ["starting the switch", "installing", "exchanging"]
# The last one is when epochs are shown.
TRAINING_STAGES = ["planning", "installing", "loss"]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP]


def interfaces_of(pid, where="self"):
    """Those with the process's number in their names: the machine may have other runs."""
    tag = f"{pid % 0x10000:x}"
    try:
        lines = Path(f"/proc/{where}/net/dev").read_text().splitlines()
    except OSError:  # That process has just ended.
        return set()
    names = {line.partition(":")[0].strip() for line in lines}
    return {name for name in names if re.fullmatch(rf"[a-z]{tag}\W.*", name)}


def networks_of(pids):
    return {network_of(pid) for pid in pids} - {network_of("self"), None}


def begun_before(moment, pids):
    """Those of the processes that began before a moment, in seconds since the machine did."""
    ticks = moment * os.sysconf("SC_CLK_TCK")
    return [pid for pid in pids if (found := process_of(pid)) and found.started < ticks]


# Every stage and every signal, and on each combination a killed run.
@pytest.mark.parametrize(
    ("combination", "stage", "how"),
    some_of(
        # By combination, the stage and the signal.
        lambda where, *rest: (
            rest in (((0, 0), (1, 1), (2, 2), (2, 3)), ((2, 2),), ((0, 1), (1, 2), (2, 0)))[where]
        ),
        *(COMBINATIONS, STAGES, SIGNALS),
    ),
)
def test_nothing_is_left(combination, stage, how, tmp_path):
    end_a_run(combination, stage, how, tmp_path)


@pytest.mark.parametrize("combination", MININET_COMBINATIONS[:1])
def test_nothing_is_left_of_cables(combination, tmp_path):
    """Without a relay, both ends of a cable are at switches."""
    end_a_run(combination, "exchanging", signal.SIGKILL, tmp_path, *LEAF_SPINE)


@needs_training
@pytest.mark.parametrize(
    ("combination", "stage", "how"),
    some_of(
        # Killed runs cannot end their children.
        lambda where, stage, how: (where, stage, how) == (2, 2, 2),
        *(COMBINATIONS, TRAINING_STAGES, SIGNALS),
    ),
)
def test_nothing_is_left_of_a_training(combination, stage, how, tmp_path):
    words = ("train", "--data", "karate", "--workers", "2", "--epochs", "100000")
    end_a_run(combination, stage, how, tmp_path, "--transport", "switch", words=words)


RUN = ("run", "--slots", "16", "--rounds", "2000")


def end_a_run(combination, stage, how, tmp_path, *options, words=RUN):
    # So short that the sockets are in the run's own folder, too: nobody is left to remove that of
    # a run that is killed, and with a longer path there would be a second one somewhere else.
    with tempfile.TemporaryDirectory() as scratch:
        command = (*words, *options, *words_of(combination))
        with started(*command, log=tmp_path / "log", scratch=scratch, screen=True) as child:
            run = child.pid
            wait_until(lambda: stage in said(child))
            children = descendants(run)
            networks = networks_of(children)
            if "mininet" in combination and stage == "exchanging":
                # Only the run can access them.
                assert any(interfaces_of(run, each) for each in children)
                assert len(networks) > 1
                assert not interfaces_of(run)
            os.kill(run, how)
            code = child.wait(seconds_here())
        assert code
        all_end(children)
        ended = time.clock_gettime(time.CLOCK_BOOTTIME)
        # A namespace without a name ends with its last process, and another's may get its number.
        wait_until(lambda: not networks & networks_of(begun_before(ended, all_pids())))
        wait_until(lambda: not interfaces_of(run))
        # A killed run leaves files: see docs/limitations.md.
        if how is not signal.SIGKILL:
            assert {path.name for path in Path(scratch).iterdir()} <= CACHES


KARATE = ("run", "--graph", "karate", "--workers", 2, "--rounds", 1, *LOOPBACK)
TRAIN = ("train", "--data", "karate", "--workers", 2, "--epochs", 2, "--dropout", 0, *LOOPBACK)
OVER_SWITCH = ("--transport", "switch")
LOGS = {"command.log", "switch.log", "worker-0.log", "worker-1.log"}


@pytest.mark.parametrize(
    ("command", "kept"),
    [(KARATE, "."), pytest.param((*TRAIN, *OVER_SWITCH), "switch", marks=needs_training)],
    ids=["run", "train"],
)
def test_logs_where_they_are_wanted(command, kept, tmp_path):
    scratch, logs = tmp_path / "scratch", tmp_path / "logs"
    scratch.mkdir()
    done = succeeded(*command, "--log-dir", logs, "--verbose", scratch=scratch)
    assert {path.name for path in (logs / kept).iterdir()} >= LOGS
    told = (logs / kept / "command.log").read_text()
    for words in ("starting the switch", "Worker 1: process ", "verified in", "Session 1."):
        assert words in told
        assert words in done.stderr
    assert "serves P4Runtime on" in (logs / kept / "switch.log").read_text()
    assert "The embedded switch said: " in done.stderr
    assert {path.name for path in scratch.iterdir()} <= CACHES


@needs_training
def test_ctrl_c_shows_what_a_training_has_reached(tmp_path):
    words = (*TRAIN, *OVER_SWITCH, "--epochs", 100_000, "--json")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with started(*words, log=tmp_path / "log", scratch=scratch, screen=True) as child:
        assert json.loads(child.stdout.readline())["epoch"] == 1
        children = descendants(child.pid)
        os.kill(child.pid, signal.SIGINT)
        output = child.stdout.read()
        assert child.wait(seconds_here()) == 130
    assert "Traceback" not in said(child)
    all_end(children)
    assert {path.name for path in scratch.iterdir()} <= CACHES
    *_, last = map(json.loads, output.splitlines())
    assert last["event"] == "interrupted"
    assert len(last["losses"]) == last["epochs"] >= 1
