"""Vertex cuts: every edge has one worker, and a vertex a replica at each worker of its edges."""

import heapq
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from switchgnn.base.array_types import Bools, Float64s, Int32s, Int64s, UInt8s
from switchgnn.base.names import no_such
from switchgnn.planner.base.arrays import Compiled, indptr_of_keys, sort_by_key, symmetric_rows
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.partition.workers import MOST_SHARE, check_workers, partition_workers

# Returns the worker of each edge, uint8[E] in the order of Graph.edges(), given the graph, the
# number of workers and a seed. Both directions of an edge have the same worker.
VertexCut: TypeAlias = Callable[[Graph, int, int], UInt8s]
# An undirected graph: indptr int64[V + 1], indices int32[2E], and the index of each edge's reverse.
_Rows: TypeAlias = tuple[Int64s, Int32s, Int32s]
# HDRF's weight of balance; NE's sweeps, and most edges of a move; the part of unassigned edges.
LAMBDA, _SWEEPS, _MOST_MOVED, _NONE = 1.1, 5, 64, 255
# The multicast groups of a switch have numbers of 16 bits; other ones take up to 2,112.
MOST_SETS = 65_536 - 2_112
# Of CDFGNN's equation 24: the weight of replicas on other hosts, and those of the shares, as
# https://github.com/lcj2021/split-merge-partitioner has them.
GAMMA, ALPHA, BETA = 0.1, 1.0, 1.0
_FEW = 2000  # refinement is slow in Python, so graphs with more edges use compiled code


@dataclass(frozen=True, eq=False, kw_only=True)
class ReplicaGraph(Graph):
    """The N replicas of a vertex cut: each master with its mirrors is an undirected star."""

    vertex: Int32s  # int32[N], of each replica: 0 to V - 1 of the masters, then of the mirrors
    worker: Int32s  # int32[N], of each replica; the mirrors of a vertex ascend by it
    edge_worker: UInt8s  # uint8[E], the worker of each edge of the cut graph, as edges() has them

    @property
    def masters(self) -> int:
        """The number of masters: the vertices of the cut graph, V."""
        return int(self.vertex.max()) + 1

    @property
    def replication_factor(self) -> float:
        """Replicas per vertex, N / V."""
        return self.vertices / self.masters

    @property
    def edge_balance(self) -> float:
        """The most edges of a worker, as a multiple of the mean."""
        edges = np.diff(indptr_of_keys(self.edge_worker, int(self.worker.max()) + 1))
        return float(edges.max() / edges.mean()) if len(self.edge_worker) else 1.0

    def gathered(self) -> Graph:
        """Return the edges from mirrors to masters alone."""
        mirrors = np.arange(self.vertices - self.masters + 1)
        indptr = np.append(np.zeros(self.masters, dtype=np.int64), mirrors)
        return Graph(indptr, self.vertex[self.masters :], self.name)

    @property
    def sets(self) -> int:
        """The different sets of workers that share a vertex: each is a group of the switch."""
        has = np.zeros((self.masters, int(self.worker.max()) + 1), dtype=np.bool_)
        has[self.vertex, self.worker] = True
        return len(np.unique(np.packbits(has[has.sum(axis=1) > 1], axis=1), axis=0))

    def shared(self) -> Int64s:
        """Return how many replicas of each worker have others of their vertex, int64[W]."""
        shared = self.worker[np.diff(self.indptr) > 0]
        return np.bincount(shared, minlength=int(self.worker.max()) + 1)


def cut_graph(graph: Graph, workers: int, edge_worker: UInt8s) -> ReplicaGraph:
    """Return a vertex cut's replicas, given a `VertexCut`'s result; every worker has a master."""
    check_workers(graph, workers)
    has = _count_edges(graph.indptr, graph.indices, edge_worker, workers) > 0
    # The most mirrored first, each to the worker whose masters have the fewest mirrors so far.
    replicas, ids = has.sum(axis=1), np.arange(graph.vertices)
    master = _choose_masters(sort_by_key(workers - replicas, workers + 1)[1], replicas, has)
    masters = np.bincount(master, minlength=workers)
    for empty in np.flatnonzero(masters == 0):  # takes a master, of its own vertices if any
        chosen = np.lexsort((replicas, ~has[:, empty], masters[master] == 1))[0]
        masters[[master[chosen], empty]] += (-1, 1)
        master[chosen] = empty
    has[ids, master] = False  # only the mirrors stay
    of, on = np.nonzero(has)
    degree = np.append(has.sum(axis=1), np.ones_like(of))
    return ReplicaGraph(
        indptr=np.append(0, np.cumsum(degree)),
        indices=np.append(np.arange(len(ids), len(degree)), of).astype(np.int32),
        name=graph.name,
        vertex=np.append(ids, of).astype(np.int32),
        worker=np.append(master, on).astype(np.int32),
        edge_worker=edge_worker,
    )


