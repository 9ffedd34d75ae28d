# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What hosts send each other for the destinations that a plan leaves to them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.direct.binned import BinnedSchedule, write_binned_schedule
from switchgnn.host.direct.partial import fewest_rows
from switchgnn.host.direct.schedule import DirectSchedule, check_workers, cut_schedules
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import BoundaryEdges, boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.plan.plan import Plan


def left_schedules(
    graph: Graph,
    assignment: NDArray[np.int32],
    workers: int,
    left: Mapping[Direction, NDArray[np.bool_]],
) -> tuple[BinnedSchedule, ...]:
    """Make the schedules of the destinations that are left to the hosts.

    Each direction has copies or partial sums, whichever are fewer, as `host-partial` has.

    Args:
        graph: with V vertices.
        assignment: int32[V], the worker of each vertex.
        workers: their number.
        left: by direction bool[V], the destinations.

    Returns:
        Both directions of each worker.

    Raises:
        ScheduleError: as ``direct_schedules``.
    """
    check_workers(graph, assignment, workers)
    boundary = boundary_edges(graph, assignment)
    cut = [
        _cut(edges, left[direction], assignment, workers)
        for direction, edges in (
            (Direction.FORWARD, boundary),
            (Direction.BACKWARD, boundary.transposed()),
        )
    ]
    # Workers that differ in either direction must not take each other's rows.
    both = hashlib.sha256(b"".join(parts[0].digest.tobytes() for parts in cut)).digest()
    digest = np.frombuffer(both, dtype=np.uint8)
    forward, backward = ([replace(part, digest=digest) for part in parts] for parts in cut)
    return tuple(map(BinnedSchedule, forward, backward))


def _cut(
    boundary: BoundaryEdges, left: NDArray[np.bool_], assignment: NDArray[np.int32], workers: int
) -> tuple[DirectSchedule, ...]:
    edges = boundary.take(np.flatnonzero(left[boundary.destination]))
    turn = np.zeros(len(assignment), dtype=np.int64)
    return cut_schedules(edges, assignment, workers, by_copy=fewest_rows(edges), turn=turn)


def write_left_schedules(graph: Graph, plan: Plan, paths: Sequence[Path]) -> None:
    """Write what hosts send for the destinations that a plan leaves to them.

    Args:
        graph: what the plan is for.
        plan: the plan.
        paths: one file per worker; each has another one beside it for the way back.

    Raises:
        ScheduleError: as ``direct_schedules``, or a file cannot be written.
    """
    left = {direction: plan.left(direction) for direction in Direction}
    schedules = left_schedules(graph, plan.assignment, plan.manifest.workers, left)
    for schedule, path in zip(schedules, paths, strict=True):
        write_binned_schedule(schedule, path)
