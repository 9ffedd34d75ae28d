# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Prepares a training before any packet is sent: plan, partitions and schedules."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.commands.train.job import TrainJob
from switchgnn.host.registry import SwitchProgram
from switchgnn.planner.auto import AutoPlan, build_auto
from switchgnn.planner.chosen import build_chosen, choose_asked
from switchgnn.planner.costs.forecast import Forecast
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.plan.files import write_plan
from switchgnn.planner.plan.leaf_spine import LeafSpineParts, split_for_leaf_spine
from switchgnn.planner.plan.manifest import Manifest
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.presets import PAPER, Situation
from switchgnn.planner.presets import Choice as Strategies
from switchgnn.planner.presets import choose as choose_strategies
from switchgnn.training.data.dataset import Dataset
from switchgnn.training.layers.models import exchanged_widths
from switchgnn.training.partition import write_partitions


@dataclass(frozen=True)
class Prepared:
    """The files that were written for a training.

    Attributes:
        strategies: the strategies of the plan.
        manifest: the manifest of the plan.
        assignment: int32[n], the worker of each vertex.
        scheduled: whether each worker has a schedule of what it sends to other hosts.
        parts: those of the plan for leaves and spines; None for a star.
    """

    strategies: Strategies
    manifest: Manifest
    assignment: NDArray[np.int32]
    scheduled: bool
    parts: LeafSpineParts | None


def prepare_training(
    job: TrainJob, data: Dataset, folder: Path, progress: Callable[[str], None]
) -> Prepared:
    """Write the plan, the partitions and the schedules; split the plan for a leaf-spine.

    Args:
        job: what to do.
        data: the data set to train on.
        folder: the folder to write to.
        progress: called with what is being planned.

    Returns:
        What was planned.

    Raises:
        SwitchGNNError: no plan for these options, or a file cannot be written.
    """
    strategies, plan = plan_of(job, data, progress)
    write_plan(plan, folder / "plan")
    write_partitions(data, plan.assignment, folder / "partitions")
    scheduled = _write_schedules(job, data, plan, folder)
    parts = split_for_leaf_spine(plan, job.leaf_spine) if job.leaf_spine else None
    return Prepared(strategies, plan.manifest, plan.assignment, scheduled, parts)


def _write_schedules(job: TrainJob, data: Dataset, plan: Plan, folder: Path) -> bool:
    """Write what workers send each other, if they do; tell whether they do.

    Raises:
        SwitchGNNError: a file cannot be written.
    """
    paths = [schedule_file_of(folder, worker) for worker in range(job.workers)]
    if job.transport.write_schedules is not None:
        job.transport.write_schedules(data.graph, plan.assignment, paths)
        return True
    if job.transport.write_left is not None and plan.leaves_any:
        job.transport.write_left(data.graph, plan, paths)
        return True
    return False


def plan_of(
    job: TrainJob, data: Dataset, progress: Callable[[str], None]
) -> tuple[Strategies, Plan]:
    """Plan the exchanges of a training.

    Args:
        job: what to do.
        data: the data set to train on.
        progress: called with what is being planned.

    Returns:
        The strategies of the plan, and the plan.

    Raises:
        SwitchGNNError: no plan for these options.
    """
    if job.planned is not None:
        return job.planned
    situation = _situation(job, data)
    strategies = _strategies(job, data, situation)
    plan = build_chosen(data.graph, strategies, situation, **_asked(job, progress))
    return strategies, plan


def fastest_of(
    job: TrainJob, data: Dataset, forecast: Forecast, progress: Callable[[str], None]
) -> tuple[Strategies, AutoPlan]:
    """Plan the exchanges of a training for the least predicted time.

    Args:
        job: what to do, over the switch.
        data: the data set to train on.
        forecast: predicts the exchanges.
        progress: called with what is being planned.

    Returns:
        The strategies, and the way with the least time: the plan with these strategies, if they
        may leave destinations a mixed plan, or hosts alone.

    Raises:
        SwitchGNNError: no plan for these options.
    """
    situation = _situation(job, data)
    strategies = _strategies(job, data, situation)
    made = build_auto(data.graph, strategies, situation, forecast, **_asked(job, progress))
    return strategies, made


def _asked(job: TrainJob, progress: Callable[[str], None]) -> dict[str, Any]:
    """Return what all plans of a training have in common."""
    return {
        "program": job.program.digest,
        "seed": job.task.training.options.seed,
        "directions": "both",
        "assignment": job.asked.load_assignment(),
        "progress": progress,
    }


def widths_of(job: TrainJob, data: Dataset) -> tuple[int, ...]:
    """Return the numbers of a row in each exchange of an epoch, forward and backward."""
    training = job.task.training
    return exchanged_widths(
        training.model,
        data.features.shape[1],
        data.classes,
        kept=training.options.precompute and not training.options.input_dropout,
    )


def _situation(job: TrainJob, data: Dataset) -> Situation:
    """Return the facts by which strategies are chosen, with the width of the frames."""
    widths = widths_of(job, data)
    banks = 1 if job.transport.program is SwitchProgram.STRAWMAN else BANKS
    return replace(job.situation, lanes=job.asked.lanes_for(widths, job.slots, banks))


def _strategies(job: TrainJob, data: Dataset, situation: Situation) -> Strategies:
    """Return the strategies of the plan: all that were asked for, or only the partition."""
    asked, transport = job.asked, job.transport
    if transport.partition is not None and asked.partition is None and asked.assignment is None:
        asked = replace(asked, partition=transport.partition)
    chosen = choose_asked(asked, data.graph, situation)
    if transport.strategies is None:
        return chosen
    plain = choose_strategies(PAPER, data.graph, situation)
    return replace(plain, partition=chosen.partition, because={}, **transport.strategies)


def schedule_file_of(folder: Path, worker: int) -> Path:
    """Return the file of a worker's schedule, if it has one."""
    return folder / f"schedule-{worker}.npz"
