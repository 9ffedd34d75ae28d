# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The right sums, from the graph alone."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.graph import Graph


class Oracle:
    """Adds up what is on other workers, with NumPy, as integers of a fixed scale.

    It knows neither blocks nor packets: edges that cross, and the scale as docs/protocol.md has it.

    Args:
        graph: the graph.
        assignment: int32[V], the worker of each vertex.
        directions: those that are exchanged.

    Attributes:
        vertices: V.
    """

    def __init__(
        self, graph: Graph, assignment: NDArray[np.int32], directions: Sequence[Direction]
    ) -> None:
        self.vertices = len(assignment)
        source = np.repeat(np.arange(self.vertices), np.diff(graph.indptr))
        target = np.asarray(graph.indices)
        crossing = assignment[source] != assignment[target]
        ends = {
            Direction.FORWARD: (source[crossing], target[crossing]),
            Direction.BACKWARD: (target[crossing], source[crossing]),
        }
        self._assignment = assignment
        self._ends = {}
        for direction in directions:
            giver, taker = ends[direction]
            order = np.argsort(taker, kind="stable")
            takers, begins = np.unique(taker[order], return_index=True)
            self._ends[direction] = (giver[order], takers, begins)
        self._most = max(
            (int(np.diff(np.append(b, len(g))).max(initial=0)) for g, _, b in self._ends.values()),
            default=0,
        )

    def part_of(self, worker: int) -> set[int]:
        """Return the vertices of whose sums features of a worker are a part, in any direction."""
        vertices: set[int] = set()
        for givers, takers, begins in self._ends.values():
            if len(takers):
                parts = np.logical_or.reduceat(self._assignment[givers] == worker, begins)
                vertices.update(takers[parts].tolist())
        return vertices

    def fixed(
        self, features: NDArray[np.float32], magnitude: float | None = None
    ) -> NDArray[np.int64]:
        """Return features as integers of the scale of their exchange.

        Args:
            features: float32[V, F].
            magnitude: the largest one that workers have reported; None: that of the features.

        Returns:
            int64[V, F].
        """
        if magnitude is None:
            magnitude = float(np.abs(features).max(initial=np.float32(0)))
        most = max(1, self._most)
        scale = (2.0**31 - most) / (most * magnitude) if magnitude else 1.0
        # Where somebody mad has told a smaller one than there is, numbers may be without meaning.
        with np.errstate(invalid="ignore", over="ignore"):
            return np.rint(features.astype(np.float64) * scale).astype(np.int64)

    def sums(self, fixed: NDArray[np.int64], direction: Direction) -> NDArray[np.int64]:
        """Return int64[V, F], the sums of all vertices; 0 without remote neighbours."""
        giver, takers, begins = self._ends[direction]
        sums = np.zeros_like(fixed)
        if len(takers):
            sums[takers] = np.add.reduceat(fixed[giver], begins, axis=0)
        return sums
