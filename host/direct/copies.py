# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The plain exchange between hosts, as in BNS-GCN (MLSys 2022): a copy for each worker."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.direct.schedule import DirectSchedule, direct_schedules
from switchgnn.host.direct.schedule_files import write_schedules
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.graphs.graph import Graph


def copies(boundary: BoundaryEdges) -> NDArray[np.bool_]:
    """Choose a copy for every edge; return bool[E], see ``direct_schedules``."""
    return np.ones(len(boundary), dtype=np.bool_)


def copy_schedules(
    graph: Graph, assignment: NDArray[np.int32], workers: int
) -> tuple[DirectSchedule, ...]:
    """Make the schedules of `host`: one copy per vertex and remote worker that needs it.

    Args:
        graph: with V vertices.
        assignment: int32[V], the worker of each vertex.
        workers: their number.

    Returns:
        One schedule per worker.

    Raises:
        ScheduleError: as ``direct_schedules``.
    """
    return direct_schedules(graph, assignment, workers, choose=copies)


def write_copy_schedules(
    graph: Graph, assignment: NDArray[np.int32], paths: Sequence[Path]
) -> None:
    """Write the schedules of `host`.

    Args:
        graph: with V vertices.
        assignment: int32[V], the worker of each vertex.
        paths: one file per worker.

    Raises:
        ScheduleError: as ``direct_schedules``, or a file cannot be written.
    """
    write_schedules(copy_schedules(graph, assignment, len(paths)), paths)
