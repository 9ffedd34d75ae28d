"""`python -m tests.soak`: random runs, a summary in any case, and a command for each failure."""

import os
import signal
import subprocess
import sys

import pytest

from switchgnn.host.links.faults import FaultRates, Faults, worker_link
from tests.end_to_end.conftest import (
    BOTH_ENDS,
    LOOPBACK,
    MOSTLY_LOOPBACK,
    all_end,
)
from tests.soak import draw_words
from tests.support.kept_logs import take_kept_logs
from tests.support.markers import COMBINATION_ON_PYTHON, words_of
from tests.support.processes import descendants
from tests.support.speed import seconds_here

COMMAND = (sys.executable, "-m", "tests.soak", "--seed", "7")


def soaked(*words):
    done = subprocess.run([*COMMAND, *map(str, words)], capture_output=True, text=True, check=False)
    assert not done.stderr
    return done


@pytest.mark.parametrize("combination", [*BOTH_ENDS, COMBINATION_ON_PYTHON])
def test_a_short_soak_is_exact(combination):
    done = soaked("--minutes", 0.03, *words_of(combination))
    assert done.returncode == 0, done.stdout
    assert "runs, 0 of which failed." in done.stdout


@pytest.mark.parametrize("combination", MOSTLY_LOOPBACK)
def test_a_short_soak_over_leaves_and_spines(combination):
    done = soaked("--minutes", 0, *words_of(combination), "--leaves", 2, "--spines", 2)
    assert done.returncode == 0, done.stdout
    assert "1 runs, 0 of which failed." in done.stdout


def test_a_failed_run_is_exit_code_1_and_can_be_repeated():
    done = soaked("--minutes", 0, *LOOPBACK, "--timeout", "-1")
    assert done.returncode == 1
    assert "1 runs, 1 of which failed." in done.stdout
    assert "repeat it: switchgnn run --graph " in done.stdout


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


def options_of(words):
    return dict(zip(words[::2], words[1::2], strict=True))


def test_runs_differ_and_follow_from_the_seed():
    words = [draw_words(5, number) for number in range(200)]
    assert words == [draw_words(5, number) for number in range(200)]
    assert words != [draw_words(6, number) for number in range(200)]
    runs = [options_of(each) for each in words]
    assert {run["--workers"] for run in runs} == {"2", "3", "4", "5"}
    assert {run["--send"] for run in runs} == {"multicast", "cover"}
    assert {run["--graph"].partition(":")[0] for run in runs} == {"karate", "digits", "random"}
    most = vars(FaultRates(loss=0.2, duplicate=0.05, reorder=0.05, corrupt=0.01))
    for run in runs:
        faults = Faults.parse(run["--faults"])
        for worker in range(int(run["--workers"])):
            for way in ("up", "down"):
                rates = vars(faults.of(worker_link(worker), way))
                assert all(rates[name] <= most[name] for name in most)


def test_each_leaf_has_a_worker_and_cables_have_faults():
    runs = [options_of(draw_words(5, number, (4, 2))) for number in range(200)]
    assert {run["--workers"] for run in runs} == {"4", "5", "6", "7"}
    named = set()
    for run in runs:
        assert (run["--leaves"], run["--spines"]) == ("4", "2")
        faults = Faults.parse(run["--faults"])
        named |= {link for link, _ in faults.rates if link and link.startswith("l")}
        assert faults.on_cables
    assert named == {f"l{leaf}s{spine}" for leaf in range(4) for spine in range(2)}
