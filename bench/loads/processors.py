"""What processors take in exchanges: the numbers that profiles of software switches have."""

import math
import os
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import numpy as np

from bench.loads.exchange import exchange
from bench.loads.training import WORKERS
from bench.testbeds.testbed import Served, Testbed
from switchgnn.p4src import load_program
from switchgnn.planner import Plan, build_plan, load_graph
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.costs.seconds import plan_seconds
from switchgnn.profiles import find_profile
from switchgnn.profiles.profile import network_of
from switchgnn.topologies import Target

_GRAPH, _WIDTH = "digits:80", 64
# Slots for some blocks of that graph.
_FEW_SLOTS = 256
_ROUNDS = {Target.EMBEDDED: 20, Target.BMV2: 5}
# Bits per second of a link that only processors limit.
_MEMORY_BITS = 1e11


@dataclass(frozen=True)
class ProcessorSeconds:
    """Seconds of processors, as SwitchProfile has them; None where the switch does not matter."""

    frame_seconds: float
    barrier_seconds: float
    host_frame_seconds: float | None = None
    host_exchange_seconds: float | None = None


@dataclass(frozen=True)
class _ProcessorTimes:
    """One round of an exchange, or more rounds together."""

    seconds: float  # of the clock
    workers: float  # seconds of processors, of all workers
    switch: float  # the same of the switch
    worker_frames: float  # frames that workers have sent and received
    switch_frames: float  # frames that the switch has received
    passes: float  # of these through the switch


def processor_seconds(target: Target) -> ProcessorSeconds:
    """Measure what processors take in exchanges without a limit on links.

    Frames are those of a plan with one block. A barrier is what each further block takes longer
    than predicted without barriers. An exchange between hosts is that of a plan which leaves all
    destinations to them. The embedded switch and its hosts are at loopback sockets, as in `train`.
    BMv2 is what everything waits for, so what it takes of a frame is what the round takes beyond
    the passes of its loop.
    """
    slots, known = load_program().slots, find_profile(target.value)
    plans = [_plan(slots), _plan(_FEW_SLOTS)]
    one, many = (_round(target, plan) for plan in plans)
    if target is Target.BMV2:
        loop = known.passes_per_second or math.inf
        looped = (one.passes - one.switch_frames) / loop
        costs = replace(known, frame_seconds=(one.seconds - looped) / one.switch_frames)
    else:
        loop = None
        alone = _round(target, _plan(slots, leave=True))
        costs = replace(
            known,
            frame_seconds=one.switch / one.switch_frames,
            host_frame_seconds=one.workers / one.worker_frames,
            host_exchange_seconds=alone.workers / WORKERS,
        )
    network = network_of(
        replace(costs, barrier_seconds=0.0),
        bits_per_second=_MEMORY_BITS,
        loop=loop,
        cores=os.cpu_count(),
    )
    foreseen = [plan_seconds(plan, Direction.FORWARD, _WIDTH, network) for plan in plans]
    longer = many.seconds - one.seconds - (foreseen[1] - foreseen[0])
    barriers = plans[1].manifest.blocks - plans[0].manifest.blocks
    frame, barrier = costs.frame_seconds or 0.0, longer / barriers
    if target is Target.BMV2:
        return ProcessorSeconds(frame, barrier)
    return ProcessorSeconds(frame, barrier, costs.host_frame_seconds, costs.host_exchange_seconds)


def _plan(slots: int, *, leave: bool = False) -> Plan:
    graph = load_graph(_GRAPH)
    return build_plan(
        graph,
        workers=WORKERS,
        slots=slots,
        program=load_program().digest,
        lanes=_WIDTH,
        left=np.full(graph.vertices, leave),
    )


def _round(target: Target, plan: Plan) -> _ProcessorTimes:
    """Return the mean round but the first, whose processes also start."""
    more = _ROUNDS[target]
    graph = load_graph(_GRAPH) if plan.leaves_any else None
    served = Served(plan, plan.switch, load_program(), graph)
    with Testbed(target, served, loopback=target is Target.EMBEDDED) as testbed:
        first, all_of_them = (_rounds(testbed, rounds) for rounds in (1, 1 + more))
    pairs = zip(astuple(first), astuple(all_of_them), strict=True)
    return _ProcessorTimes(*((last - begun) / more for begun, last in pairs))


def _rounds(testbed: Testbed, rounds: int) -> _ProcessorTimes:
    processes = testbed.fabric.switch_processes
    before = sum(map(_seconds_of, processes))
    done = exchange(testbed, rounds, _WIDTH)
    up, down = (done.traffic[f"frames_{direction}"] for direction in ("up", "down"))
    seconds = done.seconds * rounds
    return _ProcessorTimes(
        seconds,
        done.processor_seconds * rounds,
        sum(map(_seconds_of, processes)) - before,
        up + down,
        up,
        done.passes * done.contributions * seconds,
    )


def _seconds_of(process: int) -> float:
    """Return the seconds of processors that a process has taken so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
