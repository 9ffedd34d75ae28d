# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pymetis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner import graph_from_edges, partition_workers
from switchgnn.planner.partition import metis
from switchgnn.planner.partition.metis import partition_vertices, symmetric_rows
from switchgnn.planner.partition.workers import check_assignment
from tests.planner.helpers import (
    STEADY,
    boundary_of,
    check_everybody_has_a_vertex,
    graphs,
    random_graph,
    reports,
)


def make(u, v, vertices, *, directed=False):
    u, v = np.array(u, dtype=np.int64), np.array(v, dtype=np.int64)
    return graph_from_edges(u, v, name="g", vertices=vertices, directed=directed)


def two_cliques(size):
    u, v = np.triu_indices(size, 1)
    return make([*u, *(u + size), 0], [*v, *(v + size), size], 2 * size)


def test_metis_finds_the_obvious_cut():
    graph = two_cliques(10)
    assignment = partition_workers(graph, 2, seed=0)
    assert len(set(assignment[:10])) == len(set(assignment[10:])) == 1
    assert len(boundary_of(graph, assignment)) == 2


@STEADY
@given(graphs(), st.integers(1, 9), st.integers(0, 3))
def test_every_worker_gets_a_vertex(graph, workers, seed):
    check_everybody_has_a_vertex(partition_workers, graph, workers, seed)


@pytest.mark.parametrize(
    "graph",
    [
        make([], [], 10),
        make([0], [1], 10),
        make(range(9), range(1, 10), 10, directed=True),
        make([0, 2, 4, 6, 8], [1, 3, 5, 7, 9], 10),
        make([0] * 9, range(1, 10), 10),
    ],
    ids=["no edges", "isolated vertices", "directed", "disconnected", "star"],
)
@pytest.mark.parametrize("workers", [1, 2, 3, 9, 10])
def test_odd_graphs(graph, workers):
    assignment = partition_workers(graph, workers, 0)
    assert sorted(set(assignment.tolist())) == list(range(workers))


def test_shares_are_balanced():
    assignment = partition_workers(random_graph(2000, 8000, 0), 16, 0)
    shares = np.bincount(assignment)
    assert shares.max() <= 1.1 * shares.mean()


@pytest.mark.parametrize(
    ("workers", "part"), [(0, "not possible"), (129, "not possible"), (11, "too many")]
)
def test_impossible_numbers_of_workers(workers, part):
    with reports(part):
        partition_workers(make([0], [1], 10), workers, 0)


@pytest.mark.parametrize(
    ("assignment", "part"),
    [
        ([0, 1, 0], "4 whole numbers"),
        ([0, 1, 0, 2], "outside"),
        ([0, 1, 0, -1], "outside"),
        ([0, 0, 0, 0], "no vertex to worker 1"),
        ([0.0, 1.0, 0.0, 1.0], "whole numbers"),
    ],
)
def test_bad_assignments(assignment, part):
    with reports(part):
        check_assignment(make([0], [1], 4), 2, np.array(assignment))


def test_the_wrapper_takes_directions_duplicates_and_loops():
    source = np.array([0, 0, 1, 2, 2, 3, 3])
    destination = np.array([1, 1, 0, 2, 3, 3, 4])
    indptr, indices = symmetric_rows(source, destination, 6)
    assert indptr.tolist() == [0, 1, 2, 3, 5, 6, 6]
    assert indices.tolist() == [1, 0, 3, 2, 4, 3]
    part = partition_vertices(source, destination, vertices=6, parts=2, seed=-5)
    assert set(part.tolist()) == {0, 1}


def test_what_metis_says_is_passed_on(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("METIS ran out of memory")

    monkeypatch.setattr(pymetis, "part_graph", fail)
    with reports("out of memory"):
        partition_workers(random_graph(10, 30, 0), 2, 0)


def test_boundary_edges():
    #  worker 0: 0 1   worker 1: 2 3   worker 2: 4
    graph = make([0, 0, 0, 1, 2, 4], [1, 2, 3, 2, 4, 0], 5, directed=True)
    boundary = boundary_of(graph, [0, 0, 1, 1, 2])
    rows = zip(boundary.source, boundary.destination, strict=True)
    assert [(int(u), int(v)) for u, v in rows] == [(0, 2), (0, 3), (1, 2), (2, 4), (4, 0)]
    assert boundary.source_worker.tolist() == [0, 0, 0, 1, 2]
    assert boundary.destination_worker.tolist() == [1, 1, 1, 2, 0]
    assert boundary.vertices().tolist() == [0, 1, 2, 3, 4]
    assert boundary.max_fan_in() == 2
    assert boundary.host_packets() == 4
    assert len(boundary_of(graph, [0] * 5)) == 0
    assert boundary_of(graph, [0] * 5).max_fan_in() == 1


def test_too_many_edges_for_metis(monkeypatch):
    graph = random_graph(40, 200, 1)
    monkeypatch.setattr(metis, "_MOST_ENDS", len(graph.indices))
    partition_workers(graph, 4, 0)
    monkeypatch.setattr(metis, "_MOST_ENDS", len(graph.indices) - 1)
    with reports("too many for METIS"):
        partition_workers(graph, 4, 0)
