# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever happens to a run, no process, namespace, interface or file stays behind."""

import getpass
import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.markers import COMBINATIONS, MININET_COMBINATIONS, covering, some_of
from tests.support.processes import all_pids, command_of, descendants, is_alive, network_of
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until


def interfaces_of(pid, where="self"):
    """Those with the process's number in their names, in the network of a process.

    The machine may have other runs.
    """
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
    return [pid for pid in pids if begun(pid) < moment]


def begun(pid):
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # It has just ended.
        return float("inf")
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


RUN = ("run", "--slots", "16", "--rounds", "2000")
KARATE = ("--data", "karate", "--workers", "2", "--epochs", "100000")
TRAIN = ("train", *KARATE, "--transport", "switch")
STAGES = ["starting the switch", "installing", "exchanging"]
# The last one is when epochs are shown.
TRAINING_STAGES = ["planning", "installing", "loss"]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP]
# PyTorch's cache, shared by all programs of a user.
CACHES = {f"torchinductor_{getpass.getuser()}"}
LEAF_SPINE = ("--topology", "leaf-spine")
FAULTS = ("--faults", "loss=0.001")


# Every stage and every signal on each combination.
@pytest.mark.parametrize(("combination", "stage", "how"), covering(COMBINATIONS, STAGES, SIGNALS))
def test_nothing_is_left(combination, stage, how, tmp_path):
    end_a_run(combination, stage, how, tmp_path)


@pytest.mark.parametrize(
    ("combination", "stage", "how"),
    some_of(
        lambda where, stage, how: where == how == stage or ((where, how) == (2, 2) and stage),
        COMBINATIONS,
        STAGES[::2],
        SIGNALS,
    ),
)
def test_nothing_is_left_of_cables_with_faults(combination, stage, how, tmp_path):
    end_a_run(combination, stage, how, tmp_path, *LEAF_SPINE, *FAULTS)


@pytest.mark.parametrize("combination", MININET_COMBINATIONS[:1])
def test_nothing_is_left_of_cables(combination, tmp_path):
    """Without a relay, both ends of a cable are at switches."""
    end_a_run(combination, "exchanging", signal.SIGKILL, tmp_path, *LEAF_SPINE)


@pytest.mark.skipif(
    importlib.util.find_spec("torch_geometric") is None, reason="PyTorch Geometric is not installed"
)
@pytest.mark.parametrize(
    ("combination", "stage", "how"),
    some_of(
        # Killed runs, on each switch: they cannot end their children.
        lambda where, stage, how: (where, stage, how) in {(0, 1, 2), (2, 2, 2)},
        COMBINATIONS,
        TRAINING_STAGES,
        SIGNALS,
    ),
)
def test_nothing_is_left_of_a_training(combination, stage, how, tmp_path):
    end_a_run(combination, stage, how, tmp_path, words=TRAIN)


@pytest.mark.parametrize("combination", MININET_COMBINATIONS[:1])
def test_nothing_is_left_though_the_shell_of_a_host_died(combination, tmp_path):
    end_a_run(combination, "exchanging", signal.SIGTERM, tmp_path, before=kill_a_shell)


def kill_a_shell(children):
    (shell, *_) = [pid for pid in children if re.search(r" mininet:w\w+x1$", command_of(pid))]
    os.kill(shell, signal.SIGKILL)


def end_a_run(combination, stage, how, tmp_path, *options, words=RUN, before=None):
    # So short that the sockets are in the run's own folder, too: nobody is left to remove that of
    # a run that is killed, and with a longer path there would be a second one somewhere else.
    with TemporaryDirectory() as temporary:
        command = (*words, *options)
        place = (Path(temporary), combination, stage, how, tmp_path / "log")
        end_a_run_in(*place, *command, before=before)


def end_a_run_in(temporary, combination, stage, how, log, *command, before=None):
    target, fabric = combination
    with log.open("w") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "switchgnn.commands", *command),
                *("--target", target, "--fabric", fabric),
            ],
            stdout=output,
            stderr=output,
            env={
                **os.environ,
                "FORCE_COLOR": "1",
                "TERM": "xterm",
                "TMPDIR": str(temporary),
            },
        )
        try:
            wait_until(lambda: stage in log.read_text(errors="replace"))
            children = descendants(process.pid)
            networks = networks_of(children)
            if (fabric, stage) == ("mininet", "exchanging"):
                # Only the run can access them.
                assert any(interfaces_of(process.pid, child) for child in children)
                assert len(networks) > 1
                assert not interfaces_of(process.pid)
            if before is not None:
                before(children)
            process.send_signal(how)
            process.wait(seconds_here())
        finally:
            # A hanging process must not slow down the following tests.
            process.kill()
            process.wait()
    assert process.returncode != 0
    wait_until(lambda: not any(is_alive(child) for child in children))
    ended = time.clock_gettime(time.CLOCK_BOOTTIME)
    # A namespace without a name ends with its last process, and another test's may get its number.
    wait_until(lambda: not networks & networks_of(begun_before(ended, all_pids())))
    wait_until(lambda: not interfaces_of(process.pid))
    # A killed run leaves files: see docs/limitations.md.
    if how is not signal.SIGKILL:
        assert [path for path in temporary.iterdir() if path.name not in CACHES] == []
