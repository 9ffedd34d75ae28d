# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What an exchange must deliver, computed without a plan."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.graph import Graph

Number = TypeVar("Number", np.int64, np.float64)


def reference_sums(
    graph: Graph,
    assignment: NDArray[np.int32],
    features: NDArray[Number],
    direction: Direction = Direction.FORWARD,
) -> NDArray[Number]:
    """Sum for each vertex the features of its neighbours on other workers.

    One sparse matrix product over the whole graph; shares no code with the planner, so that
    it can stand as its oracle.

    Args:
        graph: with V vertices.
        assignment: int32[V], the worker of each vertex.
        features: int64[V, F] or float64[V, F].
        direction: FORWARD sums in-neighbours, BACKWARD out-neighbours.

    Returns:
        The same shape and type as `features`.
    """
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow to import

    rows = np.repeat(assignment, np.diff(graph.indptr))
    crosses = (rows != assignment[graph.indices]).astype(features.dtype)
    shape = (len(assignment), len(assignment))
    remote = csr_matrix((crosses, graph.indices, graph.indptr), shape=shape)
    sums: NDArray[Number] = (
        remote.T @ features if direction is Direction.FORWARD else remote @ features
    )
    return sums
