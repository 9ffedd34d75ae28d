# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The cover is one, and no smaller one exists; the rows of host-partial are as many."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.host.direct import ScheduleError, copy_schedules, partial_schedules, rows_per_pair
from switchgnn.planner import graph_from_edges
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.planner.sending.cover import cover_by_left
from tests.host.direct.crew import random_case
from tests.planner.helpers import STEADY, graphs


def smallest_cover(edges):
    """The size of a minimum vertex cover, by trying all sets of vertices."""
    ends = sorted({("l", u) for u, _ in edges} | {("r", v) for _, v in edges})
    for size in range(len(ends) + 1):
        for chosen in combinations(ends, size):
            if all(("l", u) in chosen or ("r", v) in chosen for u, v in edges):
                return size
    raise AssertionError


EDGES = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=14)


@STEADY
@given(EDGES)
def test_no_smaller_cover_exists(edges):
    pairs = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
    by_left = cover_by_left(pairs[:, 0], pairs[:, 1])
    chosen = {("l", u) for (u, _), left in zip(pairs.tolist(), by_left, strict=True) if left}
    chosen |= {("r", v) for (_, v), left in zip(pairs.tolist(), by_left, strict=True) if not left}
    assert len(chosen) == smallest_cover(edges)


@STEADY
@given(graphs(), st.integers(1, 4), st.integers(0, 1000))
def test_rows_of_each_pair(graph, workers, seed):
    assignment = np.random.default_rng(seed).integers(0, workers, graph.vertices).astype(np.int32)
    boundary = boundary_edges(graph, assignment)
    partial = rows_per_pair(partial_schedules(graph, assignment, workers))
    copied = rows_per_pair(copy_schedules(graph, assignment, workers))
    for a in range(workers):
        for b in range(workers):
            here = (boundary.source_worker == a) & (boundary.destination_worker == b)
            sources, destinations = boundary.source[here], boundary.destination[here]
            assert copied[a, b] == len(np.unique(sources))
            assert partial[a, b] <= min(copied[a, b], len(np.unique(destinations)))


@pytest.mark.parametrize("seed", range(10))
def test_rows_of_each_pair_are_the_fewest(seed):
    graph, assignment = random_case(18, 40, 3, seed, directed=True)
    boundary = boundary_edges(graph, assignment)
    partial = rows_per_pair(partial_schedules(graph, assignment, 3))
    for a in range(3):
        for b in range(3):
            here = (boundary.source_worker == a) & (boundary.destination_worker == b)
            edges = set(
                zip(
                    boundary.source[here].tolist(), boundary.destination[here].tolist(), strict=True
                )
            )
            assert partial[a, b] == smallest_cover(edges)


def test_a_star_takes_one_row_either_way():
    """A hub with many remote neighbours is copied once; its own sum is one partial sum."""
    source = np.zeros(9, dtype=np.int64)
    graph = graph_from_edges(source, np.arange(1, 10), name="star", vertices=10, directed=False)
    assignment = np.array([0] + [1] * 9, dtype=np.int32)
    assert rows_per_pair(copy_schedules(graph, assignment, 2)).tolist() == [[0, 1], [9, 0]]
    assert rows_per_pair(partial_schedules(graph, assignment, 2)).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("workers", [0, 257])
def test_impossible_numbers_of_workers_are_refused(workers):
    graph, assignment = random_case(10, 20, 2, 0, directed=False)
    with pytest.raises(ScheduleError, match="workers can exchange"):
        copy_schedules(graph, assignment, workers)


def test_an_assignment_must_fit():
    graph, assignment = random_case(10, 20, 2, 0, directed=False)
    with pytest.raises(ScheduleError, match="assignment"):
        copy_schedules(graph, assignment + 1, 2)
    with pytest.raises(ScheduleError, match="assignment"):
        partial_schedules(graph, assignment[1:], 2)
