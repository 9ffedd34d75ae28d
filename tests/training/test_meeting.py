# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Workers of one machine share its cores, and report the worker that failed."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from switchgnn.training import gradients as meeting  # noqa: E402
from tests.support.speed import seconds_here  # noqa: E402


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(meeting.os, "sched_getaffinity", lambda _: set(range(8)))
    before = torch.get_num_threads()
    torch.set_num_threads(8)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(
    ("before", "variable", "processes", "threads"),
    [
        *((8, None, 1, 8), (8, None, 3, 2), (8, None, 8, 1), (8, None, 20, 1)),
        pytest.param(3, None, 2, 3, id="a smaller number is kept"),
        pytest.param(8, "8", 4, 8, id="the user has the last word"),
    ],
)
def test_each_process_takes_its_share_of_the_cores(
    monkeypatch, before, variable, processes, threads
):
    torch.set_num_threads(before)
    if variable is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", variable)
    meeting.share_cores(processes)
    assert torch.get_num_threads() == threads


# The first argument selects how worker 1 ends while worker 0 waits for its values.
SCRIPT = r"""
import os, sys
from pathlib import Path
import torch
from switchgnn.base.errors import SwitchGNNError
from switchgnn.host.pace import Pace
from switchgnn.training.gradients import Sums
from switchgnn.training.gradients import together_in_file

how, file, rank = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
try:
    with together_in_file(file, rank, 2, Pace(patience=100)):
        Sums().add(torch.ones(1))
        if rank == 1 and how == "error":
            raise SwitchGNNError("The link is\x1b[2J down.")
        if rank == 1 and how == "bug":
            raise ZeroDivisionError("secret")
        if rank == 1 and how == "killed":
            os.kill(os.getpid(), 9)
        Sums().add(torch.ones(1))
except SwitchGNNError as error:
    print(f"{type(error).__name__}: {error}")
"""


@pytest.mark.whole
@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("error", "Worker 1 has failed: The link is [2J down."),
        ("bug", "Worker 1 has failed: ZeroDivisionError"),
        ("killed", "Another worker has ended or cannot be reached, so this one stops: "),
    ],
)
def test_a_worker_that_ends_is_named_to_the_others(how, sentence, tmp_path):
    words = [sys.executable, "-c", SCRIPT, how, str(tmp_path / "meeting")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen([*words, str(rank)], **pipes) for rank in range(2)]
    try:
        output, error = workers[0].communicate(timeout=seconds_here(60))
        workers[1].communicate(timeout=seconds_here(60))
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert workers[0].returncode == 0, error[-3000:]
    (line,) = [line for line in output.splitlines() if "Error: " in line]
    assert line.startswith(f"LostWorkerError: {sentence}")
