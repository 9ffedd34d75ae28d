# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The strongest exchange between hosts: copies or partial sums, whichever are fewer."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.direct.schedule import DirectSchedule, direct_schedules
from switchgnn.host.direct.schedule_files import write_schedules
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.sending.between_hosts import fewest_rows

__all__ = ["fewest_rows", "partial_schedules", "write_partial_schedules"]


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
