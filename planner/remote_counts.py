# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How many vertices each worker would fetch from others, kept up to date move by move."""

import numpy as np
from numpy.typing import NDArray


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
    """

    def __init__(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        assignment: NDArray[np.int32],
        workers: int,
    ) -> None:
        """Count from scratch.

        Args:
            indptr: int64[V + 1], rows of an undirected simple graph.
            indices: int32[2E].
            assignment: int32[V]; copied.
            workers: their number, P.
        """
        self._indptr, self._indices = indptr, indices
        self.assignment: NDArray[np.int32] = assignment.copy()
        self.degree = np.diff(indptr)
        vertices = len(assignment)
        row = np.repeat(np.arange(vertices), self.degree)
        pairs = np.bincount(row * workers + assignment[indices], minlength=vertices * workers)
        self.inside = pairs.reshape(vertices, workers).astype(np.int32)
        foreign = self.inside > 0
        foreign[np.arange(vertices), assignment] = False
        self.remote = foreign.sum(axis=0)
        self.degree_sum = np.zeros(workers, dtype=np.int64)
        np.add.at(self.degree_sum, assignment, self.degree)

    def neighbours(self, vertex: int) -> NDArray[np.int32]:
        """The neighbours of a vertex."""
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

    def leaving(self, vertex: int) -> int:
        """What a move of the vertex away from its worker adds to that worker's remote count."""
        worker = int(self.assignment[vertex])
        near = self.neighbours(vertex)
        only = (self.inside[near, worker] == 1) & (self.assignment[near] != worker)
        return int(self.inside[vertex, worker] > 0) - int(np.count_nonzero(only))

    def joining(self, vertex: int, worker: int) -> int:
        """What a move of the vertex to another worker adds to that worker's remote count."""
        near = self.neighbours(vertex)
        new = (self.inside[near, worker] == 0) & (self.assignment[near] != worker)
        return int(np.count_nonzero(new)) - int(self.inside[vertex, worker] > 0)
