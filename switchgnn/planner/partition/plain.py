# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Partitions to compare with: by volume, at random, and in the order of the ids."""

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.metis import partition_vertices
from switchgnn.planner.partition.workers import check_workers, fill_empty


def metis_volume(graph: Graph, workers: int, seed: int) -> NDArray[np.int32]:
    """Partition by METIS with the communication volume as its objective.

    The volume is the number of (vertex, other worker that it has a neighbour on): the copies that
    host-based exchange sends of an undirected graph.

    Args:
        graph: the graph, with V vertices.
        workers: their number.
        seed: of METIS.

    Returns:
        int32[V], 0 <= worker < workers; every worker has a vertex.

    Raises:
        PlannerError: impossible numbers of workers.
    """
    check_workers(graph, workers)
    source, destination = graph.edges()
    part = partition_vertices(
        source, destination, vertices=graph.vertices, parts=workers, seed=seed, volume=True
    )
    return fill_empty(part, workers, graph)


def shuffled(graph: Graph, workers: int, seed: int) -> NDArray[np.int32]:
    """Give every vertex to a random worker; the numbers of vertices differ by at most one.

    Args:
        graph: only the number of its vertices counts.
        workers: their number.
        seed: of the shuffling.

    Returns:
        int32[V], 0 <= worker < workers.

    Raises:
        PlannerError: impossible numbers of workers.
    """
    check_workers(graph, workers)
    order = np.random.default_rng(seed).permutation(graph.vertices)
    return (order % workers).astype(np.int32)


def chunk(graph: Graph, workers: int, seed: int) -> NDArray[np.int32]:
    """Cut the ids into runs of equal length; good where the ids of neighbours are close.

    Args:
        graph: only the number of its vertices counts.
        workers: their number.
        seed: without effect.

    Returns:
        int32[V], 0 <= worker < workers, ascending.

    Raises:
        PlannerError: impossible numbers of workers.
    """
    check_workers(graph, workers)
    return (np.arange(graph.vertices) * workers // graph.vertices).astype(np.int32)
