"""The partition of G3: workers with about as many vertices, edges and remote neighbours.

G3 (Wan et al., SIGMOD 2023, section 4.2) has two stages: METIS balances vertices and edges, then
swaps between the worker with the most remote neighbours and one with few even these out.
"""

from dataclasses import dataclass

import numpy as np

from switchgnn.base.array_types import Int32s, Int64s, Integers
from switchgnn.planner.base.arrays import Compiled, ranges, sort_by_key, symmetric_rows
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.metis import partition_vertices
from switchgnn.planner.partition.workers import check_workers, fill_empty


class RemoteCounts:
    """An assignment of vertices to workers, with the remote neighbours of each worker.

    A move costs time in proportion to the degree of the vertex: G3's fast neighbour tracking
    (section 4.2), for moves in both directions. The counts take 4 bytes per vertex and worker.
    """

    def __init__(self, indptr: Int64s, indices: Int32s, assignment: Int32s, workers: int) -> None:
        self._indptr, self._indices = indptr, indices
        self.assignment: Int32s = assignment.copy()  # [V], the worker of each vertex
        self.degree = np.diff(indptr)  # int64[V], the number of its neighbours
        # [V, P]; [v, p] is the number of neighbours of v on worker p
        self.inside = np.zeros((len(assignment), workers), dtype=np.int32)
        # [P], the vertices of other workers with a neighbour on each worker
        self.remote = np.zeros(workers, dtype=np.int64)
        _count(indptr, indices, self.assignment, self.inside, self.remote)
        # [P], the degrees of each worker's vertices, added up
        self.degree_sum = np.zeros(workers, dtype=np.int64)
        np.add.at(self.degree_sum, assignment, self.degree)

    def neighbours(self, vertex: int) -> Int32s:
        """Return the neighbours of a vertex."""
        return self._indices[self._indptr[vertex] : self._indptr[vertex + 1]]

    def move(self, vertex: int, to: int) -> None:
        """Give a vertex to another worker; only the counts of the two workers change."""
        origin = int(self.assignment[vertex])
        # The vertex itself: now inside one worker, outside the other.
        self.remote[to] -= int(self.inside[vertex, to] > 0)
        self.remote[origin] += int(self.inside[vertex, origin] > 0)
        self.assignment[vertex] = to
        near = self.neighbours(vertex)
        owner = self.assignment[near]
        self.remote[origin] -= np.count_nonzero(
            (self.inside[near, origin] == 1) & (owner != origin)
        )
        self.remote[to] += np.count_nonzero((self.inside[near, to] == 0) & (owner != to))
        self.inside[near, origin] -= 1
        self.inside[near, to] += 1
        self.degree_sum[origin] -= self.degree[vertex]
        self.degree_sum[to] += self.degree[vertex]

    def swap(self, one: int, other: int) -> None:
        """Exchange the workers of two vertices."""
        first, second = int(self.assignment[one]), int(self.assignment[other])
        self.move(one, second)
        self.move(other, first)

    def leaving(self, vertices: Integers) -> Int64s:
        """Return the change of the own worker's remote count if each vertex left it."""
        return self._changes(vertices, self.assignment[vertices], 1)

    def joining(self, vertices: Integers, worker: int) -> Int64s:
        """Return the change of another worker's remote count if each vertex joined it."""
        return self._changes(vertices, np.full(len(vertices), worker, dtype=np.int32), 0)

    def _changes(self, vertices: Integers, workers: Int32s, lone: int) -> Int64s:
        """Return the change of each worker's remote count as the vertex leaves (1) or joins (0) it.

        A neighbour changes if it has `lone` neighbours there, and the vertex itself if it has any.
        """
        sizes = self.degree[vertices]
        near = self._indices[ranges(self._indptr[vertices], sizes)]
        position, worker = (np.repeat(each, sizes) for each in (np.arange(len(sizes)), workers))
        changes = (self.inside[near, worker] == lone) & (self.assignment[near] != worker)
        others = np.bincount(position[changes], minlength=len(sizes))
        changed: Int64s = (self.inside[vertices, workers] > 0) - others
        return changed if lone else -changed


@Compiled
def _count(
    indptr: Int64s, indices: Int32s, assignment: Int32s, inside: Int32s, remote: Int64s
) -> None:
    for vertex in range(len(assignment)):
        for at in range(indptr[vertex], indptr[vertex + 1]):
            inside[vertex, assignment[indices[at]]] += 1
        for worker in range(len(remote)):
            if worker != assignment[vertex] and inside[vertex, worker] > 0:
                remote[worker] += 1


