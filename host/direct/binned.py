# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The schedules of `g3`: the copies of `host`, in the order in which they are computed.

Which rows travel, and how many, is as with `host`. But the rows of a pair are numbered as they
become ready, forward and backward, so that a bin's rows fill whole groups of frames.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.direct.schedule import (
    DirectSchedule,
    check_workers,
    copies,
    cut_schedules,
)
from switchgnn.host.direct.schedule_files import read_schedule, write_schedule
from switchgnn.host.direct.visit_order import visit_order
from switchgnn.planner.graphs.boundary import BoundaryEdges, boundary_edges
from switchgnn.planner.graphs.graph import Graph


@dataclass(frozen=True, eq=False)
class BinnedSchedule:
    """One worker's part of both directions.

    Attributes:
        forward: a copy of a row for each worker that needs it.
        backward: what those workers add up for it; the transpose of `forward`, with the rows
            of each pair in another order.
    """

    forward: DirectSchedule
    backward: DirectSchedule


def binned_schedules(
    graph: Graph, assignment: NDArray[np.int32], workers: int
) -> tuple[BinnedSchedule, ...]:
    """The schedules of `g3`.

    Raises:
        ScheduleError: as ``direct_schedules``.
    """
    check_workers(graph, assignment, workers)
    boundary = boundary_edges(graph, assignment)
    turn = _turns(graph, assignment, workers, boundary)
    forward = cut_schedules(boundary, assignment, workers, by_copy=copies(boundary), turn=turn)
    # Backward computes the same vertices in reverse.
    transposed = boundary.transposed()
    backward = cut_schedules(
        transposed, assignment, workers, by_copy=~copies(transposed), turn=-turn
    )
    return tuple(map(BinnedSchedule, forward, backward))


def write_binned_schedule(schedule: BinnedSchedule, path: Path) -> None:
    """Write one worker's schedules, backward into a file beside the other.

    Raises:
        ScheduleError: they cannot be written.
    """
    write_schedule(schedule.forward, path)
    write_schedule(schedule.backward, _beside(path))


def read_binned_schedule(path: Path) -> BinnedSchedule:
    """Read what ``write_binned_schedule`` wrote.

    Raises:
        ScheduleError: no such files, or something else in them.
    """
    return BinnedSchedule(read_schedule(path), read_schedule(_beside(path)))


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.stem}-backward{path.suffix}")


def _turns(
    graph: Graph, assignment: NDArray[np.int32], workers: int, boundary: BoundaryEdges
) -> NDArray[np.int64]:
    """int64[V], when each vertex is computed by its worker."""
    source, destination = graph.edges()
    stays = assignment[source] == assignment[destination]
    ends, home = np.stack([source[stays], destination[stays]]), assignment[source[stays]]
    remote = np.zeros(graph.vertices, dtype=np.bool_)
    remote[boundary.vertices()] = True
    turn = np.zeros(graph.vertices, dtype=np.int64)
    for worker in range(workers):
        vertices = np.flatnonzero(assignment == worker)
        edges = np.searchsorted(vertices, ends[:, home == worker])
        turn[vertices[visit_order(edges, remote[vertices])]] = np.arange(len(vertices))
    return turn
