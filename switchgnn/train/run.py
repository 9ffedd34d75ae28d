# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Trains a model of the built-in ones, or a file's, as one worker of a job."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from switchgnn.host.pace import Pace
from switchgnn.torch import Worker, join
from switchgnn.training.gradients import Sums
from switchgnn.training.layers.models import ModelOptions, build_model
from switchgnn.training.layers.templates import templates_removed
from switchgnn.training.trainer import EpochReport, Trainer, TrainOptions


@dataclass(frozen=True)
class Training:
    """What a worker of a job is told to train.

    Attributes:
        job: the folder of the job.
        network: the network file.
        model, options: what to train, and how.
        pace: the limits of sending and waiting; None: the usual ones.
        faults: what goes wrong on each worker's link on purpose.
    """

    job: Path
    network: Path
    model: ModelOptions
    options: TrainOptions
    pace: Pace | None = None
    faults: str = ""


def train_as_worker(
    training: Training, on_epoch: Callable[[Worker, EpochReport], None]
) -> dict[str, Any]:
    """Join the job, train, and say what came of it.

    Args:
        training: what to do, the same on all workers.
        on_epoch: called after each epoch with this worker and its report.

    Returns:
        What was trained, and the last epoch, as plain data.

    Raises:
        SwitchGNNError: whatever stops the training.
    """
    seed = training.options.seed
    torch.manual_seed(seed)
    with join(
        training.job,
        network=training.network,
        pace=training.pace,
        faults=training.faults,
        seed=seed,
    ) as worker:
        with templates_removed():
            model = build_model(training.model, worker.job.features, worker.classes)
        worker.wrap(model)
        sums = Sums(worker.first)
        trainer = Trainer(model, worker.partition, worker.remote, training.options, sums=sums)
        trainer.resume()
        last: EpochReport | None = None
        for last in trainer.run():
            on_epoch(worker, last)
        return {
            "worker": worker.number,
            "data": worker.job.data,
            "workers": worker.workers,
            "session": worker.session,
            "last": None if last is None else asdict(last),
        }
