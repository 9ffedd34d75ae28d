"""Vertex cuts: every edge has one worker, and a vertex a replica at each worker of its edges."""

import heapq
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from switchgnn.base.array_types import Bools, Int32s, Int64s, UInt8s
from switchgnn.base.names import no_such
from switchgnn.planner.base.arrays import (
    Compiled,
    indptr_of,
    indptr_of_keys,
    pair_keys,
    sort_by_key,
    symmetric_rows,
)
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.for_leaves import ALPHA, BETA, GAMMA
from switchgnn.planner.partition.leaf_spine import LeafSpine, even_leaf_spine
from switchgnn.planner.partition.workers import check_workers, partition_workers

# Assigns edges to workers, given the graph, the number of workers and a seed: uint8[E], in the
# order of Graph.edges(); both directions of an edge have the same worker. Deterministic.
VertexCut: TypeAlias = Callable[[Graph, int, int], UInt8s]
# The weight of balance in HDRF.
LAMBDA = 1.1
# The worker of an edge that has none yet.
_NONE = 255


@dataclass(frozen=True, eq=False, kw_only=True)
class ReplicaGraph(Graph):
    """The replicas of a vertex cut, as an undirected star of each master and its mirrors.

    The first V replicas are the masters, numbered like the vertices; the mirrors follow, by vertex
    and worker. Every worker has a master.
    """

    vertex: Int32s  # int32[N], the vertex of each replica
    worker: Int32s  # int32[N], the worker of each replica
    edge_worker: UInt8s  # uint8[E], the worker of each edge of the cut graph, as edges() has them

    @property
    def masters(self) -> int:
        """The number of masters: the vertices of the cut graph, V."""
        return int(self.vertex.max()) + 1

    @property
    def workers(self) -> int:
        """The number of workers, W."""
        return int(self.worker.max()) + 1

    @property
    def replication_factor(self) -> float:
        """Replicas per vertex, N / V."""
        return self.vertices / self.masters

    @property
    def edge_balance(self) -> float:
        """The most edges of a worker, as a multiple of the mean."""
        edges = np.diff(indptr_of_keys(self.edge_worker, self.workers))
        return float(edges.max() / max(1.0, edges.mean()))

    def gathered(self) -> Graph:
        """Return the edges from mirrors to masters alone."""
        mirrors = np.arange(self.masters, self.vertices)
        degree = (np.arange(self.vertices) >= self.masters).astype(np.int64)
        return Graph(indptr_of(degree), self.vertex[mirrors], self.name)

    def shared(self) -> Int64s:
        """Return how many replicas of each worker are of vertices with others, int64[W]."""
        return np.bincount(self.worker[np.diff(self.indptr) > 0], minlength=self.workers)


def cut_graph(graph: Graph, workers: int, edge_worker: UInt8s) -> ReplicaGraph:
    """Return the replicas of a vertex cut, and choose the masters.

    Vertices with many replicas come first. The master of each goes to the worker whose masters have
    the fewest mirrors, or else to the one with the fewest masters.

    Args:
        graph: with V vertices and E edges.
        workers: their number.
        edge_worker: uint8[E], of a `VertexCut`.

    Raises:
        PlannerError: fewer than 1, more than 128, or more workers than vertices.
    """
    check_workers(graph, workers)
    has = np.zeros((graph.vertices, workers), dtype=np.bool_)
    _mark_replicas(graph.indptr, graph.indices, edge_worker, has)
    replicas = has.sum(axis=1)
    _, order = sort_by_key(workers - replicas, workers + 1)
    master = _choose_masters(order, replicas, has)
    _give_masters(master, replicas, has)
    has[np.arange(graph.vertices), master] = False  # only the mirrors stay
    vertex, worker = (each.astype(np.int32) for each in np.nonzero(has))
    degree = np.append(has.sum(axis=1), np.ones(len(vertex), dtype=np.int64))
    ids = np.arange(graph.vertices + len(vertex), dtype=np.int32)
    return ReplicaGraph(
        indptr=indptr_of(degree),
        indices=np.append(ids[graph.vertices :], vertex),
        name=graph.name,
        vertex=np.append(ids[: graph.vertices], vertex),
        worker=np.append(master, worker),
        edge_worker=edge_worker,
    )


