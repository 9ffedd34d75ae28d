"""The schedules of `host`, `host-partial` and `g3`, and the transport `g3`.

The rows of `g3` are those of `host`, but the rows of a pair are numbered as they become ready,
forward and backward, so that a bin's rows fill whole groups of frames.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from switchgnn.base.array_types import Bools, Int32s, Int64s
from switchgnn.host.base.compression import Compression
from switchgnn.host.base.errors import ScheduleError
from switchgnn.host.direct import schedule as schedules
from switchgnn.host.direct.outbox import visit_order
from switchgnn.host.direct.transport import DirectTransport, open_schedule
from switchgnn.host.links.transport import WorkerEnd
from switchgnn.planner.graphs.boundary import BoundaryEdges, boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.vertex_cut import ReplicaGraph
from switchgnn.planner.sending.between_hosts import fewest_rows


def copies(boundary: BoundaryEdges) -> Bools:
    """Choose a copy for every edge; return bool[E], see ``direct_schedules``."""
    return np.ones(len(boundary), dtype=np.bool_)


def copy_schedules(graph: Graph, assignment: Int32s, workers: int) -> schedules.DirectSchedules:
    """Make those of `host`: a copy for each worker that needs it; see ``direct_schedules``."""
    return schedules.direct_schedules(graph, assignment, workers, choose=copies)


def partial_schedules(graph: Graph, assignment: Int32s, workers: int) -> schedules.DirectSchedules:
    """Make those of `host-partial`: whichever rows are fewer; see ``direct_schedules``."""
    return schedules.direct_schedules(graph, assignment, workers, choose=fewest_rows)


@dataclass(frozen=True, eq=False)
class BinnedSchedule:
    """One worker's part of both directions.

    `backward` is the transpose of `forward`, with the rows of each pair in another order.
    """

    forward: schedules.DirectSchedule
    backward: schedules.DirectSchedule


def binned_schedules(graph: Graph, assignment: Int32s, workers: int) -> tuple[BinnedSchedule, ...]:
    """Make the schedules of `g3`, of both directions, one per worker; see ``direct_schedules``."""
    schedules.check_workers(graph, assignment, workers)
    boundary = boundary_edges(graph, assignment)
    turn = _turns(graph, assignment, workers, boundary)
    forward = schedules.cut_schedules(
        boundary, assignment, workers, by_copy=copies(boundary), turn=turn
    )
    # Backward computes the same vertices in reverse.
    transposed = boundary.transposed()
    backward = schedules.cut_schedules(
        transposed, assignment, workers, by_copy=~copies(transposed), turn=-turn
    )
    return tuple(map(BinnedSchedule, forward, backward))


def _turns(graph: Graph, assignment: Int32s, workers: int, boundary: BoundaryEdges) -> Int64s:
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


# One of the functions above, such as ``copy_schedules``.
ScheduleChoice = Callable[[Graph, Int32s, int], Sequence[schedules.DirectSchedule | BinnedSchedule]]


def write_schedules(
    graph: Graph, assignment: Int32s, paths: Sequence[Path], *, choose: ScheduleChoice
) -> None:
    """Write the schedules that ``choose`` makes; ``paths``: one per worker."""
    scatters = isinstance(graph, ReplicaGraph)
    graph = graph.gathered() if isinstance(graph, ReplicaGraph) else graph
    for schedule, path in zip(choose(graph, assignment, len(paths)), paths, strict=True):
        if isinstance(schedule, BinnedSchedule) and scatters:
            raise ScheduleError("Bins are of vertices with all edges: g3 has no vertex cut.")
        if isinstance(schedule, BinnedSchedule):
            schedules.write_schedule(schedule.forward, path)
            schedules.write_schedule(schedule.backward, backward_file(path))
        else:
            schedules.write_schedule(replace(schedule, scatters=scatters), path)


def backward_file(path: Path) -> Path:
    """Return the file of the backward schedule, next to the forward one."""
    return path.with_name(f"{path.stem}-backward{path.suffix}")


class BinnedTransport(DirectTransport):
    """One worker of `g3`: rows are sent bin by bin while other bins are computed."""

    def compress(self, compression: Compression) -> None:
        """Refuse a cache and fewer bits."""
        compression.refuse("g3", "take host, host-partial or switch, or plain rows of 32 bits")


def open_binned(end: WorkerEnd) -> AbstractContextManager[DirectTransport]:
    """Open the transport `g3`."""
    file = end.schedule_file()
    forward, backward = schedules.read_schedule(file), schedules.read_schedule(backward_file(file))
    return open_schedule(end, forward, backward=backward, kind=BinnedTransport)
