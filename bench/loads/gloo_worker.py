"""All-reduces of `switchgnn allreduce` with Gloo's ring, on the links of a running fabric."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path

from switchgnn.base.files import private_folder
from switchgnn.base.options import shared_fields
from switchgnn.base.tasks import EventWriter, run_task
from switchgnn.host.base.pace import Pace
from switchgnn.host.reduce.worker import FLOATS, INTEGERS, tensor_of
from switchgnn.jobs.allreduce import ReduceOptions
from switchgnn.jobs.workers import run_workers
from switchgnn.topologies import Fabric, carried

_COMMAND = (sys.executable, "-m", "bench.loads.gloo_worker")


@dataclass(frozen=True)
class GlooTask:
    """The all-reduces of a worker; `meeting`: the file in which the workers meet."""

    worker: int
    link: str
    workers: int
    elements: int
    rounds: int
    seed: int
    pace: Pace
    meeting: Path


@dataclass(frozen=True)
class RingReport:
    """The mean seconds of an all-reduce of floats, and the bytes of the busiest link, both ways."""

    seconds: float
    bytes_per_link: int


def reduce_in_ring(fabric: Fabric, options: ReduceOptions) -> RingReport:
    """Reduce the same tensors with Gloo, each worker at its end of the fabric."""
    before = fabric.wire_bytes()
    with private_folder("gloo-") as folder:
        tasks = [
            GlooTask(
                worker,
                fabric.worker_link(worker),
                **shared_fields(options, GlooTask),
                meeting=folder / "meeting",
            )
            for worker in range(options.workers)
        ]
        ends = run_workers(fabric, _COMMAND, tasks, options.pace)
    wires = carried(before, fabric.wire_bytes()) or []
    busiest = max(map(sum, wires), default=0)
    return RingReport(max(end["seconds"] for end in ends), round(busiest / (2 * options.rounds)))


def _reduce(task: GlooTask, events: EventWriter) -> None:
    from switchgnn.training.base.errors import collective  # noqa: PLC0415  they need PyTorch
    from switchgnn.training.exchange.gradients import (  # noqa: PLC0415
        pace_gloo,
        share_cores,
        together_in_file,
    )

    share_cores(task.workers)
    with together_in_file(task.meeting, task.worker, task.workers, task.pace), collective():
        pace_gloo(task.link)
        seconds = [_seconds_of(task, kind) for kind in (INTEGERS, FLOATS)]
    events.write("finished", seconds=seconds[1])


def _seconds_of(task: GlooTask, kind: str) -> float:
    import torch  # noqa: PLC0415
    import torch.distributed as dist  # noqa: PLC0415

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


if __name__ == "__main__":
    run_task(GlooTask, sys.stdin.readline(), _reduce)