@Compiled
def _mark_replicas(indptr: Int64s, indices: Int32s, edge_worker: UInt8s, has: Bools) -> None:
    for u in range(len(indptr) - 1):
        for at in range(indptr[u], indptr[u + 1]):
            has[u, edge_worker[at]] = True
            has[indices[at], edge_worker[at]] = True


@Compiled
def _choose_masters(order: Int32s, replicas: Int64s, has: Bools) -> Int32s:
    vertices, workers = has.shape
    master = np.zeros(vertices, dtype=np.int32)
    serves = np.zeros(workers, dtype=np.int64)
    masters = np.zeros(workers, dtype=np.int64)
    for v in order:
        best, least = -1, 0
        for i in range(workers):
            if replicas[v] == 0 or has[v, i]:
                cost = masters[i] + (vertices + 1) * serves[i] * (replicas[v] > 0)
                if best < 0 or cost < least:
                    best, least = i, cost
        master[v] = best
        serves[best] += max(0, replicas[v] - 1)
        masters[best] += 1
    return master


def _give_masters(master: Int32s, replicas: Int64s, has: Bools) -> None:
    """Give each worker without a master that of a vertex with few replicas, if possible its own."""
    masters = np.bincount(master, minlength=has.shape[1])
    for empty in np.flatnonzero(masters == 0):
        spare = masters[master] > 1
        mine = np.flatnonzero(spare & has[:, empty])
        candidates = mine if len(mine) else np.flatnonzero(spare)
        vertex = candidates[np.argmin(replicas[candidates])]
        masters[master[vertex]] -= 1
        masters[empty] += 1
        master[vertex] = empty


@dataclass(frozen=True, eq=False)
class _Rows:
    """The undirected form of a graph; its 2E' slots hold both directions of every edge."""

    indptr: Int64s  # int64[V + 1]
    indices: Int32s  # int32[2E'], ascending within each row
    reverse: Int32s  # int32[2E'], the slot of the other direction

    @classmethod
    def of(cls, graph: Graph) -> "_Rows":
        return cls.made(*symmetric_rows(*graph.edges(), graph.vertices))

    @classmethod
    def made(cls, indptr: Int64s, indices: Int32s) -> "_Rows":
        return cls(indptr, indices, _reverse(indptr, indices, indptr[:-1].copy()))

    def subset(self, chosen: Bools) -> "_Rows":
        """Return the rows of some slots, given bool[2E'], with both directions of each edge."""
        before = np.append(0, np.cumsum(chosen))
        return _Rows.made(before[self.indptr], self.indices[chosen])

    def per_edge(self, graph: Graph, part: UInt8s) -> UInt8s:
        """Return the part of each edge of the graph, given that of each slot."""
        if len(part) == len(graph.indices):
            return part
        source, destination = graph.edges()
        row = np.repeat(np.arange(graph.vertices, dtype=np.int32), np.diff(self.indptr))
        slots = pair_keys(row, self.indices, graph.vertices)
        return part[np.searchsorted(slots, pair_keys(source, destination, graph.vertices))]


@Compiled
def _reverse(indptr: Int64s, indices: Int32s, unread: Int64s) -> Int32s:
    """Return the slot of each slot's other direction; consumes `unread`, the first slots."""
    reverse = np.empty(len(indices), dtype=np.int32)
    for u in range(len(indptr) - 1):
        for at in range(indptr[u], indptr[u + 1]):
            reverse[at] = unread[indices[at]]
            unread[indices[at]] += 1
    return reverse


def neighbour_expansion(graph: Graph, workers: int, seed: int, *, leaves: int = 1) -> UInt8s:
    """Cut by NE: one part after another grows from a vertex.

    Zhang et al., "Graph Edge Partitioning via Neighborhood Heuristic", KDD 2017. With leaves, the
    edges are divided among the leaves first, and then those of each leaf among its workers.
    """
    check_workers(graph, workers)
    leaf_spine = even_leaf_spine(workers, leaves, spines=1)
    rows = _Rows.of(graph)
    below = [leaf_spine.workers_of(leaf) for leaf in range(leaves)]
    part = _expand_over(rows, [len(each) for each in below])
    leaf_of = part.copy()
    for leaf, mine in enumerate(below):
        chosen = leaf_of == leaf
        part[chosen] = mine.start + _expand_over(rows.subset(chosen), [1] * len(mine))
    return rows.per_edge(graph, part)


