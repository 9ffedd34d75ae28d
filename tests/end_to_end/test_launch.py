"""`switchgnn launch`: PyTorch programs on every worker, whose gradients the switch adds."""

import os
import re
import signal
from pathlib import Path

import numpy as np

from tests.end_to_end.conftest import LOOPBACK, needs_training, said
from tests.support.commands import started, switchgnn
from tests.support.markers import words_of
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

pytestmark = needs_training
EXAMPLE = Path(__file__).parents[2] / "examples" / "ddp" / "train.py"


CARRIED = re.compile(
    r"The switch carried (\d+) all-reduces: ([\d.]+) ([kM]B) on each worker's link, both ways, "
    r"in ([\d.]+) s\."
)


def losses_of(*words, backend):
    result = switchgnn("launch", *words, EXAMPLE, environment={"BACKEND": backend})
    assert result.returncode == 0, result.stderr[-2000:] + result.stdout[-2000:]
    carried = result.stderr.splitlines()[-1]
    if backend == "gloo":
        assert "The switch carried nothing" in carried
        assert 'init_process_group("switchgnn")' in carried
    else:
        # 20 steps with a bucket of gradients and a loss, and how DDP begins.
        arrays, size, unit, seconds = CARRIED.search(carried).groups()
        assert 40 <= int(arrays) <= 45
        # 48 bits of 520 weights and a loss, up and down, in each of the steps.
        assert 1 < float(size) * {"kB": 1e3, "MB": 1e6}[unit] / (20 * 2 * 6 * 521) < 2
        assert 0 < float(seconds) < seconds_here(100)
    # PyTorch may warn, too.
    lines = [line for line in result.stdout.splitlines() if "[W" not in line]
    assert [line.partition(":")[0] for line in lines] == [f"[0] step {n}" for n in range(1, 21)]
    return np.array([float(line.split()[-1]) for line in lines])


def test_an_unchanged_ddp_script_trains_as_with_gloo(combination):
    words = (*words_of(combination), "--workers", 4)
    ours = losses_of(*words, backend="switchgnn")
    theirs = losses_of(*words, backend="gloo")
    assert ours[-1] < ours[0] / 10
    assert np.abs(ours - theirs).max() <= 2e-5


def test_workers_that_share_a_port_train_as_with_gloo():
    words = (*LOOPBACK, "--workers", 4, "--per-machine", 2)
    ours, theirs = (losses_of(*words, backend=each) for each in ("switchgnn", "gloo"))
    assert np.abs(ours - theirs).max() <= 2e-5


PROGRAM = """
import sys, torch, torch.distributed as dist
dist.init_process_group("switchgnn")
rank = dist.get_rank()
print("begins", *sys.argv[1:], flush=True)
if rank == {ends}:
    raise SystemExit("this one has enough")
for _ in range({rounds}):
    dist.all_reduce(torch.ones(70000))
print("ends")
"""


def program(tmp_path, *, ends=-1, rounds=1):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(ends=ends, rounds=rounds))
    return path


def test_arguments_are_passed_on_and_lines_have_their_worker(tmp_path):
    result = switchgnn("launch", *LOOPBACK, "--workers", 2, program(tmp_path), "--faults", "x=y")
    assert result.returncode == 0, result.stderr[-2000:]
    wanted = [f"[{rank}] {text}" for rank in (0, 1) for text in ("begins --faults x=y", "ends")]
    assert sorted(result.stdout.splitlines()) == sorted(wanted)


def test_a_worker_that_fails_ends_the_job_and_is_named(tmp_path):
    # Failed jobs keep their logs.
    words = ("--timeout", "300", "--log-dir", tmp_path, program(tmp_path, ends=1))
    result = switchgnn("launch", *LOOPBACK, "--workers", 3, *words)
    assert result.returncode == 2
    assert "[1] this one has enough" in result.stdout
    assert "Error: Worker 1 stopped with code 1" in result.stderr


def test_ctrl_c_ends_all_workers(tmp_path):
    endless = program(tmp_path, rounds=10**9)
    words = ("launch", *LOOPBACK, "--workers", "2", str(endless))
    with started(*words, log=tmp_path / "log") as child:
        wait_until(lambda: "installing" in said(child) or child.exit_code() is not None)
        assert "begins" in child.stdout.readline()
        assert child.exit_code() is None
        os.kill(child.pid, signal.SIGINT)
        assert child.wait(seconds_here()) == 130
