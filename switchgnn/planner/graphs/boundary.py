"""The edges that cross from one worker to another."""

from dataclasses import dataclass

import numpy as np

from switchgnn.base.array_types import Bools, Int32s, Integers, UInt8s
from switchgnn.planner.base.arrays import distinct_pairs, sort_by_key
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.graphs.graph import Graph


@dataclass(frozen=True, eq=False)
class BoundaryEdges:
    """All boundary edges u→v, sorted by source, then destination; arrays of length E."""

    source: Int32s  # int32[E], vertex ids
    destination: Int32s  # int32[E], vertex ids
    source_worker: UInt8s  # uint8[E]
    destination_worker: UInt8s  # uint8[E], another worker

    def __len__(self) -> int:
        return len(self.source)

    def vertices(self) -> Int32s:
        """Return the boundary vertices, at either end, ascending."""
        present = np.zeros(self._ids(), dtype=np.bool_)
        present[self.source] = True
        present[self.destination] = True
        return np.flatnonzero(present).astype(np.int32)

    def transposed(self) -> "BoundaryEdges":
        """Return the same edges with source and destination exchanged, sorted again."""
        _, order = sort_by_key(self.destination, self._ids())
        turned = BoundaryEdges(
            self.destination, self.source, self.destination_worker, self.source_worker
        )
        return turned.take(order)

    def towards(self, direction: Direction) -> "BoundaryEdges":
        """Return the edges along which that direction sums."""
        return self if direction is Direction.FORWARD else self.transposed()

    def into(self, chosen: Bools) -> "BoundaryEdges":
        """Return the edges whose destination is chosen, given bool[V]."""
        return self.take(np.flatnonzero(chosen[self.destination]))

    def take(self, edges: Integers) -> "BoundaryEdges":
        """Return the edges at these indices, in that order."""
        return BoundaryEdges(*(column[edges] for column in vars(self).values()))

    def same_edges(self, other: "BoundaryEdges") -> bool:
        """Return whether `other` holds the same edges; workers are not compared."""
        return np.array_equal(self.source, other.source) and np.array_equal(
            self.destination, other.destination
        )

    def max_fan_in(self) -> int:
        """Return the most remote in-neighbours of one vertex, but at least 1."""
        return int(np.bincount(self.destination).max(initial=1))

    def host_copies(self) -> tuple[Int32s, Int32s]:
        """Return the sender and receiver, int32[P] each, of all host-based copies (section 2.2)."""
        source, worker = distinct_pairs(self.source, self.destination_worker)
        return holders(self.source, self.source_worker)[source].astype(np.int32), worker

    def _ids(self) -> int:
        return int(max(self.source.max(initial=-1), self.destination.max(initial=-1))) + 1


def holders(vertex: Int32s, worker: UInt8s) -> UInt8s:
    """Return uint8[largest id + 1], the worker of each vertex that occurs; 0 for the others."""
    holder = np.zeros(int(vertex.max(initial=-1)) + 1, dtype=np.uint8)
    holder[vertex] = worker
    return holder


def boundary_edges(graph: Graph, assignment: Int32s) -> BoundaryEdges:
    """Return the edges of `graph` whose ends are on different workers."""
    source, destination = graph.edges()
    holder = assignment.astype(np.uint8)
    from_worker, to_worker = holder[source], holder[destination]
    edges = BoundaryEdges(source, destination, from_worker, to_worker)
    return edges.take(np.flatnonzero(from_worker != to_worker))
