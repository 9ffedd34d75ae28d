# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What exchanges cost on this machine where links have no limit, measured once and cached.

Workers exchange the rows of a small and of a large graph, over the switch and between hosts. What
both take without a frame, and what each further frame takes, follows from the two sizes.
"""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from switchgnn import __version__
from switchgnn.base.arrays import pack_arrays
from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.native import cache_folder, compiled_once
from switchgnn.commands.shared.onlooker import NOBODY
from switchgnn.commands.shared.outputs import Recordings
from switchgnn.commands.shared.runner import (
    LinkSettings,
    NetworkJob,
    Workers,
    finished,
    schedule_file_of,
    workplace,
)
from switchgnn.commands.shared.workers import WorkerOutcome, run_workers
from switchgnn.host.mixed import write_left_schedules
from switchgnn.host.pace import Pace
from switchgnn.host.registry import SWITCH
from switchgnn.host.wire.native import hosts_run_as
from switchgnn.host.worker import WorkerTask
from switchgnn.p4src import load_program
from switchgnn.planner.build import build_plan
from switchgnn.planner.costs.seconds import NetworkModel, plan_seconds
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.plan.files import write_plan
from switchgnn.planner.plan.plan import Plan
from switchgnn.profiles import SwitchProfile
from switchgnn.softswitch.native.build import processor
from switchgnn.topologies import Target, compile_for
from switchgnn.topologies.processes.nursery import Nursery

# A graph, and how often its rows are exchanged; the first time also loads code.
_SMALL, _LARGE = ("karate", 60), ("random:600:12000:1", 30)
_WIDTH = 64
_MOST_WORKERS = 8
_WINDOW, _PATIENCE = 128, 5.0
# Exchanges in this share of the rounds are those that other programs disturb least.
_UNDISTURBED = 0.1
_LEAST_FACTOR = 0.01
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class MeasuredExchanges:
    """Exchanges of rows of 64 numbers between `workers`: of the small graph, and of the large one.

    Attributes:
        switch, hosts: seconds of an exchange.
        frames: frames of an exchange between hosts, each counted once.
    """

    workers: int
    switch: tuple[float, float]
    hosts: tuple[float, float]
    frames: tuple[float, float]

    def adapted(self, profile: SwitchProfile, network: NetworkModel, workers: int) -> SwitchProfile:
        """Return the profile with times with which predictions equal what was measured.

        The times of frames in the profile all change by one factor.

        Args:
            profile: of the switch.
            network: the links and processors of this machine, with the times of the profile.
            workers: those to predict for; beyond those measured, a barrier takes as much longer.
        """
        free = replace(network, barrier=0.0)
        small, large = (
            plan_seconds(_plan(graph, self.workers), Direction.FORWARD, _WIDTH, free)
            for graph, _ in (_SMALL, _LARGE)
        )
        factor = max(_LEAST_FACTOR, (self.switch[1] - self.switch[0]) / (large - small))
        barrier = max(0.0, self.switch[0] - factor * small) * workers / self.workers
        cores = network.cores or self.workers
        each = max(0.0, self.hosts[1] - self.hosts[0]) / (self.frames[1] - self.frames[0])
        alone = max(0.0, self.hosts[0] - each * self.frames[0])
        return replace(
            profile,
            frame_seconds=factor * network.switch_frame,
            host_frame_seconds=factor * network.host_frame,
            barrier_seconds=barrier,
            host_exchange_seconds=alone * cores / self.workers,
            packed_frame_seconds=each * cores,
        )


def measured_here(
    job: NetworkJob, nursery: Nursery | None, tell: Callable[[str], None]
) -> MeasuredExchanges | None:
    """Return what exchanges take on this machine, measuring them the first time.

    None where links have a limit, or nothing can be measured: the times of the profile then count.
    """
    target = job.choose_site().target
    if None not in (job.bandwidth, job.leaf_spine) or target is not Target.EMBEDDED:
        return None
    if job.workers == 1:
        return None
    workers = min(job.workers, _MOST_WORKERS)
    site = NetworkJob(
        workers=workers,
        slots=load_program().slots,
        target=target.value,
        fabric=job.fabric,
        backend=job.backend,
        bandwidth=None,
        ecn_threshold=job.ecn_threshold,
    )

    def measure(file: Path) -> None:
        tell("measure exchanges on this machine, once")
        file.write_bytes(msgspec.json.encode(_measure(site, nursery)))

    ahead = compile_for(target, load_program().json, job.backend)
    code = (ahead.backend.value if ahead else "", hosts_run_as())
    made_of = (__version__, processor(), str(os.cpu_count()), *code, job.fabric, str(workers))
    try:
        file = compiled_once(cache_folder("exchanges"), "seconds", made_of, measure)
        return msgspec.json.decode(file.read_bytes(), type=MeasuredExchanges)
    except (OSError, SwitchGNNError, msgspec.DecodeError) as error:
        _LOG.info("Exchanges are predicted from the profile of the switch: %s", error)
        return None


def _measure(job: NetworkJob, nursery: Nursery | None) -> MeasuredExchanges:
    switch = [_exchanged(job, *each, nursery, leave=False) for each in (_SMALL, _LARGE)]
    hosts = [_exchanged(job, *each, nursery, leave=True) for each in (_SMALL, _LARGE)]
    frames = [
        sum(each.traffic["frames_up"] for each in ends) / rounds
        for ends, (_, rounds) in zip(hosts, (_SMALL, _LARGE), strict=True)
    ]
    return MeasuredExchanges(
        job.workers,
        (_typical(switch[0]), _typical(switch[1])),
        (_typical(hosts[0]), _typical(hosts[1])),
        (frames[0], frames[1]),
    )


def _typical(ends: list[WorkerOutcome]) -> float:
    """Return the seconds of an exchange that other programs do not disturb."""
    rounds = np.array([each.round_seconds[1:] for each in ends])
    return float(np.quantile(rounds, _UNDISTURBED, axis=1).mean())


def _plan(graph: str, workers: int, *, leave: bool = False) -> Plan:
    read, program = load_graph(graph), load_program()
    left = np.full(read.vertices, leave)
    shape: dict[str, Any] = {"workers": workers, "slots": program.slots, "lanes": _WIDTH}
    return build_plan(read, **shape, program=program.digest, left=left)


def _exchanged(
    job: NetworkJob, graph: str, rounds: int, nursery: Nursery | None, *, leave: bool
) -> list[WorkerOutcome]:
    """Exchange rows over the switch, or between hosts alone, and return the workers' reports."""
    plan = _plan(graph, job.workers, leave=leave)
    with workplace(lambda *_: None, nursery, None, NOBODY) as work:
        write_plan(plan, work.folder / "plan")
        if leave:
            paths = [schedule_file_of(work.folder, worker) for worker in range(job.workers)]
            write_left_schedules(load_graph(graph), plan, paths)

        def task(shared: dict[str, Any]) -> WorkerTask:
            features = work.folder / f"features-{shared['worker']}.safetensors"
            rows = np.ones((int((plan.assignment == shared["worker"]).sum()), _WIDTH), np.float32)
            features.write_bytes(pack_arrays({"features": rows}))
            output = features.with_name(f"sums-{shared['worker']}.safetensors")
            pace = Pace(_WINDOW, _PATIENCE)
            own = {"features": features, "output": output, "pace": pace}
            return WorkerTask(**shared, **own, rounds=rounds, rounds_per_file=rounds)

        workers = Workers(
            program=load_program(),
            parts=None,
            transport=SWITCH.name,
            task=task,
            run=lambda fabric, tasks: run_workers(fabric, tasks, lambda _done, _steps: None),
            recordings=Recordings(),
            links=LinkSettings(),
            scheduled=leave,
        )
        with finished(job, job.choose_site(), workers, work) as done:
            return done.result
