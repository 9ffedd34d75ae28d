# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`--transport auto`: the transport whose exchanges are predicted to take the least time."""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from switchgnn.commands.train.display import Epochs
from switchgnn.commands.train.job import Planned, TrainJob
from switchgnn.commands.train.plan import fastest_of, widths_of
from switchgnn.host.direct.framing import Framing
from switchgnn.host.registry import HOST, HOST_PARTIAL, SWITCH, TransportKind
from switchgnn.planner.auto import AutoPlan
from switchgnn.planner.costs import forecast
from switchgnn.planner.costs.host_seconds import packed_frames
from switchgnn.planner.costs.seconds import Network, plan_seconds
from switchgnn.planner.direction import Direction
from switchgnn.planner.plan.plan import Plan
from switchgnn.profiles import SwitchProfile, find_profile
from switchgnn.profiles.network import network_of
from switchgnn.topologies import Target, choose
from switchgnn.training.data.dataset import Dataset

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
