# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`--transport auto`: the transport whose exchanges are predicted to take the least time."""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from switchgnn.commands.train.display import Epochs
from switchgnn.commands.train.job import TrainJob
from switchgnn.commands.train.plan import plan_of, widths_of
from switchgnn.host.direct.framing import Framing
from switchgnn.host.registry import HOST, HOST_PARTIAL, SWITCH, TransportKind
from switchgnn.planner.costs.host_seconds import packed_frames
from switchgnn.planner.costs.seconds import Network, plan_seconds
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import BoundaryEdges, boundary_edges
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.sending.between_hosts import fewest_rows, rows_between
from switchgnn.profiles import SwitchProfile, find_profile
from switchgnn.topologies import Target, choose
from switchgnn.training.data.dataset import Dataset

# Of the first one to take no more time than the others.
_CANDIDATES = (SWITCH, HOST_PARTIAL, HOST)
# A link without a limit is the memory of this machine, and its other end is at once behind it.
_MEMORY_BITS, _DELAY = 1e11, 20e-6
_MEGA, _MILLI, _BITS = 1e6, 1e-3, 8


@dataclass(frozen=True, eq=False)
class Prediction:
    """What the exchanges of an epoch are predicted to take.

    Attributes:
        seconds: of an epoch, by the name of the transport; empty where nothing can be predicted.
        chosen: the transport that takes the least.
        why: one sentence for the user.
    """

    seconds: Mapping[str, float]
    chosen: TransportKind
    why: str


def resolved(job: TrainJob, data: Dataset, shown: Epochs) -> tuple[TrainJob, dict[str, float]]:
    """Return the job over the transport that is predicted to be the fastest, and say why.

    Args:
        job: what to do, over the switch.
        data: the data set to train on.
        shown: says it.

    Returns:
        The job, and the predicted seconds by transport.

    Raises:
        SwitchGNNError: as ``predict_transport``.
    """
    found = predict_transport(job, data, lambda what: shown.step(what, 0, 0))
    shown.note(found.why)
    return replace(job, task=replace(job.task, transport=found.chosen.name)), dict(found.seconds)


def predict_transport(job: TrainJob, data: Dataset, progress: Callable[[str], None]) -> Prediction:
    """Predict what exchanges take over each transport, and choose one.

    Args:
        job: what to do, over the switch.
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
    network = network_of(job, profile, choice.target)
    plan = plan_of(job, data, progress)[1]
    progress("predict the seconds of exchanges")
    widths = Counter(widths_of(job, data))
    seconds = {SWITCH.name: _of_plan(plan, widths, network)}
    boundary = boundary_edges(data.graph, plan.assignment)
    for kind in (HOST_PARTIAL, HOST):
        seconds[kind.name] = _between_hosts(kind, boundary, job.workers, widths, profile, network)
    chosen = min(_CANDIDATES, key=lambda kind: seconds[kind.name])
    return Prediction(seconds, chosen, _why(seconds, chosen))


def network_of(job: TrainJob, profile: SwitchProfile, target: Target) -> Network:
    """Describe what a training of this machine's processes exchanges over.

    Args:
        job: with the rate of the links.
        profile: of the switch, with what was measured of it and of hosts.
        target: the switch.

    Returns:
        Links, switch and processors.
    """
    framing = Framing.parse(job.task.mtu)
    return Network(
        bits_per_second=_MEMORY_BITS if job.bandwidth is None else job.bandwidth * _MEGA,
        delay=_DELAY,
        passes_per_second=profile.passes_per_second if target is Target.BMV2 else None,
        host_frame=profile.host_frame_seconds or 0.0,
        switch_frame=profile.frame_seconds or 0.0,
        barrier=profile.barrier_seconds or 0.0,
        mtu=framing.packet_bytes,
        window=job.task.pace.window,
        cores=os.cpu_count(),
    )


def _of_plan(plan: Plan, widths: Mapping[int, int], network: Network) -> float:
    """Return the seconds of exchanges in the switch, half of them in each direction."""
    return sum(
        times / len(Direction) * plan_seconds(plan, direction, width, network)
        for direction in Direction
        for width, times in widths.items()
    )


def _between_hosts(
    kind: TransportKind,
    boundary: BoundaryEdges,
    workers: int,
    widths: Mapping[int, int],
    profile: SwitchProfile,
    network: Network,
) -> float:
    """Return the seconds of exchanges between hosts; what goes back is the transpose.

    Windows stay open from one exchange to the next and hold most of it, so the busiest link is
    never idle. Where links are fast, processors are what is waited for.
    """
    by_copy = fewest_rows(boundary) if kind is HOST_PARTIAL else None
    rows = rows_between(boundary, workers, by_copy)
    work = workers * (profile.host_exchange_seconds or 0.0)
    seconds = 0.0
    for width, times in widths.items():
        frames, sizes = packed_frames(rows, width, network.mtu)
        links = max(sizes.sum(axis=axis).max() for axis in (0, 1))
        processors = (work + frames.sum() * network.switch_frame) / (network.cores or workers)
        seconds += times * max(links * _BITS / network.bits_per_second, processors)
    return float(seconds)


def _why(seconds: Mapping[str, float], chosen: TransportKind) -> str:
    others = ", ".join(
        f"{name} {value / _MILLI:,.1f}" for name, value in seconds.items() if name != chosen.name
    )
    return (
        f"auto takes {chosen.name}: the exchanges of an epoch are predicted to take "
        f"{seconds[chosen.name] / _MILLI:,.1f} ms ({others})."
    )
