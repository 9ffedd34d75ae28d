# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A run that has no room for its sums says so at once; the number of rounds takes none."""

import os
import subprocess
import sys

import pytest

from switchgnn.commands.run import size
from switchgnn.commands.run.size import SizeError, check_size
from switchgnn.commands.shared.memory import available_memory
from switchgnn.host.wire.header import WIDEST
from switchgnn.native_compiler import find_compiler
from tests.support.commands import switchgnn
from tests.support.speed import seconds_here


def test_what_has_room():
    check_size(34, 32)


def test_more_frames_than_a_header_counts():
    with pytest.raises(SizeError, match=r"at most 2,097,152\. Give --features less"):
        check_size(1, WIDEST + 1)


def test_what_the_memory_has_no_room_for(monkeypatch):
    needed = 10 * 20 * (4 + 8)
    monkeypatch.setattr(size, "available_memory", lambda: needed)
    check_size(10, 20)
    monkeypatch.setattr(size, "available_memory", lambda: needed - 1)
    with pytest.raises(SizeError, match=r"of memory, and 0\.0 MB are free"):
        check_size(10, 20)


def test_the_memory_of_this_machine_is_known():
    assert available_memory() > 1 << 20


def test_a_machine_that_does_not_tell(monkeypatch):
    monkeypatch.setattr(size, "available_memory", lambda: None)
    check_size(10, 20)


@pytest.mark.whole
def test_the_command_says_so_before_it_makes_features(tmp_path):
    words = ("run", "--graph", "karate", "--target", "embedded", "--fabric", "loopback")
    done = switchgnn(*words, "--features", 99_999_999, scratch=tmp_path)
    assert done.returncode == 2
    assert "Features of 99,999,999 numbers are too wide" in done.stderr
    assert not list(tmp_path.iterdir())


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
