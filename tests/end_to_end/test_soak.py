"""`python -m tests.soak`: random runs, a summary in any case, and a command for each failure."""

import os
import signal
import subprocess
import sys

import pytest

from tests.end_to_end.conftest import BOTH_ENDS, LOOPBACK, MOSTLY_LOOPBACK, all_end
from tests.support.kept_logs import take_kept_logs
from tests.support.markers import COMBINATION_ON_PYTHON, words_of
from tests.support.processes import descendants
from tests.support.speed import seconds_here

COMMAND = (sys.executable, "-m", "tests.soak", "--seed", "7")


def soaked(*words, code=0):
    done = subprocess.run([*COMMAND, *map(str, words)], capture_output=True, text=True, check=False)
    assert not done.stderr
    assert done.returncode == code, done.stdout
    return done.stdout


@pytest.mark.parametrize("combination", [*BOTH_ENDS, COMBINATION_ON_PYTHON])
def test_a_short_soak_is_exact(combination):
    assert "runs, 0 of which failed." in soaked("--minutes", 0.03, *words_of(combination))


@pytest.mark.parametrize("combination", MOSTLY_LOOPBACK)
def test_a_short_soak_over_leaves_and_spines(combination):
    told = soaked("--minutes", 0, *words_of(combination), "--leaves", 2, "--spines", 2)
    assert "1 runs, 0 of which failed." in told


def test_a_failed_run_is_exit_code_1_and_can_be_repeated():
    told = soaked("--minutes", 0, *LOOPBACK, "--timeout", "-1", code=1)
    assert "1 runs, 1 of which failed." in told
    assert "repeat it: switchgnn run --graph " in told


def test_the_summary_comes_when_it_is_interrupted():
    words = ("--minutes", "10", *LOOPBACK)
    with subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline().startswith("run 0: ")
        assert child.stdout.readline() == "exact\n"
        children = descendants(child.pid)
        os.kill(child.pid, signal.SIGINT)
        told = child.stdout.read()
        assert child.wait(seconds_here()) == 0, told
    assert "interrupted" in told
    assert "1 runs, 0 of which failed." in told
    all_end(children)
    take_kept_logs()
