# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the sums that the workers received with those over the whole graph, by SciPy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.graphs.reference import reference_sums


@dataclass(frozen=True)
class RoundResult:
    """The results of all workers in one round, put together.

    Attributes:
        fixed: int32[V, F], fixed-point sums.
        sums: float32[V, F], decoded sums.
        scale: steps per unit, as the workers used it.
    """

    fixed: NDArray[np.int32]
    sums: NDArray[np.float32]
    scale: float


@dataclass(frozen=True)
class Verdict:
    """The comparison of one round with the reference.

    Attributes:
        wrong_sums: elements whose fixed-point sum differs.
        max_error: the largest absolute error of a decoded sum.
        error_bound: the largest error that fixed point and float32 allow.
    """

    wrong_sums: int
    max_error: float
    error_bound: float


def expected_scale(max_fan_in: int, features: NDArray[np.float32]) -> float:
    """Return the scale that a round must use (design notes, section 5)."""
    magnitude = float(np.abs(features).max(initial=0.0))
    return (2.0**31 - max_fan_in) / (max_fan_in * magnitude) if magnitude else 1.0


def largest_fan_in(graph: Graph, assignment: NDArray[np.int32]) -> int:
    """Return the largest number of remote in-neighbours of a vertex, at least 1."""
    source, destination = graph.edges()
    remote = assignment[source] != assignment[destination]
    counts = np.bincount(destination[remote], minlength=1)
    return max(1, int(counts.max()))


def judge(
    graph: Graph,
    assignment: NDArray[np.int32],
    features: NDArray[np.float32],
    result: RoundResult,
) -> Verdict:
    """Compare one round with the sums over the whole graph.

    Args:
        graph: the whole graph, of V vertices.
        assignment: int32[V], the worker of each vertex.
        features: float32[V, F], the features that the workers sent.
        result: the sums that they received.

    Returns:
        The verdict.
    """
    fan_in = largest_fan_in(graph, assignment)
    scale = expected_scale(fan_in, features)
    exact = features.astype(np.float64)
    fixed = reference_sums(graph, assignment, np.rint(exact * scale).astype(np.int64))
    error = np.abs(result.sums - reference_sums(graph, assignment, exact))
    magnitude = float(np.abs(features).max(initial=0.0))
    wrong = int((fixed != result.fixed).sum())
    if not np.isclose(scale, result.scale, rtol=1e-12):
        wrong = fixed.size
    return Verdict(
        wrong_sums=wrong,
        max_error=float(error.max(initial=0.0)),
        error_bound=(fan_in / (2 * scale) if magnitude else 0.0) + fan_in * magnitude * 2.0**-24,
    )
