"""Edge weights in sums that a switch adds without weights.

A weight that is a factor of its source times one of its destination costs nothing: sources
multiply before they send, destinations afterwards. With any other, a worker adds up its own
weighted rows for each destination elsewhere and sends this partial sum. In the plan, each is a
vertex with one edge.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Bools, Float32s, Float64s, Int32s, Int64s, Integers
from switchgnn.planner.graphs.graph import Graph

# Of a weight, by which a product of factors may differ: the rounding of some float32.
_TOLERANCE = 2.0**-21
# The largest product of two factors, by the largest weight: fixed point loses as much.
_MOST_SPREAD = 64.0


def factors_of(graph: Graph) -> Float32s | None:
    """Return float32[2, V], factors of sources and of destinations whose products are the weights.

    None: there are none, or they differ so much that sums of rows in fixed point would be coarse.
    The logarithms of weights are differences of potentials, which a spanning forest determines.
    """
    assert graph.weights is not None  # noqa: S101 - the callers have asked
    weights, count = graph.weights.astype(np.float64), graph.vertices
    if not weights.all():
        return None
    source, target = graph.edges()
    ends = (source.astype(np.int64), target.astype(np.int64) + count)
    heights = np.log(np.abs(weights))
    potential, parity, label = _potentials(ends, heights, weights < 0, 2 * count)
    # Rounding adds up along the forest: the mean over all edges of a node has less of it.
    for side, other, rise in ((1, 0, -heights), (0, 1, heights)):
        edges = np.bincount(ends[side], minlength=2 * count)
        means = np.bincount(ends[side], potential[ends[other]] + rise, minlength=2 * count)
        potential = np.where(edges > 0, means / np.maximum(edges, 1), potential)
    # Moved so that the largest factors on both sides of a component are equal.
    largest = np.full((2, label.max() + 1), -np.inf)
    np.maximum.at(largest[0], label[:count], potential[:count])
    np.maximum.at(largest[1], label[count:], -potential[count:])
    shift = np.where(np.isfinite(largest).all(axis=0), (largest[1] - largest[0]) / 2, 0.0)
    logs = np.stack([potential[:count], -potential[count:]])
    logs += shift[np.stack([label[:count], label[count:]])] * [[1], [-1]]
    found = np.exp(np.clip(logs, -80, 80)) * np.where(parity.reshape(2, count), -1, 1)
    heaviest = np.zeros(label.max() + 1)
    np.maximum.at(heaviest, label[source], np.abs(weights))
    with np.errstate(over="ignore"):
        fits = np.exp(largest.sum(axis=0))[label[source]] <= _MOST_SPREAD * heaviest[label[source]]
    factors: Float32s = found.astype(np.float32)
    off = np.abs(factors[0, source].astype(np.float64) * factors[1, target] - weights)
    return factors if fits.all() and (off <= _TOLERANCE * np.abs(weights)).all() else None


def _potentials(
    ends: tuple[Int64s, Int64s], heights: Float64s, negative: Bools, nodes: int
) -> tuple[Float64s, Bools, Int32s]:
    """Return potentials that rise by each edge's height along a spanning forest.

    Also whether as many edges as an odd number are negative on the way from its root, and the
    component of each node.
    """
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow to import
    from scipy.sparse.csgraph import breadth_first_order, connected_components  # noqa: PLC0415

    rooted = nodes + 1
    above, below = ends
    matrix = csr_matrix((np.ones(len(above), np.int8), ends), shape=(rooted, rooted))
    _, label = connected_components(matrix, directed=False)
    # All components hang from one more node.
    _, first = np.unique(label[:nodes], return_index=True)
    links = (np.append(above, np.full(len(first), nodes)), np.append(below, first))
    matrix = csr_matrix((np.ones(len(links[0]), np.int8), links), shape=(rooted, rooted))
    _, parent = breadth_first_order(matrix, nodes, directed=False)
    parent = parent.astype(np.int64)
    parent[nodes] = nodes
    child = np.flatnonzero(parent[:nodes] != nodes)
    over = parent[child]
    down = child > over  # from a source, which has the lower number, to a destination
    edge = np.searchsorted(
        above * rooted + below, np.minimum(child, over) * rooted + np.maximum(child, over)
    )
    rise, odd = np.zeros(rooted), np.zeros(rooted, dtype=bool)
    rise[child] = np.where(down, -heights[edge], heights[edge])
    odd[child] = negative[edge]
    while (parent != nodes).any():
        rise, odd, parent = rise + rise[parent], odd ^ odd[parent], parent[parent]
    return rise[:nodes], odd[:nodes], label[:nodes]


@dataclass(frozen=True, eq=False)
class WeightedSums:
    """The weighted sums that workers send, P of them, by worker and destination."""

    owner: Int64s  # [P], the worker
    destination: Int64s  # [P], the vertex
    of_edge: Int64s  # [X], of each edge between workers the partial sum it is part of
    source: Int32s  # [X], the vertex
    weights: Float32s  # [X]

    def of_worker(self, worker: int, row: Int64s) -> dict[str, NDArray[Any]]:
        """Return the arrays of a worker's part, given the row of each vertex."""
        mine = self.owner[self.of_edge] == worker
        numbers = self.of_edge[mine] - np.searchsorted(self.owner, worker)
        partial = np.stack([row[self.source[mine]], numbers])
        return {"partial": partial, "partial_weights": self.weights[mine]}


def partial_sums(graph: Graph, assignment: Integers) -> WeightedSums:
    """Return the partial sums of a graph's boundary edges."""
    source, target = graph.edges()
    owner = assignment.astype(np.int64)[source]
    crossing = np.flatnonzero(owner != assignment[target])
    keys, of_edge = np.unique(
        owner[crossing] * graph.vertices + target[crossing], return_inverse=True
    )
    weights = np.ones(len(target), np.float32) if graph.weights is None else graph.weights
    owners, destination = np.divmod(keys, graph.vertices)
    return WeightedSums(owners, destination, of_edge, source[crossing], weights[crossing])


def exchanged_graph(
    graph: Graph, assignment: Integers | None, factors: Float32s | None
) -> tuple[Graph, Integers | None]:
    """Return the graph whose plan carries the sums, and its assignment.

    That is the graph itself, unless it has weights without `factors`: then each partial sum is
    a vertex of its worker after those of the graph.
    """
    if graph.weights is None or factors is not None or assignment is None:
        return graph, assignment
    assignment = assignment[: graph.vertices]
    sums = partial_sums(graph, assignment)
    before = np.zeros(graph.vertices, dtype=np.int64)
    expanded = Graph(
        indptr=np.concatenate([before, np.arange(len(sums.owner) + 1)]),
        indices=sums.destination.astype(np.int32),
        name=graph.name,
    )
    return expanded, np.concatenate([assignment, sums.owner.astype(np.int32)])


def told_cost(graph: Graph, assignment: Int32s, factors: Float32s | None) -> str:
    """Return a sentence about what a graph's weights cost; empty for one without."""
    if graph.weights is None:
        return ""
    if factors is not None:
        return "The edge weights are products of factors of both ends, and cost no exchange."
    sums = partial_sums(graph, assignment)
    return (
        "The edge weights are not products of factors of both ends, so workers send "
        f"{len(sums.owner):,} partial sums, and not {len(np.unique(sums.source)):,} features."
    )
