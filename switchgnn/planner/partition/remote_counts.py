# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How many vertices each worker would fetch from others, kept up to date move by move."""

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.arrays.compiled import Compiled


class RemoteCounts:
    """An assignment of vertices to workers, and what each worker needs of the others.

    A move costs time in proportion to the degree of the vertex: G3's fast neighbour tracking
    (section 4.2), for moves in both directions. The counts take 4 bytes per vertex and worker.

    Attributes:
        assignment: int32[V], the worker of each vertex.
        degree: int64[V], the number of its neighbours.
        inside: int32[V, P]; [v, p] is the number of neighbours of v on worker p.
        remote: int64[P], for each worker the number of vertices of others that have a
            neighbour on it.
        degree_sum: int64[P], for each worker the degrees of its vertices, added up.

    Args:
        indptr: int64[V + 1], rows of an undirected simple graph.
        indices: int32[2E].
        assignment: int32[V]; copied.
        workers: their number, P.
    """

    def __init__(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        assignment: NDArray[np.int32],
        workers: int,
    ) -> None:
        """Count from scratch."""
        self._indptr, self._indices = indptr, indices
        self.assignment: NDArray[np.int32] = assignment.copy()
        self.degree = np.diff(indptr)
        self.inside = np.zeros((len(assignment), workers), dtype=np.int32)
        self.remote = np.zeros(workers, dtype=np.int64)
        _count(indptr, indices, self.assignment, self.inside, self.remote)
        self.degree_sum = np.zeros(workers, dtype=np.int64)
        np.add.at(self.degree_sum, assignment, self.degree)

    def neighbours(self, vertex: int) -> NDArray[np.int32]:
        """Return the neighbours of a vertex."""
        return self._indices[self._indptr[vertex] : self._indptr[vertex + 1]]

    def move(self, vertex: int, to: int) -> None:
        """Give a vertex to another worker. Only the counts of the two workers change."""
        origin = int(self.assignment[vertex])
        # The vertex itself: now inside of one worker, outside of the other.
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

    def leaving(self, vertices: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return what a move of each away from its worker adds to that worker's remote count."""
        added = np.zeros(len(vertices), dtype=np.int64)
        _leave(self._indptr, self._indices, self.assignment, self.inside, vertices, added)
        return added

    def joining(self, vertices: NDArray[np.integer], worker: int) -> NDArray[np.int64]:
        """Return what a move of each to another worker adds to that worker's remote count."""
        added = np.zeros(len(vertices), dtype=np.int64)
        _join(self._indptr, self._indices, self.assignment, self.inside, vertices, worker, added)
        return added


@Compiled
def _count(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    assignment: NDArray[np.int32],
    inside: NDArray[np.int32],
    remote: NDArray[np.int64],
) -> None:
    """Fill `inside` and `remote` of RemoteCounts, which are zero."""
    for vertex in range(len(assignment)):
        for at in range(indptr[vertex], indptr[vertex + 1]):
            inside[vertex, assignment[indices[at]]] += 1
        for worker in range(len(remote)):
            if worker != assignment[vertex] and inside[vertex, worker] > 0:
                remote[worker] += 1


@Compiled
def _leave(  # noqa: PLR0917 - numba takes them by place
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    assignment: NDArray[np.int32],
    inside: NDArray[np.int32],
    vertices: NDArray[np.integer],
    added: NDArray[np.int64],
) -> None:
    """Count down: neighbours that nothing else keeps remote no longer are; the vertex may be."""
    for place in range(len(vertices)):
        vertex = vertices[place]
        worker = assignment[vertex]
        if inside[vertex, worker] > 0:
            added[place] += 1
        for at in range(indptr[vertex], indptr[vertex + 1]):
            near = indices[at]
            if inside[near, worker] == 1 and assignment[near] != worker:
                added[place] -= 1


@Compiled
def _join(  # noqa: PLR0917 - numba takes them by place
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    assignment: NDArray[np.int32],
    inside: NDArray[np.int32],
    vertices: NDArray[np.integer],
    worker: int,
    added: NDArray[np.int64],
) -> None:
    """Count up: neighbours become remote that were not; the vertex itself no longer is."""
    for place in range(len(vertices)):
        vertex = vertices[place]
        if inside[vertex, worker] > 0:
            added[place] -= 1
        for at in range(indptr[vertex], indptr[vertex + 1]):
            near = indices[at]
            if inside[near, worker] == 0 and assignment[near] != worker:
                added[place] += 1