def cut_by(name: str, graph: Graph, workers: int, seed: int) -> ReplicaGraph:
    """Return the replicas of the vertex cut of a name; see `find_vertex_cut`."""
    return cut_graph(graph, workers, find_vertex_cut(name)(graph, workers, seed))


@Compiled
def _count_edges(indptr: Int64s, indices: Int32s, worker: UInt8s, workers: int) -> Int32s:
    """Return how many edges of each worker begin or end at each vertex, int32[V, W]."""
    count = np.zeros((len(indptr) - 1, workers), dtype=np.int32)
    for u in range(len(indptr) - 1):
        for at in range(indptr[u], indptr[u + 1]):
            count[u, worker[at]] += 1
            count[indices[at], worker[at]] += 1
    return count


@Compiled
def _choose_masters(order: Int32s, replicas: Int64s, has: Bools) -> Int32s:
    master, serves = np.zeros(len(has), dtype=np.int32), np.zeros(has.shape[1], dtype=np.int64)
    masters = np.zeros(has.shape[1], dtype=np.int64)
    for v in order:
        cost = masters + (len(has) + 1) * serves * (replicas[v] > 0)
        best = np.argmin(np.where(has[v] | (replicas[v] == 0), cost, cost.max() + 1))
        master[v] = best
        serves[best] += max(0, replicas[v] - 1)
        masters[best] += 1
    return master


@Compiled
def _rows_of(indptr: Int64s, indices: Int32s) -> _Rows:
    unread, reverse = indptr[:-1].copy(), np.empty(len(indices), dtype=np.int32)
    for at in range(len(indices)):  # as the sources ascend, so do their entries in each other row
        reverse[at] = unread[indices[at]]
        unread[indices[at]] += 1
    return indptr, indices, reverse


def cut_edges(
    graph: Graph, workers: int, seed: int, *, leaves: int = 1, gamma: float | None = None
) -> UInt8s:
    """Cut by NE (Zhang et al., KDD 2017) among leaves, then workers, and refine within MOST_SHARE.

    With gamma, give edges in the order of their degree sums to the worker with the least score, by
    equation 24 of CDFGNN, with leaves for hosts: for the edge (u, v) that is, at worker i,

        (1 - gamma) * ([i has no replica of u] + [i has no replica of v])
        + gamma * ([the leaf of i has no replica of u] + [the leaf of i has no replica of v])
        + alpha * edges of i / mean + beta * vertices of i / mean.

    0 is EBV; -1 is HDRF (Petroni et al., 2015).
    """
    check_workers(graph, workers)
    leaf_spine = even_leaf_spine(workers, leaves, spines=1)
    rows = _rows_of(*symmetric_rows(*graph.edges(), graph.vertices))
    if gamma is None:
        below = [leaf_spine.workers_of(leaf) for leaf in range(leaves)]
        slack, elsewhere = MOST_SHARE ** (1 / min(leaves, 2)), np.zeros(graph.vertices, np.bool_)
        leaf_of = _grow(rows, [*map(len, below)], slack, seed, elsewhere)
        elsewhere = (_count_edges(rows[0], rows[1], leaf_of, leaves) > 0).sum(axis=1) > 1
        part = np.empty_like(leaf_of)
        for leaf, mine in enumerate(below):
            chosen = leaf_of == leaf
            inside = _rows_of(np.append(0, np.cumsum(chosen))[rows[0]], rows[1][chosen])
            part[chosen] = mine.start + _grow(inside, [1] * len(mine), slack, seed, elsewhere)
    else:
        source, degree = rows[1][rows[2]], np.diff(rows[0])
        order = np.random.default_rng(seed).permutation(np.flatnonzero(source < rows[1]))
        if gamma >= 0:
            total = degree[source[order]] + degree[rows[1][order]]
            order = order[sort_by_key(total, int(total.max(initial=0)) + 1)[1]]
        part = _stream(rows, order, np.array(leaf_spine.leaf_of_worker), gamma)
    if len(part) == len(graph.indices):
        return part
    source, destination = graph.edges()  # not all with their reverse
    keys = rows[1][rows[2]].astype(np.int64) * graph.vertices + rows[1]
    return part[np.searchsorted(keys, source.astype(np.int64) * graph.vertices + destination)]


