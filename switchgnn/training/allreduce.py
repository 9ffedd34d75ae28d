# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker process of `switchgnn allreduce`: the same all-reduces with Gloo's ring."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist

from switchgnn.base.tasks import EventWriter, Heartbeat, task_from_json, task_to_json
from switchgnn.host.pace import Pace
from switchgnn.host.reduce.worker import FLOATS, INTEGERS, tensor_of
from switchgnn.training.gradients import collective, share_cores, together_in_file


@dataclass(frozen=True)
class GlooTask:
    """The task of one worker process; see ``ReduceTask``. ``meeting`` is the file of the group."""

    worker: int
    workers: int
    elements: int
    rounds: int
    seed: int
    meeting: Path
    pace: Pace

    def to_json(self) -> str:
        """Return the task as one line of JSON."""
        return task_to_json(self)

    @classmethod
    def from_json(cls, text: str) -> "GlooTask":
        """Read what :meth:`to_json` wrote."""
        return task_from_json(cls, text)


def run_gloo_worker(task: GlooTask) -> None:
    """Reduce the tensors of a ``ReduceTask``; report the seconds of one of floats, on average."""
    events = EventWriter(sys.stdout)
    share_cores(task.workers)
    with (
        Heartbeat(events),
        together_in_file(task.meeting, task.worker, task.workers, task.pace),
        collective(),
    ):
        seconds = 0.0
        for kind in (INTEGERS, FLOATS):
            seconds = _reduce(task, kind)
    events.write("finished", seconds=seconds)


def _reduce(task: GlooTask, kind: str) -> float:
    passed = 0.0
    for index in range(task.rounds):
        made = tensor_of(
            kind, seed=task.seed, worker=task.worker, index=index, elements=task.elements
        )
        values = torch.from_numpy(made)
        dist.barrier()
        started = time.perf_counter()
        dist.all_reduce(values)
        passed += time.perf_counter() - started
    return passed / task.rounds
