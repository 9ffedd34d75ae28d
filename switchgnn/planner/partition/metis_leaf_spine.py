# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A partition for workers on several leaves: few sums between leaves, then few between workers."""

import re
from functools import partial

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.cdfgnn import CDFGNN
from switchgnn.planner.partition.leaf_crossings import once_between
from switchgnn.planner.partition.leaf_spine import Racks, even_racks
from switchgnn.planner.partition.metis import partition_vertices
from switchgnn.planner.partition.workers import check_workers, fill_empty, partition_workers

_KIND = "metis-racks"
# Partitions that are made for a number of leaves, which their names have first.
_RACKED = (_KIND, CDFGNN)
_NAME = re.compile(rf"{_KIND}:([1-9]\d{{0,2}})")
# Of graphs with more directed edges there is one candidate only: the others cost METIS once more.
MOST_COMPARED_EDGES = 2_000_000


def metis_racks_name(leaves: int) -> str:
    """What the partition strategy for so many leaves is called."""
    return f"{_KIND}:{leaves}"


def find_metis_racks(name: str) -> partial[NDArray[np.int32]]:
    """The strategy that is called `metis-racks:LEAVES`.

    Raises:
        KeyError: that is the name of something else.
        PlannerError: the number of leaves is not one.
    """
    if name.partition(":")[0] != _KIND:
        raise KeyError(name)
    found = _NAME.fullmatch(name)
    if found is None:
        raise PlannerError(
            f"{name!r} does not say how many leaves: write it as {metis_racks_name(2)}"
        )
    return partial(metis_racks, leaves=int(found[1]))


def on_racks(partition: str | None, racks: Racks | None) -> str | None:
    """What is asked for: `metis-racks` and `cdfgnn` alone are for the leaves that there are.

    Raises:
        PlannerError: it is for another number of leaves.
    """
    if racks is None or partition is None:
        return partition
    kind, *parameters = partition.split(":")
    if kind not in _RACKED:
        return partition
    fitting = ":".join([kind, str(racks.leaves), *parameters[1:]])
    if parameters and partition != fitting:
        raise PlannerError(
            f"the partition {partition} is not for {racks.leaves} leaves: write it as {fitting}"
        )
    return fitting


def metis_racks(graph: Graph, workers: int, seed: int, *, leaves: int) -> NDArray[np.int32]:
    """METIS, with few sums between leaves: the best of three ways to cut.

    One cuts for all workers at once. The others cut for the leaves first, one with few edges
    between them and one with a small communication volume, and then each part for the workers of
    its leaf. The fewest packets between leaves and spines win, with every sum in one block.

    Args:
        graph: directions count when the ways are compared.
        workers: their number, divided over the leaves as `even_racks` does.
        seed: of METIS.
        leaves: with one it is `partition_workers`.

    Returns:
        int32[V], 0 <= worker < workers; every worker has a vertex.

    Raises:
        PlannerError: impossible numbers of workers or leaves.
    """
    check_workers(graph, workers)
    racks = even_racks(workers, leaves, spines=1)
    if leaves == 1:
        return partition_workers(graph, workers, seed)
    if len(graph.indices) > MOST_COMPARED_EDGES:
        return _by_leaf(graph, racks, seed, volume=False)
    ways = (
        partition_workers(graph, workers, seed),
        _by_leaf(graph, racks, seed, volume=False),
        _by_leaf(graph, racks, seed, volume=True),
    )
    return min(ways, key=lambda way: sum(once_between(boundary_edges(graph, way), racks)))


def _by_leaf(graph: Graph, racks: Racks, seed: int, *, volume: bool) -> NDArray[np.int32]:
    """Cut for the leaves, and then what each has for its workers."""
    source, destination = graph.edges()
    below = [len(racks.workers_of(leaf)) for leaf in range(racks.leaves)]
    leaf_of = partition_vertices(
        source,
        destination,
        vertices=graph.vertices,
        parts=racks.leaves,
        seed=seed,
        shares=below,
        volume=volume,
    )
    assignment = np.zeros(graph.vertices, dtype=np.int32)
    for leaf in range(racks.leaves):
        mine = leaf_of == leaf
        inside = mine[source] & mine[destination]
        place = np.cumsum(mine) - 1
        assignment[mine] = racks.workers_of(leaf).start + partition_vertices(
            place[source[inside]],
            place[destination[inside]],
            vertices=int(np.count_nonzero(mine)),
            parts=below[leaf],
            seed=seed,
        )
    return fill_empty(assignment, racks.workers, graph)
