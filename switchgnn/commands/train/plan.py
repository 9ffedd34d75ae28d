# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Prepares a training before any packet is sent: plan, partitions and schedules."""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.commands.train.display import Epochs
from switchgnn.commands.train.job import Planned, TrainJob
from switchgnn.host.direct.framing import Framing
from switchgnn.host.registry import HOST, HOST_PARTIAL, SWITCH, SwitchProgram, TransportKind
from switchgnn.planner.auto import AutoPlan, build_auto
from switchgnn.planner.chosen import build_chosen, choose_asked
from switchgnn.planner.costs import forecast
from switchgnn.planner.costs.forecast import Forecast
from switchgnn.planner.costs.host_seconds import packed_frames
from switchgnn.planner.costs.seconds import Network, plan_seconds
from switchgnn.planner.direction import Direction
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.plan.files import write_plan
from switchgnn.planner.plan.leaf_spine import LeafSpineParts, split_for_leaf_spine
from switchgnn.planner.plan.manifest import Manifest
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.presets import PAPER, Situation
from switchgnn.planner.presets import Choice as Strategies
from switchgnn.planner.presets import choose as choose_strategies
from switchgnn.profiles import SwitchProfile, find_profile
from switchgnn.profiles.profile import network_of
from switchgnn.topologies import Target, choose
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


# A link without a limit is the memory of this machine, and its other end is at once behind it.
_MEMORY_BITS, _DELAY = 1e11, 20e-6
_MEGA, _MILLI, _BITS = 1e6, 1e-3, 8
# What runs each way of planner/costs/forecast.py.
_RUN_BY = {
    forecast.SWITCH: SWITCH,
    forecast.MIXED: SWITCH,
    forecast.HOST_PARTIAL: HOST_PARTIAL,
    forecast.HOST: HOST,
}


@dataclass(frozen=True, eq=False)
class Prediction:
    """What the exchanges of an epoch are predicted to take.

    Attributes:
        seconds: of an epoch, by the ways of planner/costs/forecast.py; empty where nothing can be
            predicted.
        chosen: the transport that takes the least.
        why: one sentence for the user.
        planned: the plan that it runs, and its strategies; None between hosts alone.
    """

    seconds: Mapping[str, float]
    chosen: TransportKind
    why: str
    planned: Planned | None = None


def resolved(job: TrainJob, data: Dataset, shown: Epochs) -> tuple[TrainJob, dict[str, float]]:
    """Return the job over the transport that is predicted to be the fastest, and say why.

    Args:
        job: what to do, over the switch.
        data: the data set to train on.
        shown: says it.

    Returns:
        The job, and the predicted seconds by way.

    Raises:
        SwitchGNNError: as ``predict_transport``.
    """
    found = predict_transport(job, data, lambda what: shown.step(what, 0, 0))
    shown.note(found.why)
    task = replace(job.task, transport=found.chosen.name)
    return replace(job, task=task, planned=found.planned), dict(found.seconds)


def predict_transport(job: TrainJob, data: Dataset, progress: Callable[[str], None]) -> Prediction:
    """Predict what exchanges take over each transport, and choose one.

    Args:
        job: what to do, over the switch. With the preset `auto` the plan may leave some
            destinations to the hosts.
        data: the data set to train on.
        progress: called with what is being planned.

    Returns:
        The prediction. Over leaves and spines there is none, and the switches are chosen.

    Raises:
        SwitchGNNError: no plan for these options, or the machine lacks what was asked for.
    """
    if job.leaf_spine is not None:
        return Prediction(
            {}, SWITCH, "auto takes switch: only exchanges around one switch are predicted."
        )
    choice = choose(job.target, job.fabric, job.backend)
    profile = find_profile(choice.target.value)
    on = network_here(job, profile, choice.target)
    expected = MachineForecast(on, profile, job.workers, Counter(widths_of(job, data)))
    strategies, made = fastest_of(job, data, expected, progress)
    chosen = _RUN_BY[made.chosen]
    planned = (strategies, made.plan) if chosen is SWITCH else None
    return Prediction(made.seconds, chosen, _why(made), planned)


def network_here(job: TrainJob, profile: SwitchProfile, target: Target) -> Network:
    """Describe what a training of this machine's processes exchanges over.

    Args:
        job: with the rate of the links.
        profile: of the switch, with what was measured of it and of hosts.
        target: the switch.

    Returns:
        Links, switch and processors.
    """
    return network_of(
        profile,
        bits_per_second=_MEMORY_BITS if job.bandwidth is None else job.bandwidth * _MEGA,
        delay=_DELAY,
        loop=profile.passes_per_second if target is Target.BMV2 else None,
        mtu=Framing.parse(job.task.mtu).packet_bytes,
        window=job.task.pace.window,
        cores=os.cpu_count(),
    )


@dataclass(frozen=True, eq=False)
class MachineForecast:
    """The forecast of an epoch's exchanges by processes of one machine.

    Attributes:
        network: links, switch and processors.
        profile: of the switch.
        workers: their number.
        widths: how often rows of each width are exchanged, half of the times in each direction.
    """

    network: Network
    profile: SwitchProfile
    workers: int
    widths: Mapping[int, int]

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Both of them."""
        return tuple(Direction)

    def of_plan(self, plan: Plan, left: forecast.Rows) -> float:
        """See Forecast. Processors do one part of a mixed exchange after the other."""
        inside = sum(
            times / len(Direction) * plan_seconds(plan, direction, width, self.network)
            for direction in self.directions
            for width, times in self.widths.items()
        )
        return inside + (self.of_hosts(left) if any(rows.any() for rows in left.values()) else 0.0)

    def of_hosts(self, rows: forecast.Rows) -> float:
        """See Forecast.

        Windows stay open from one exchange to the next and hold most of it, so the busiest link is
        never idle. Where links are fast, processors are what is waited for.
        """
        network, work = self.network, self.workers * (self.profile.host_exchange_seconds or 0.0)
        seconds = 0.0
        for between in rows.values():
            for width, times in self.widths.items():
                frames, sizes = packed_frames(between, width, network.mtu)
                links = max(sizes.sum(axis=axis).max() for axis in (0, 1))
                processors = work + frames.sum() * network.switch_frame
                seconds += (times / len(rows)) * max(
                    links * _BITS / network.bits_per_second,
                    processors / (network.cores or self.workers),
                )
        return float(seconds)


def _why(made: AutoPlan) -> str:
    """Return one sentence about what was taken."""
    named = {way: f"{made.seconds[way] / _MILLI:,.1f}" for way in made.seconds}
    others = ", ".join(f"{way} {each}" for way, each in named.items() if way != made.chosen)
    kept = ""
    if made.chosen == forecast.MIXED:
        kept = " with some destinations left to the hosts"
    return (
        f"auto takes {_RUN_BY[made.chosen].name}{kept}: the exchanges of an epoch are predicted to "
        f"take {named[made.chosen]} ms ({others})."
    )
