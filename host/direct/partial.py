# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The strongest exchange between hosts: copies or partial sums, whichever are fewer."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.direct.schedule import MOST_WORKERS, DirectSchedule, direct_schedules
from switchgnn.host.direct.schedule_files import write_schedules
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.sending.cover import cover_by_left


def fewest_rows(boundary: BoundaryEdges) -> NDArray[np.bool_]:
    """Choose for every edge u→v between a copy of u and a partial sum for v.

    The boundary edges from worker a to worker b are a bipartite graph. An edge is served
    when u is sent raw or the partial sum for v is sent, so what is sent is a vertex cover,
    and a minimum one is the least that a can send to b. Per pair of workers it is at most
    one copy of each source, and at most one partial sum for each destination.

    Returns:
        bool[E], see ``direct_schedules``.
    """
    # One vertex for each source and receiver, one for each destination and sender: the
    # pairs of workers do not touch each other, and one cover serves all.
    left = boundary.source.astype(np.int64) * MOST_WORKERS + boundary.destination_worker
    right = boundary.destination.astype(np.int64) * MOST_WORKERS + boundary.source_worker
    return cover_by_left(
        np.unique(left, return_inverse=True)[1].reshape(-1),
        np.unique(right, return_inverse=True)[1].reshape(-1),
    )


def partial_schedules(
    graph: Graph, assignment: NDArray[np.int32], workers: int
) -> tuple[DirectSchedule, ...]:
    """Make the schedules of `host-partial`.

    Args:
        graph: with V vertices.
        assignment: int32[V], the worker of each vertex.
        workers: their number.

    Returns:
        One schedule per worker.

    Raises:
        ScheduleError: as ``direct_schedules``.
    """
    return direct_schedules(graph, assignment, workers, choose=fewest_rows)


def write_partial_schedules(
    graph: Graph, assignment: NDArray[np.int32], paths: Sequence[Path]
) -> None:
    """Write the schedules of `host-partial`.

    Args:
        graph: with V vertices.
        assignment: int32[V], the worker of each vertex.
        paths: one file per worker.

    Raises:
        ScheduleError: as ``direct_schedules``, or a file cannot be written.
    """
    write_schedules(partial_schedules(graph, assignment, len(paths)), paths)