# Stage 2 ends when the smallest remote count is within 0.5 % of the largest.
GAMMA = 0.005
# `g3` lets no worker's sum of degrees grow beyond this share of the mean: METIS's tolerance.
DEGREE_TOLERANCE = 1.03
# The most directed edges of a graph whose communication volume METIS minimises. That takes time in
# proportion to the squares of degrees; of larger graphs it minimises the edge-cut, which G3 allows
# as well.
MOST_VOLUME_EDGES = 2_000_000
# How many vertices of each of the two workers `g3` compares, and how many pairs it tries.
_CANDIDATES = 64
_TRIES = 16


def g3(graph: Graph, workers: int, seed: int) -> Int32s:
    """Partition as G3 does, with a second stage that only improves on the first.

    A swap is made only if the largest remote count falls, the sums of degrees stay within
    DEGREE_TOLERANCE (or within those of stage 1), and neither vertex has moved before. It ends when
    no pair among the candidates helps, or at GAMMA.
    """
    check_workers(graph, workers)
    source, destination = graph.edges()
    indptr, indices = symmetric_rows(source, destination, graph.vertices)
    first = partition_vertices(
        source,
        destination,
        vertices=graph.vertices,
        parts=workers,
        seed=seed,
        # The two constraints.
        weights=np.stack([np.ones(graph.vertices, dtype=np.int64), np.diff(indptr)], axis=1),
        volume=len(indices) <= MOST_VOLUME_EDGES,
    )
    counts = RemoteCounts(indptr, indices, fill_empty(first, workers, graph), workers)
    swap_while_better(counts)
    return counts.assignment


def swap_while_better(counts: RemoteCounts) -> int:
    """Run the second stage of :func:`g3`, and return the number of swaps."""
    swapper = _Swapper(counts)
    swaps = 0
    while swapper.improve():
        swaps += 1
    return swaps


class _Swapper:
    """The second stage of :func:`g3`, swap by swap; a vertex moves at most once."""

    def __init__(self, counts: RemoteCounts) -> None:
        self._counts = counts
        self._limit = max(DEGREE_TOLERANCE * counts.degree_sum.mean(), counts.degree_sum.max())
        self._free = np.ones(len(counts.assignment), dtype=bool)
        indptr, order = sort_by_key(counts.assignment, len(counts.remote))
        self._members = np.split(order, indptr[1:-1])

    def improve(self) -> bool:
        counts = self._counts
        high = int(counts.remote.argmax())
        # Most neighbours elsewhere: fewest here, for their degree.
        ours = self._lowest(high, high, -1)
        own = counts.leaving(ours)
        for low in np.argsort(counts.remote, kind="stable").tolist():
            if low == high or counts.remote[low] >= (1 - GAMMA) * counts.remote[high]:
                return False
            theirs = self._lowest(low, high, 1)
            pair = self._swap_pair(
                _Candidates(high, ours, own, counts.joining(ours, low)),
                _Candidates(low, theirs, counts.leaving(theirs), counts.joining(theirs, high)),
            )
            if pair is not None:
                self._free[list(pair)] = False
                return True
        return False

    def _lowest(self, worker: int, inside: int, sign: int) -> Int32s:
        """Return free vertices by neighbours outside `inside`: fewest first (1) or most (-1)."""
        counts, members = self._counts, self._members[worker]
        members = members[self._free[members]]
        outside = counts.degree[members] - counts.inside[members, inside]
        return members[np.argsort(sign * outside, kind="stable")[:_CANDIDATES]]

    def _swap_pair(self, ours: "_Candidates", theirs: "_Candidates") -> tuple[int, int] | None:
        """Swap a pair of the two workers that lowers the count of the first, if one is found.

        Candidates are ranked by the sum of both moves; shared neighbours show only in the trial
        swap, which is undone if it does not help.
        """
        counts, high, low = self._counts, ours.worker, theirs.worker
        before = counts.remote[high]
        new_high = before + ours.own[:, None] + theirs.other[None, :]
        new_low = counts.remote[low] + ours.other[:, None] + theirs.own[None, :]
        shift = counts.degree[theirs.vertex][None, :] - counts.degree[ours.vertex][:, None]
        fits = counts.degree_sum[high] + shift <= self._limit
        fits &= counts.degree_sum[low] - shift <= self._limit
        worst = np.maximum(new_high, new_low)
        row, column = np.nonzero(fits & (worst < before))
        best = np.lexsort(((new_high + new_low)[row, column], worst[row, column]))[:_TRIES]
        for one, other in zip(row[best].tolist(), column[best].tolist(), strict=True):
            pair = int(ours.vertex[one]), int(theirs.vertex[other])
            counts.swap(*pair)
            if max(counts.remote[high], counts.remote[low]) < before:
                return pair
            counts.swap(*pair)
        return None


@dataclass(frozen=True, eq=False)
class _Candidates:
    worker: int  # the holder
    vertex: Int32s  # [C]
    own: Int64s  # [C], the change of the remote count of this worker
    other: Int64s  # [C], the change of the remote count of the other worker
