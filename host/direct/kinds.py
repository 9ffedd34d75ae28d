# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The schedules of `g3`: the copies of `host`, in the order in which they are computed.

Which rows travel, and how many, is as with `host`. But the rows of a pair are numbered as they
become ready, forward and backward, so that a bin's rows fill whole groups of frames.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.network import Station
from switchgnn.host.direct.framing import Framing
from switchgnn.host.direct.outbox import visit_order
from switchgnn.host.direct.sampling import Sampling
from switchgnn.host.direct.schedule import (
    DirectSchedule,
    check_workers,
    cut_schedules,
    direct_schedules,
    read_schedule,
    write_schedule,
    write_schedules,
)
from switchgnn.host.direct.transport import DirectTransport, open_direct_link
from switchgnn.host.pace import Pace
from switchgnn.host.transport import WorkerEnd
from switchgnn.host.wire.link import Link
from switchgnn.planner.graphs.boundary import BoundaryEdges, boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.sending.between_hosts import fewest_rows


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

    `assignment`: int32[V], the worker of each vertex.
    """
    write_schedules(copy_schedules(graph, assignment, len(paths)), paths)


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
    """Make the schedules of `g3`.

    Args:
        graph: with V vertices.
        assignment: int32[V], the worker of each vertex.
        workers: their number.

    Returns:
        Both directions of each worker.

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


class BinnedTransport(DirectTransport):
    """One worker of `g3`: rows leave bin by bin, while those of other bins are computed.

    Args:
        schedule: this worker's part of both directions.
        link: an open link; see ``DirectTransport``.
        stations: where the workers are.
        pace: bounds on sending and waiting.
        sampling: refused if it is anything but all rows.
        framing: what a frame carries.

    Raises:
        DirectError: stations for another number of workers, or sampling.
    """

    def __init__(
        self,
        schedule: BinnedSchedule,
        link: Link,
        stations: tuple[Station, ...],
        *,
        pace: Pace | None = None,
        sampling: Sampling,
        framing: Framing,
    ) -> None:
        super().__init__(
            schedule.forward,
            link,
            stations,
            pace=pace,
            backward=schedule.backward,
            sampling=sampling,
            framing=framing,
        )


@contextmanager
def open_binned(end: WorkerEnd) -> Iterator[BinnedTransport]:
    """Open the transport `g3`.

    Yields the transport; its link is closed at the end.
    """
    schedule = read_binned_schedule(end.schedule_file())
    sampling, framing = Sampling(end.sampling, end.seed), Framing.parse(end.mtu)
    with open_direct_link(end, framing) as link:
        yield BinnedTransport(
            schedule, link, end.stations, pace=end.pace, sampling=sampling, framing=framing
        )


def write_binned_schedules(
    graph: Graph, assignment: NDArray[np.int32], paths: Sequence[Path]
) -> None:
    """Write the schedules of `g3`, those of the way back into files beside the others.

    `assignment`: int32[V], the worker of each vertex.
    """
    for schedule, path in zip(binned_schedules(graph, assignment, len(paths)), paths, strict=True):
        write_binned_schedule(schedule, path)


def write_binned_schedule(schedule: BinnedSchedule, path: Path) -> None:
    """Write one worker's schedules, backward into a file beside the other.

    Raises:
        ScheduleError: they cannot be written.
    """
    write_schedule(schedule.forward, path)
    write_schedule(schedule.backward, backward_file(path))


def read_binned_schedule(path: Path) -> BinnedSchedule:
    """Read what ``write_binned_schedule`` wrote.

    Raises:
        ScheduleError: no such files, or something else in them.
    """
    return BinnedSchedule(read_schedule(path), read_schedule(backward_file(path)))


def backward_file(path: Path) -> Path:
    """Return the file beside a schedule's, which holds that of the way back."""
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
