# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker process of `switchgnn allreduce`: the same all-reduces with Gloo's ring."""

import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist

from switchgnn.base.tasks import EventWriter, run_task
from switchgnn.host.reduce.worker import FLOATS, INTEGERS, AllReduceTask, tensor_of
from switchgnn.training.gradients import collective, share_cores, together_in_file


@dataclass(frozen=True)
class GlooTask:
    """What to do as for `reduce`, by how many workers, and the file of their process group."""

    reduce: AllReduceTask
    workers: int
    meeting: Path


def run(line: str) -> None:
    """Reduce the tensors of an ``AllReduceTask``; report the mean seconds of one of floats."""
    run_task(GlooTask, line, _run)


def _run(task: GlooTask, events: EventWriter) -> None:
    reduce = task.reduce
    share_cores(task.workers)
    with (
        together_in_file(task.meeting, reduce.config.worker, task.workers, reduce.pace),
        collective(),
    ):
        seconds = 0.0
        for kind in (INTEGERS, FLOATS):
            seconds = _reduce(reduce, kind)
    events.write("finished", seconds=seconds)


def _reduce(task: AllReduceTask, kind: str) -> float:
    passed = 0.0
    for index in range(task.rounds):
        made = tensor_of(
            kind, seed=task.seed, worker=task.config.worker, index=index, elements=task.elements
        )
        values = torch.from_numpy(made)
        dist.barrier()
        started = time.perf_counter()
        dist.all_reduce(values)
        passed += time.perf_counter() - started
    return passed / task.rounds