def _grow(rows: _Rows, shares: Sequence[int], slack: float, seed: int, elsewhere: Bools) -> UInt8s:
    """Divide edges into parts of these relative sizes, seeded with few edges or at random."""
    candidates = [(0.0, 0, np.zeros(len(rows[1]), dtype=np.uint8))]
    share = np.array(shares) / sum(shares) * (len(rows[1]) // 2)
    sizes = np.diff(np.append(0, np.rint(np.cumsum(share)).astype(np.int64)))
    few = np.argsort(np.diff(rows[0]), kind="stable")
    for seeds in (few, np.random.default_rng(seed).permutation(few)) if len(shares) > 1 else ():
        part, load = np.full(len(rows[1]), _NONE, dtype=np.uint8), 0.0
        refine = _refine.machine if len(part) > _FEW else _refine.interpreted
        _expand(rows, sizes, seeds, part)
        count = _count_edges(rows[0], rows[1], part, len(shares)) // 2  # both ways
        for _ in range(_SWEEPS):
            load = refine(rows, np.ceil(slack * share), elsewhere, count, part)
        candidates.append((load, len(candidates), part))
    return min(candidates[1:] or candidates)[2]


@Compiled
def _expand(rows: _Rows, sizes: Int64s, seeds: Int64s, part: UInt8s) -> None:
    """Fill `part`, all _NONE; the vertex with the fewest edges left, which lead out, is next."""
    indptr, indices, reverse = rows
    vertices, seed, left = len(indptr) - 1, 0, indptr[1:] - indptr[:-1]
    joined = np.full(vertices, -1)
    for p in range(len(sizes)):
        room, heap = sizes[p], [np.int64(0)]  # left * V + vertex; skipped where no longer true
        while room > 0:
            while left[seeds[seed]] == 0:
                seed += 1
            key = np.int64(0)
            while len(heap) > 0 and key == 0:
                key = heapq.heappop(heap)
                key *= left[key % vertices] == key // vertices
            x = key % vertices if key > 0 else seeds[seed]
            joined[x], touched = p, {x}
            for out in range(indptr[x], indptr[x + 1]):
                y = np.int64(indices[out])
                if room > 0 and part[out] == _NONE:
                    joined[y] = p
                    touched.add(y)
                    for at in range(indptr[y], indptr[y + 1]):
                        z = np.int64(indices[at])
                        if room > 0 and joined[z] == p and part[at] == _NONE:
                            part[at] = part[reverse[at]] = p
                            left[y], left[z], room = left[y] - 1, left[z] - 1, room - 1
                            touched.add(z)
            for z in touched:
                if left[z] > 0:
                    heapq.heappush(heap, left[z] * vertices + z)


@Compiled
def _refine(rows: _Rows, most: Float64s, elsewhere: Bools, count: Int32s, part: UInt8s) -> float:
    """Move all edges of replicas to lower the loads to the fifth power; return the largest."""
    (indptr, indices, reverse), has = rows, count > 0
    size, load = count.sum(axis=0) // 2, np.zeros(count.shape[1])
    load += has[has.sum(axis=1) + elsewhere > 1].sum(axis=0)  # vertices also in other parts
    for x in range(len(count)):
        for p in np.flatnonzero((count[x] > 0) & (count[x] <= _MOST_MOVED)):
            moved = count[x, p]
            if moved == 0 or np.count_nonzero(count[x]) == 1:
                continue
            row = indptr[x] + np.flatnonzero(part[indptr[x] : indptr[x + 1]] == p)
            ends = np.append(indices[row], np.int32(x))
            price, gain = np.square(np.square(load / load.max())), np.zeros(len(size))
            for z in ends:
                last, others, paid = count[z, p] == (moved if z == x else 1), int(elsewhere[z]), 0.0
                for q in range(len(size)):
                    if count[z, q] > 0 and (q != p or not last):
                        others, paid = others + 1, paid + price[q]
                for q in range(len(size)):
                    new = count[z, q] == 0
                    gain[q] += (paid + price[p] * last) * (others + last > 1)
                    gain[q] -= (paid + price[q] * new) * (others + new > 1)
            gain[(size + moved > most) | (np.arange(len(size)) == p)] = 0
            to = np.argmax(gain)
            if gain[to] > 1e-9:  # less is a rounding error
                size[p], size[to] = size[p] - moved, size[to] + moved
                part[row] = to
                part[reverse[row]] = to
                for z in ends:
                    load -= (count[z] > 0) * (np.count_nonzero(count[z]) + elsewhere[z] > 1)
                    count[z, p] -= moved if z == x else 1
                    count[z, to] += moved if z == x else 1
                    load += (count[z] > 0) * (np.count_nonzero(count[z]) + elsewhere[z] > 1)
    return float(load.max())


@Compiled
def _stream(rows: _Rows, order: Int64s, leaf_of: Int64s, gamma: float) -> UInt8s:
    (_, indices, reverse), vertices, workers = rows, len(rows[0]) - 1, len(leaf_of)
    part, has = np.empty(len(indices), np.uint8), np.zeros((vertices, workers), np.bool_)
    leaf_has, degree = np.zeros_like(has), np.ones(vertices, np.int64)
    edges, held = np.zeros(workers, np.int64), np.zeros(workers, np.int64)
    per_edge, per_replica = ALPHA * workers / max(1, len(order)), BETA * workers / vertices
    for at in order:
        u, v, per_u, per_v = indices[reverse[at]], indices[at], 1 - gamma, 1 - gamma
        if gamma < 0:
            per_u = 1 + degree[v] / (degree[u] + degree[v])
            per_v = 3 - per_u
            per_edge, per_replica = LAMBDA / (1 + edges.max() - edges.min()), 0.0
        best, least = 0, np.inf
        for i in range(workers):
            cost = per_edge * edges[i] + per_replica * held[i]
            cost += per_u * (not has[u, i]) + per_v * (not has[v, i])
            cost += max(gamma, 0) * ((not leaf_has[u, leaf_of[i]]) + (not leaf_has[v, leaf_of[i]]))
            if cost < least:
                best, least = i, cost
        part[at] = part[reverse[at]] = best
        edges[best] += 1
        for w in (u, v):
            degree[w], held[best] = degree[w] + 1, held[best] + (not has[w, best])
            has[w, best] = leaf_has[w, leaf_of[best]] = True
    return part


def metis_vertex_cut(graph: Graph, workers: int, seed: int) -> UInt8s:
    """Turn METIS' edge cut into a vertex cut: a cut edge is at its end with the lower degree."""
    owner = partition_workers(graph, workers, seed).astype(np.uint8)
    source, destination = graph.edges()
    degree = np.diff(graph.indptr) + np.bincount(destination, minlength=graph.vertices)
    rank = degree * graph.vertices + np.arange(graph.vertices)
    return owner[np.where(rank[source] < rank[destination], source, destination)]


VERTEX_CUTS: Mapping[str, VertexCut] = {
    "vertex-cut": cut_edges,
    "vertex-cut-hdrf": partial(cut_edges, gamma=-1.0),
    "vertex-cut-ebv": partial(cut_edges, gamma=0.0),
    "vertex-cut-metis": metis_vertex_cut,
}
_NUMBERED = re.compile(r"vertex-cut(-ebv)?:([1-9]\d?\d?)(?(1)(?::(0(?:\.\d+)?|1(?:\.0+)?))?)")


def is_vertex_cut(name: str | None) -> bool:
    """Return whether a partition's name is of a vertex cut, valid or not."""
    return name is not None and name.partition(":")[0] in VERTEX_CUTS


def find_vertex_cut(name: str) -> VertexCut:
    """Return a cut of VERTEX_CUTS, or `vertex-cut:LEAVES`, `vertex-cut-ebv:LEAVES[:GAMMA]`."""
    if name in VERTEX_CUTS:
        return VERTEX_CUTS[name]
    if not (found := _NUMBERED.fullmatch(name)):
        also = ", vertex-cut:LEAVES, vertex-cut-ebv:LEAVES, vertex-cut-ebv:LEAVES:GAMMA"
        raise PlannerError(no_such("vertex cut", name, VERTEX_CUTS, also=also))
    gamma = float(found[3] or GAMMA) if found[1] else None
    return partial(cut_edges, leaves=int(found[2]), gamma=gamma)
