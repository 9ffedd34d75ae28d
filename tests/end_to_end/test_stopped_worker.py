# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's process stands still for a second, as under a debugger; its socket fills up."""

import importlib.util
import json
import os
import signal
import sys
import threading
import time

import pytest

from tests.support.commands import nursery
from tests.support.markers import COMBINATIONS, full, words_of
from tests.support.processes import descendants
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

# A process is identified by its log.
VICTIM = "worker-1.log"
STANDS_STILL = 1.0
ROUNDS = {"embedded": 200, "bmv2": 60}


def log_of(pid):
    try:
        return os.readlink(f"/proc/{pid}/fd/2")  # noqa: PTH115  it may be no path
    except OSError:
        return ""


def stop_for_a_moment(pid):
    found = []

    def look():
        found[:] = [each for each in descendants(pid) if log_of(each).endswith(VICTIM)]
        return found

    wait_until(look)
    os.kill(found[0], signal.SIGSTOP)
    try:
        # The test is about real time.
        time.sleep(STANDS_STILL)
    finally:
        os.kill(found[0], signal.SIGCONT)


def report_of(tmp_path, *arguments, when):
    """Run the command, stop a worker when the output has these words; return the report."""
    words = [sys.executable, "-m", "switchgnn.commands", *map(str, arguments), "--json"]
    log = tmp_path / "log"
    forced = {"FORCE_COLOR": "1", "TERM": "xterm", "TMPDIR": str(tmp_path)}
    with nursery().child("switchgnn", words, log, pipe=True, environment=forced) as child:
        child.stdin.close()
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(child.stdout))
        reader.start()
        wait_until(lambda: when in log.read_text(errors="replace") or when in "".join(lines))
        stop_for_a_moment(child.pid)
        code = child.wait(seconds_here(60))
        reader.join(seconds_here())
        assert code == 0, log.read_text()[-2000:]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_a_run(combination, tmp_path):
    options = ("--graph", "karate", "--workers", 3, "--slots", 16)
    rounds = ROUNDS[combination[0]]
    run = ("run", *words_of(combination), *options, "--rounds", rounds)
    (report,) = report_of(tmp_path, *run, when="exchanging")
    assert report["exact"] is True
    assert report["seconds"] >= STANDS_STILL


@full
@pytest.mark.skipif(
    importlib.util.find_spec("torch_geometric") is None, reason="PyTorch Geometric is not installed"
)
@pytest.mark.parametrize("transport", ["switch", "host"])
@pytest.mark.parametrize("combination", COMBINATIONS)
def test_a_training(combination, transport, tmp_path):
    options = ("--data", "karate", "--workers", 3, "--epochs", 60, "--transport", transport)
    train = ("train", *words_of(combination), *options)
    *_, last = report_of(tmp_path, *train, when='"epoch": 1,')
    assert max(last["seconds"]) >= STANDS_STILL
