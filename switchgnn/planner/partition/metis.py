# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""METIS behind one safe function, which can say how long METIS takes."""

import math
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.arrays import indptr_of_keys, is_symmetric, strange_row, thin
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.cdfgnn import CDFGNN
from switchgnn.planner.partition.leaf_spine import LeafSpine, crossing_sums, even_leaf_spine
from switchgnn.planner.partition.workers import (
    check_workers,
    fill_empty,
    fill_parts,
    partition_workers,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

# METIS seeds its generator with a C int.
_SEED_LIMIT = 2**31 - 1
# It counts the ends of edges with 32 bits.
_MOST_ENDS = 2**31 - 1
# METIS_OBJTYPE_VOL: the communication volume as the objective.
_OBJTYPE_VOL = 1


class MetisTime:
    """The time that calls of METIS took."""

    def __init__(self) -> None:
        # Appending is safe in threads, adding to a number is not.
        self._calls: list[float] = []

    @property
    def seconds(self) -> float:
        """The sum of all calls so far."""
        return sum(self._calls)

    def add(self, seconds: float) -> None:
        """Count one call."""
        self._calls.append(seconds)


# The scopes of metis_time() that the running code is in. Every thread begins in none.
_SCOPES: ContextVar[tuple[MetisTime, ...]] = ContextVar("scopes of metis_time", default=())


@contextmanager
def metis_time() -> Iterator[MetisTime]:
    """Measure the time that METIS takes inside the block.

    Scopes may be nested: each has the time of those inside it. A thread counts for the scopes
    that it entered itself.
    """
    found = MetisTime()
    token = _SCOPES.set((*_SCOPES.get(), found))
    try:
        yield found
    finally:
        _SCOPES.reset(token)


@contextmanager
def _measured() -> Iterator[None]:
    """Count the block for all scopes, however it ends."""
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds = time.perf_counter() - start
        for scope in _SCOPES.get():
            scope.add(seconds)


def partition_vertices(
    source: NDArray[np.integer],
    destination: NDArray[np.integer],
    *,
    vertices: int,
    parts: int,
    seed: int,
    weights: NDArray[np.integer] | None = None,
    shares: "Sequence[int] | None" = None,
    volume: bool = False,
    most_edges: int | None = None,
) -> NDArray[np.int32]:
    """Cut a graph into parts of about equal size with few edges between them.

    METIS crashes on graphs that are not symmetric or have self-loops, so the edges given here
    may be anything: directions, duplicates and self-loops do not matter. Part sizes are as
    METIS leaves them: a few percent apart, and on odd graphs even 0.

    Args:
        source: integers[E], 0 <= id < vertices.
        destination: integers[E].
        vertices: the number of vertices, isolated ones included.
        parts: at least 1.
        seed: the same seed gives the same partition.
        weights: integers[vertices], from 1; parts get about equal sums of them. None: about
            equal numbers of vertices.
        shares: from 1, one per part: parts are as large as these are to one another. None: they
            are about equal.
        volume: keep down the communication volume, the number of (vertex, other part that
            it has a neighbour in), instead of the number of edges between parts.
        most_edges: of graphs with more, counting both directions, a random sample is cut.

    Returns:
        int32[vertices], the part of each vertex, 0 <= part < parts.

    Raises:
        PlannerError: METIS is not installed or fails, or there are too many edges for it.
    """
    if parts == 1:
        return np.zeros(vertices, dtype=np.int32)
    adjacency = symmetric_rows(source, destination, vertices)
    if parts >= vertices or len(adjacency[1]) == 0:
        # Nothing to optimise, and outside what METIS is made for.
        return (np.arange(vertices) % parts).astype(np.int32)
    if most_edges is not None and len(adjacency[1]) > most_edges:
        adjacency = thin(*adjacency, most_edges / len(adjacency[1]))
    if len(adjacency[1]) > _MOST_ENDS:
        raise PlannerError(
            f"{len(adjacency[1]):,} ends of edges are too many for METIS, which takes "
            f"{_MOST_ENDS:,}: choose the partition ptscotch:RANKS, or give an assignment"
        )
    with _measured():
        part = _part_graph(
            *adjacency, parts, seed=seed, weights=weights, shares=shares, volume=volume
        )
    return np.asarray(part, dtype=np.int32)


def symmetric_rows(
    source: NDArray[np.integer], destination: NDArray[np.integer], vertices: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the rows of the undirected simple graph that has these edges.

    Edges that are these rows already, as those of an undirected Graph, are not copied.

    Args:
        source: integers[E], 0 <= id < vertices.
        destination: integers[E].
        vertices: the number of vertices.

    Returns:
        (indptr int64[vertices + 1], indices int32[2E']), rows ascending.
    """
    u = source.astype(np.int32, copy=False)
    v = destination.astype(np.int32, copy=False)
    if not np.any(u[1:] < u[:-1]):
        indptr = indptr_of_keys(u, vertices)
        if strange_row(indptr, v) is None and is_symmetric(indptr, v):
            return indptr, v
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow to import

    proper = u != v
    u, v = u[proper], v[proper]
    ones = np.ones(len(u), dtype=np.bool_)
    rows = csr_matrix((ones, (u, v)), shape=(vertices, vertices))
    both = csr_matrix(rows + rows.T)
    both.sort_indices()
    return both.indptr.astype(np.int64), both.indices.astype(np.int32, copy=False)


def _part_graph(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    parts: int,
    *,
    seed: int,
    weights: NDArray[np.integer] | None,
    shares: "Sequence[int] | None",
    volume: bool,
) -> "Sequence[int]":
    try:
        import pymetis  # noqa: PLC0415 - needed by the planner only, not by who reads plans
    except ImportError as error:
        raise PlannerError("partitioning needs METIS: pip install pymetis") from error
    options = pymetis.Options()
    options.seed = seed % _SEED_LIMIT
    # Only the k-way algorithm knows the volume; without a wish pymetis chooses by `parts`.
    choice: dict[str, Any] = {"options": options, "recursive": None}
    if volume:
        options.objtype = _OBJTYPE_VOL
        choice["recursive"] = False
    if weights is not None:
        choice["vweights"] = weights.tolist()
    if shares is not None and len(set(shares)) > 1:
        choice["tpwgts"] = [share / sum(shares) for share in shares]
    starts, adjacent = indptr.astype(np.int32), indices
    try:
        graph = pymetis.CSRAdjacency(starts, adjacent)
        return pymetis.part_graph(parts, graph, **choice).vertex_part
    except RuntimeError as error:
        raise PlannerError(f"METIS could not make {parts} parts: {error}") from error
    finally:
        # METIS takes SIGTERM for itself, and puts the handler back as one that restarts the system
        # calls that it interrupts; a program that then waits would not end by it: `gk_sigtrap` in
        # https://github.com/KarypisLab/GKlib, error.c.
        signal.siginterrupt(signal.SIGTERM, True)


_KIND = "metis-leaf-spine"
# Partitions that are made for a number of leaves, which comes first in their names.
_FOR_LEAVES = (_KIND, CDFGNN)
_NAME = re.compile(rf"{_KIND}:([1-9]\d{{0,2}})")
# Of graphs with more directed edges there is one candidate only: the others cost METIS once more.
MOST_COMPARED_EDGES = 2_000_000


def metis_leaf_spine_name(leaves: int) -> str:
    """Return the name of the partition strategy for this number of leaves."""
    return f"{_KIND}:{leaves}"


def find_metis_leaf_spine(name: str) -> partial[NDArray[np.int32]]:
    """Return the strategy that is called `metis-leaf-spine:LEAVES`.

    Raises:
        KeyError: that is the name of something else.
        PlannerError: the number of leaves is not one.
    """
    if name.partition(":")[0] != _KIND:
        raise KeyError(name)
    found = _NAME.fullmatch(name)
    if found is None:
        raise PlannerError(
            f"{name!r} does not say how many leaves: write it as {metis_leaf_spine_name(2)}"
        )
    return partial(metis_leaf_spine, leaves=int(found[1]))


def partition_for_leaf_spine(partition: str | None, leaf_spine: LeafSpine | None) -> str | None:
    """Complete the name of a partition that is made for a number of leaves.

    `metis-leaf-spine` and `cdfgnn` without a number are for the leaves that there are.

    Raises:
        PlannerError: the name is for another number of leaves.
    """
    if leaf_spine is None or partition is None:
        return partition
    kind, *parameters = partition.split(":")
    if kind not in _FOR_LEAVES:
        return partition
    fitting = ":".join([kind, str(leaf_spine.leaves), *parameters[1:]])
    if parameters and partition != fitting:
        raise PlannerError(
            f"the partition {partition} is not for {leaf_spine.leaves} leaves: "
            f"write it as {fitting}"
        )
    return fitting


def metis_leaf_spine(graph: Graph, workers: int, seed: int, *, leaves: int) -> NDArray[np.int32]:
    """Assign vertices by METIS with few sums between leaves: the best of three ways to cut.

    One cuts for all workers at once. The others cut for the leaves first, one with few edges
    between them and one with a small communication volume, and then each part for the workers of
    its leaf. The fewest packets between leaves and spines win, with every sum in one block.

    Args:
        graph: directions count when the ways are compared.
        workers: their number, divided over the leaves as `even_leaf_spine` does.
        seed: of METIS.
        leaves: with one it is `partition_workers`.

    Returns:
        int32[V], 0 <= worker < workers; every worker has a vertex.

    Raises:
        PlannerError: the number of workers or of leaves is impossible.
    """
    check_workers(graph, workers)
    leaf_spine = even_leaf_spine(workers, leaves, spines=1)
    if leaves == 1:
        return partition_workers(graph, workers, seed)
    if len(graph.indices) > MOST_COMPARED_EDGES:
        return _by_leaf(graph, leaf_spine, seed, volume=False)
    ways = (
        partition_workers(graph, workers, seed),
        _by_leaf(graph, leaf_spine, seed, volume=False),
        _by_leaf(graph, leaf_spine, seed, volume=True),
    )
    return min(ways, key=lambda way: sum(crossing_sums(boundary_edges(graph, way), leaf_spine)))


def _by_leaf(graph: Graph, leaf_spine: LeafSpine, seed: int, *, volume: bool) -> NDArray[np.int32]:
    """Cut for the leaves, and then what each leaf has for its workers."""
    source, destination = graph.edges()
    below = [len(leaf_spine.workers_of(leaf)) for leaf in range(leaf_spine.leaves)]
    leaf_of = partition_vertices(
        source,
        destination,
        vertices=graph.vertices,
        parts=leaf_spine.leaves,
        seed=seed,
        shares=below,
        volume=volume,
    )
    assignment = np.zeros(graph.vertices, dtype=np.int32)
    for leaf in range(leaf_spine.leaves):
        mine = leaf_of == leaf
        inside = mine[source] & mine[destination]
        place = np.cumsum(mine) - 1
        assignment[mine] = leaf_spine.workers_of(leaf).start + partition_vertices(
            place[source[inside]],
            place[destination[inside]],
            vertices=int(np.count_nonzero(mine)),
            parts=below[leaf],
            seed=seed,
        )
    return fill_empty(assignment, leaf_spine.workers, graph)


# The most vertices of a worker, as a share of the mean.
MOST_SHARE = 1.05


def even_shares(
    part: NDArray[np.int32], workers: int, degree: NDArray[np.integer]
) -> NDArray[np.int32]:
    """Bring every worker down to MOST_SHARE of the mean, and give each at least one vertex.

    Those with the fewest neighbours leave a worker that has too many; the workers with the
    fewest vertices take them. Nothing but the degrees is known of the graph.

    Args:
        part: int32[V].
        workers: at most V.
        degree: integers[V].

    Returns:
        int32[V]; no share is above MOST_SHARE * V / workers, rounded up.
    """
    most = math.ceil(MOST_SHARE * len(part) / workers)
    shares = np.bincount(part, minlength=workers)
    leaving = _surplus(part, shares, degree, most)
    # Every free place, by the vertices that its worker has once it is taken.
    room = np.maximum(most - shares, 0)
    worker = np.repeat(np.arange(workers, dtype=np.int32), room)
    before = np.repeat(np.cumsum(room) - room, room)
    level = np.repeat(shares, room) + np.arange(len(worker)) - before
    part = part.copy()
    part[leaving] = worker[np.argsort(level, kind="stable")[: len(leaving)]]
    return fill_parts(part, workers, degree)


def _surplus(
    part: NDArray[np.int32], shares: NDArray[np.int64], degree: NDArray[np.integer], most: int
) -> NDArray[np.int64]:
    """Return the vertices that are too many for their workers, those with the fewest neighbours."""
    full = np.flatnonzero((shares > most)[part])
    ranked = full[np.lexsort((degree[full], part[full]))]
    first = np.searchsorted(part[ranked], part[ranked])
    return ranked[np.arange(len(ranked)) - first < shares[part[ranked]] - most]
