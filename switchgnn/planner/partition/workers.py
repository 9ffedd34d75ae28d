"""The worker of each vertex."""

import numpy as np

from switchgnn.base.array_types import Int32s, Integers
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.metis import partition_vertices

# A block's barrier and members are sets of 128 bits, one per worker.
MAX_WORKERS = 128
# The most vertices of a worker, as a share of the mean.
MOST_SHARE = 1.05


def partition_workers(graph: Graph, workers: int, seed: int, *, volume: bool = False) -> Int32s:
    """Assign every vertex to a worker with METIS: few edges between workers, equal shares.

    Args:
        graph: with V vertices; directions do not matter.
        workers: their number.
        seed: of METIS.
        volume: instead of edges count the pairs of a vertex and another worker with a neighbour of
            it: the copies of host-based exchange for an undirected graph.

    Returns:
        int32[V], 0 <= worker < workers; every worker has a vertex.

    Raises:
        PlannerError: fewer than 1, more than 128, or more workers than vertices.
    """
    check_workers(graph, workers)
    source, destination = graph.edges()
    part = partition_vertices(
        source, destination, vertices=graph.vertices, parts=workers, seed=seed, volume=volume
    )
    return fill_empty(part, workers, graph)


def check_assignment(graph: Graph, workers: int, assignment: Integers) -> Int32s:
    """Check an assignment, and return it as int32[V]."""
    if assignment.shape != (graph.vertices,) or not np.issubdtype(assignment.dtype, np.integer):
        raise PlannerError(
            f"The assignment must be {graph.vertices} whole numbers, one worker per vertex."
        )
    if assignment.min() < 0 or assignment.max() >= workers:
        raise PlannerError(f"The assignment names a worker outside 0..{workers - 1}.")
    shares = np.bincount(assignment, minlength=workers)
    if shares.min() == 0:
        raise PlannerError(f"The assignment gives no vertex to worker {int(np.argmin(shares))}.")
    return assignment.astype(np.int32)


def check_workers(graph: Graph, workers: int) -> None:
    """Raise PlannerError unless 1 <= workers <= 128 and every worker can get a vertex."""
    if not 1 <= workers <= MAX_WORKERS:
        raise PlannerError(f"{workers} workers are not possible; from 1 to {MAX_WORKERS} are.")
    if workers > graph.vertices:
        raise PlannerError(
            f"{workers} workers are too many for graph {graph.name}, "
            f"which has {graph.vertices} vert{'ex' if graph.vertices == 1 else 'ices'}."
        )


def fill_empty(part: Int32s, workers: int, graph: Graph) -> Int32s:
    """Give each empty part the vertex of the largest part that has the fewest neighbours."""
    return fill_parts(part, workers, np.diff(graph.indptr))


def fill_parts(part: Int32s, workers: int, degree: Integers) -> Int32s:
    """Do what `fill_empty` does, given only the degrees, integers[V]."""
    shares = np.bincount(part, minlength=workers)
    part = part.copy()
    for empty in np.flatnonzero(shares == 0):
        largest = int(np.argmax(shares))
        members = np.flatnonzero(part == largest)
        part[members[np.argmin(degree[members])]] = empty
        shares[largest] -= 1
        shares[empty] += 1
    return part