def _expand_over(rows: _Rows, shares: Sequence[int]) -> UInt8s:
    """Divide edges into parts of these relative sizes; return the part of each slot."""
    ends = np.cumsum(shares) * (len(rows.indices) // 2) // sum(shares)
    seeds = sort_by_key(degree := np.diff(rows.indptr), int(degree.max()) + 1)[1]
    part = np.full(len(rows.indices), _NONE, dtype=np.uint8)
    _expand(rows.indptr, rows.indices, rows.reverse, np.diff(ends, prepend=0), seeds, part)
    return part


@Compiled
def _expand(  # noqa: PLR0917 - numba takes them by position
    indptr: Int64s, indices: Int32s, reverse: Int32s, sizes: Int64s, seeds: Int32s, part: UInt8s
) -> None:
    """Fill `part`, of which every slot is _NONE, with parts of these sizes.

    A vertex that has joined the part is in the core once it has no edge left. The heap holds
    remaining edges * V + vertex for the others; entries that are no longer true are skipped.
    """
    vertices = len(indptr) - 1
    left = indptr[1:] - indptr[:-1]
    joined = np.full(vertices, -1, dtype=np.int32)
    changed = np.zeros(vertices, dtype=np.bool_)
    seed = 0
    for p in range(len(sizes)):
        room = sizes[p]
        heap = [np.int64(0) for _ in range(0)]
        while room > 0:
            x = np.int64(-1)
            while x < 0 and len(heap) > 0:
                key = heapq.heappop(heap)
                if left[key % vertices] == key // vertices:
                    x = key % vertices
            if x < 0:
                while left[seeds[seed]] == 0:
                    seed += 1
                x = np.int64(seeds[seed])
                joined[x] = p
            touched = [np.int64(0) for _ in range(0)]
            for out in range(indptr[x], indptr[x + 1]):
                if room == 0 or part[out] != _NONE:
                    continue
                y = np.int64(indices[out])
                joined[y] = p
                if not changed[y]:
                    changed[y] = True
                    touched.append(y)
                for at in range(indptr[y], indptr[y + 1]):
                    z = np.int64(indices[at])
                    if room > 0 and joined[z] == p and part[at] == _NONE:
                        part[at] = p
                        part[reverse[at]] = p
                        left[y] -= 1
                        left[z] -= 1
                        room -= 1
                        if not changed[z]:
                            changed[z] = True
                            touched.append(z)
            for z in touched:
                changed[z] = False
                if left[z] > 0:
                    heapq.heappush(heap, left[z] * vertices + z)


def hdrf(graph: Graph, workers: int, seed: int) -> UInt8s:
    """Cut by HDRF: edges in random order, replicas rather of vertices with a high degree.

    Petroni et al., "HDRF: Stream-Based Partitioning for Power-Law Graphs", CIKM 2015. Degrees are
    those among the edges so far.
    """
    return _stream_edges(graph, even_leaf_spine(workers, 1, spines=1), seed, gamma=None)


def ebv(graph: Graph, workers: int, seed: int, *, leaves: int = 1, gamma: float = 0.0) -> UInt8s:
    """Cut by EBV, or with gamma by CDFGNN's host-aware EBV: each edge goes to the least score.

    The score is equation 24 of CDFGNN, as `switchgnn.planner.partition.for_leaves.cdfgnn` has it;
    a worker's *vertices* are its replicas here. Edges come by the sum of the degrees of their ends.
    """
    return _stream_edges(graph, even_leaf_spine(workers, leaves, spines=1), seed, gamma=gamma)


def _stream_edges(graph: Graph, leaf_spine: LeafSpine, seed: int, gamma: float | None) -> UInt8s:
    check_workers(graph, leaf_spine.workers)
    rows = _Rows.of(graph)
    degree = np.diff(rows.indptr)
    source = np.repeat(np.arange(graph.vertices, dtype=np.int32), degree)
    slots = np.random.default_rng(seed).permutation(np.flatnonzero(source < rows.indices))
    if gamma is not None:
        total = degree[source[slots]] + degree[rows.indices[slots]]
        slots = slots[sort_by_key(total, int(total.max(initial=0)) + 1)[1]]
    part = np.empty(len(rows.indices), dtype=np.uint8)
    part[slots] = _stream(
        source[slots],
        rows.indices[slots],
        np.array(leaf_spine.leaf_of_worker, dtype=np.int32),
        -1.0 if gamma is None else gamma,
        np.zeros((graph.vertices, leaf_spine.workers), dtype=np.bool_),
        np.zeros((graph.vertices, leaf_spine.leaves), dtype=np.bool_),
    )
    part[rows.reverse[slots]] = part[slots]
    return rows.per_edge(graph, part)


@Compiled
def _stream(  # noqa: PLR0917 - numba takes them by position
    one: Int32s, other: Int32s, leaf_of: Int32s, gamma: float, has: Bools, leaf_has: Bools
) -> UInt8s:
    """Return the worker of each edge; a negative gamma means HDRF. All replicas are False first."""
    vertices, workers = has.shape
    part = np.empty(len(one), dtype=np.uint8)
    degree = np.zeros(vertices, dtype=np.int64)
    edges = np.zeros(workers, dtype=np.float64)
    held = np.zeros(workers, dtype=np.float64)
    per_u = per_v = 1 - gamma
    per_edge, per_replica = ALPHA * workers / max(1, len(one)), BETA * workers / vertices
    for at in range(len(one)):
        u, v = one[at], other[at]
        if gamma < 0:
            degree[u] += 1
            degree[v] += 1
            per_u = 1 + degree[v] / (degree[u] + degree[v])
            per_v = 3 - per_u
            per_edge, per_replica = LAMBDA / (1 + edges.max() - edges.min()), 0.0
        best, least = 0, np.inf
        for i in range(workers):
            leaf = leaf_of[i]
            cost = per_u * (not has[u, i]) + per_v * (not has[v, i])
            if gamma > 0:
                cost += gamma * (not leaf_has[u, leaf]) + gamma * (not leaf_has[v, leaf])
            cost += per_edge * edges[i] + per_replica * held[i]
            if cost < least:
                best, least = i, cost
        part[at] = best
        edges[best] += 1
        held[best] += (not has[u, best]) + (not has[v, best])
        has[u, best] = has[v, best] = True
        leaf_has[u, leaf_of[best]] = leaf_has[v, leaf_of[best]] = True
    return part


def metis_vertex_cut(graph: Graph, workers: int, seed: int) -> UInt8s:
    """Turn METIS' edge cut into a vertex cut: a cut edge is at its end with the lower degree."""
    owner = partition_workers(graph, workers, seed).astype(np.uint8)
    source, destination = graph.edges()
    degree = np.diff(graph.indptr) + np.bincount(graph.indices, minlength=graph.vertices)
    rank = degree * graph.vertices + np.arange(graph.vertices)
    return owner[np.where(rank[source] < rank[destination], source, destination)]


VERTEX_CUTS: Mapping[str, VertexCut] = {
    "vertex-cut": neighbour_expansion,
    "vertex-cut-hdrf": hdrf,
    "vertex-cut-ebv": ebv,
    "vertex-cut-metis": metis_vertex_cut,
}
# The kinds with a number of leaves in their name, and perhaps a gamma after it.
_NUMBERED = re.compile(
    r"(?:(vertex-cut)|(vertex-cut-ebv)):([1-9]\d{0,2})"
    r"(?(2)(?::(0(?:\.\d{1,6})?|1(?:\.0{1,6})?))?)"
)


def is_vertex_cut(name: str | None) -> bool:
    """Return whether a partition's name is of a vertex cut, valid or not."""
    return name is not None and name.partition(":")[0] in VERTEX_CUTS


def find_vertex_cut(name: str) -> VertexCut:
    """Look up a vertex cut: a key of VERTEX_CUTS, or one for a number of leaves.

    `vertex-cut:LEAVES`, `vertex-cut-ebv:LEAVES` and `vertex-cut-ebv:LEAVES:GAMMA`.
    """
    if name in VERTEX_CUTS:
        return VERTEX_CUTS[name]
    if not (found := _NUMBERED.fullmatch(name)):
        also = ", vertex-cut:LEAVES, vertex-cut-ebv:LEAVES and vertex-cut-ebv:LEAVES:GAMMA"
        raise PlannerError(no_such("vertex cut", name, VERTEX_CUTS, also=also))
    leaves = int(found[3])
    if found[1]:
        return partial(neighbour_expansion, leaves=leaves)
    return partial(ebv, leaves=leaves, gamma=float(found[4] or GAMMA))
