# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The number of rounds takes no memory."""

import os
import subprocess
import sys

import pytest

from switchgnn.base.native import find_compiler
from tests.support.speed import seconds_here


def peak_of_run(rounds, folder):
    """The largest resident memory of any process of a run, in MB."""
    words = [sys.executable, "-m", "switchgnn", "run", "--graph", "random:40:80:1", "--workers", 2]
    words += ["--features", 2048, "--fabric", "loopback", "--target", "embedded", "--json"]
    limit = ("timeout", seconds_here(100))
    with (folder / f"{rounds}.log").open("w+") as log:
        whole = [str(word) for word in (*limit, *words, "--rounds", rounds)]
        run = subprocess.Popen(whole, stdout=log, stderr=log)
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
        log.seek(0)
        assert run.returncode == 0, log.read()[-2000:]
    return usage.ru_maxrss / 1024


@pytest.mark.whole
@pytest.mark.skipif(find_compiler() is None, reason="needs a C++ compiler, or it takes minutes")
def test_rounds_take_no_memory(tmp_path):
    # The sums of 100 rounds are 65 MB.
    assert peak_of_run(100, tmp_path) - peak_of_run(5, tmp_path) < 30
