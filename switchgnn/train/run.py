# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Trains a model of the built-in ones, or a file's, as one worker of a job."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from switchgnn.host.metrics import serving_metrics
from switchgnn.torch.join import take_seat
from switchgnn.training.trainer import EpochReport
from switchgnn.training.worker import Training, train_as_worker


@dataclass(frozen=True)
class JobTask:
    """What the workers of a job are told to train.

    Attributes:
        job: the folder of the job.
        network: the network file.
        training: what to train, and how.
        faults: what goes wrong on each worker's link on purpose.
        metrics: ``ADDRESS:PORT`` where this process serves its own; empty: as the network file
            says.
    """

    job: Path
    network: Path
    training: Training
    faults: str = ""
    metrics: str = ""


def train_job(task: JobTask, on_epoch: Callable[[int, EpochReport], None]) -> dict[str, Any]:
    """Join a job, train, and say what came of it.

    Args:
        task: what to do, the same on all workers.
        on_epoch: called after each epoch with the number of this worker and its report.

    Returns:
        What was trained, and the last epoch, as plain data.

    Raises:
        SwitchGNNError: whatever stops the training.
    """
    last: EpochReport | None = None
    seed = task.training.options.seed
    with take_seat(task.job, network=task.network, faults=task.faults, seed=seed) as seat:
        number = seat.partition.worker

        def tell(report: EpochReport) -> None:
            nonlocal last
            last = report
            on_epoch(number, report)

        train_as_worker(
            *(seat.partition, seat.transport, task.training, tell),
            first=seat.first,
            seen=partial(serving_metrics, task.metrics or seat.metrics),
        )
    return {
        "worker": number,
        "data": seat.job.data,
        "workers": seat.job.workers,
        "session": seat.session,
        "last": None if last is None else asdict(last),
    }
