# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""CDFGNN's objective for vertices and leaves, against scores that are worked out from scratch."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner import PlannerError, load_graph
from switchgnn.planner.partition.cdfgnn import (
    GAMMA,
    by_degree_sum,
    cdfgnn,
    cdfgnn_name,
    find_cdfgnn,
    stream_vertices,
)
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.partition.metis import symmetric_rows
from switchgnn.planner.partition.metis_leaf_spine import partition_for_leaf_spine
from tests.planner.helpers import (
    STEADY,
    boundary_of,
    check_everybody_has_a_vertex,
    graph_of,
    graphs,
    plan_of,
    random_graph,
    reports,
)

KARATE, DIGITS = load_graph("karate"), load_graph("digits")
GAMMAS = st.sampled_from([0.0, 0.1, 0.5, 1.0])


def most_of(vertices, workers):
    """What no worker may exceed: 1.05 of the mean."""
    return math.ceil(1.05 * vertices / workers)


def check_steps(graph, leaf_spine, gamma, stream):
    """The oracle: each vertex is at a worker of the least score, which is the one recorded.

    All copies are counted anew for each worker that a vertex could go to: those that there would
    be, less those that there are.
    """
    vertices, workers = graph.vertices, leaf_spine.workers
    assert sorted(stream.order.tolist()) == list(range(vertices))
    source, destination = graph.edges()
    leads = np.zeros((vertices, vertices), dtype=np.int64)
    leads[source, destination] = 1
    beside = (leads + leads.T > 0).astype(np.int64)
    near = beside + np.eye(vertices, dtype=np.int64)
    behind = np.zeros((workers, leaf_spine.leaves), dtype=np.int64)
    behind[np.arange(workers), leaf_spine.leaf_of_worker] = 1
    placed = np.zeros((vertices, workers), dtype=np.int64)

    def copies(holds):
        return np.count_nonzero(near @ holds)

    for v in stream.order.tolist():
        held, work = placed.sum(axis=0), leads.sum(axis=0) @ placed
        scores = np.full(workers, np.inf)
        for worker in np.flatnonzero(held < most_of(vertices, workers)).tolist():
            then = placed.copy()
            then[v, worker] = 1
            between_workers = copies(then) - copies(placed)
            crossing = copies(then @ behind) - copies(placed @ behind)
            share = work[worker] / (max(1, len(source)) / workers)
            share += held[worker] / (vertices / workers)
            scores[worker] = (1 - gamma) * between_workers + gamma * crossing
            scores[worker] += max(1, beside[v].sum()) * share
        chosen = stream.assignment[v]
        assert scores[chosen] == pytest.approx(stream.score[v], abs=1e-9)
        assert scores[chosen] <= scores.min() + 1e-9
        placed[v, chosen] = 1


@given(graphs(), st.integers(1, 7), st.integers(1, 4), st.integers(0, 3), GAMMAS)
@STEADY
def test_every_step_takes_the_least_score(graph, workers, leaves, seed, gamma):
    leaf_spine = even_leaf_spine(workers, min(leaves, workers), 1)
    check_steps(graph, leaf_spine, gamma, stream_vertices(graph, leaf_spine, seed, gamma))


def test_every_step_in_a_denser_graph():
    graph, leaf_spine = random_graph(60, 200, 4, directed=True), even_leaf_spine(7, 2, 1)
    check_steps(graph, leaf_spine, 0.3, stream_vertices(graph, leaf_spine, 0, 0.3))


def test_the_oracle_notices():
    leaf_spine = even_leaf_spine(4, 2, 1)
    stream = stream_vertices(KARATE, leaf_spine, 0, 0.4)
    check_steps(KARATE, leaf_spine, 0.4, stream)
    swapped = stream.assignment.copy()
    one, other = stream.order[[3, 20]]
    assert swapped[one] != swapped[other]
    swapped[[one, other]] = swapped[[other, one]]
    for leaves, gamma, change in (
        (2, 0.4, {"assignment": swapped}),
        (2, 0.4, {"order": stream.order[::-1]}),
        (2, 0.4, {"order": np.append(stream.order[1:], stream.order[1])}),
        (2, 0.4, {"score": stream.score + 0.01}),
        (2, 0.1, {}),
        (3, 0.4, {}),
    ):
        with pytest.raises(AssertionError):
            check_steps(KARATE, even_leaf_spine(4, leaves, 1), gamma, replace(stream, **change))


@given(graphs(), st.integers(0, 3))
@STEADY
def test_edges_of_small_degrees_come_first(graph, seed):
    indptr, indices = symmetric_rows(*graph.edges(), graph.vertices)
    order = by_degree_sum(indptr, indices, seed).tolist()
    assert sorted(order) == list(range(graph.vertices))
    near = [indices[slice(*indptr[v : v + 2])].tolist() for v in range(graph.vertices)]
    sums = [min((len(near[v]) + len(near[u]) for u in near[v]), default=math.inf) for v in order]
    assert sums == sorted(sums)


def test_both_ends_of_an_edge_come_together():
    #   0-1 and 2-3 have the same sums; then come 4-5, 4-6, 4-7
    ends = [(1, 0), (3, 2), (4, 5), (4, 6), (4, 7)]
    graph = graph_of(*np.array(ends).T, 9)
    rows = symmetric_rows(*graph.edges(), 9)
    orders = {tuple(by_degree_sum(*rows, seed)) for seed in range(20)}
    assert {order[:4] for order in orders} == {(0, 1, 2, 3), (2, 3, 0, 1)}
    assert {order[4] for order in orders} == {4}
    assert {order[8] for order in orders} == {8}
    assert len(orders) > 2


@given(graphs(), st.integers(1, 9), st.integers(1, 4), st.integers(0, 3), GAMMAS)
@STEADY
def test_every_worker_gets_a_vertex_and_none_too_many(graph, workers, leaves, seed, gamma):
    workers = min(workers, graph.vertices)
    make = partial(cdfgnn, leaves=min(leaves, workers), gamma=gamma)
    check_everybody_has_a_vertex(make, graph, workers, seed)
    shares = np.bincount(make(graph, workers, seed))
    assert shares.max() <= most_of(graph.vertices, workers)


def test_a_worker_that_the_stream_leaves_empty_gets_a_vertex():
    """The source of the only edge costs its worker no work, so both ends go there."""
    graph = graph_of([0], [1], 2, directed=True)
    stream = stream_vertices(graph, even_leaf_spine(2, 1, 1), 0, 0.0)
    assert stream.assignment.tolist() == [0, 0]
    assert sorted(cdfgnn(graph, 2, 0, leaves=1, gamma=0.0).tolist()) == [0, 1]


@pytest.mark.whole
def test_shares_are_even():
    assignment = cdfgnn(DIGITS, 7, 0, leaves=3)
    work = np.bincount(assignment, weights=np.bincount(DIGITS.indices))
    assert np.bincount(assignment).max() <= most_of(DIGITS.vertices, 7)
    assert work.max() <= 1.2 * work.mean()


def test_gamma_moves_copies_from_crossings_to_below_leaves():
    """The paper's claim for its default of 0.1, over ten seeds."""
    leaf = np.array(even_leaf_spine(8, 2, 1).leaf_of_worker)

    def copies(gamma):
        found = np.zeros(2, dtype=np.int64)
        for seed in range(10):
            edges = boundary_of(DIGITS, cdfgnn(DIGITS, 8, seed, leaves=2, gamma=gamma))
            sender, receiver = edges.host_copies()
            found += np.bincount((leaf[sender] == leaf[receiver]).astype(int), minlength=2)
        return found

    without, default, much = copies(0.0), copies(GAMMA), copies(0.5)
    assert without[0] > default[0] > much[0]
    assert without[1] < default[1] < much[1]


def test_plans_name_it_with_its_leaves():
    for name, gamma in (("cdfgnn:2", GAMMA), ("cdfgnn:2:0.5", 0.5), ("cdfgnn:2:0", 0.0)):
        plan = plan_of(DIGITS, slots=64, seed=1, partition=name)
        assert plan.manifest.partition.method == name
        assert np.array_equal(plan.assignment, cdfgnn(DIGITS, 4, 1, leaves=2, gamma=gamma))


def test_names():
    assert (cdfgnn_name(4), cdfgnn_name(2, 0.25)) == ("cdfgnn:4", "cdfgnn:2:0.25")
    assert find_cdfgnn("cdfgnn:4").keywords == {"leaves": 4, "gamma": 0.1}
    assert find_cdfgnn("cdfgnn:12:1").keywords == {"leaves": 12, "gamma": 1.0}
    with pytest.raises(KeyError):
        find_cdfgnn("metis")
    with reports("5 leaves are too many for 4 workers"):
        cdfgnn(KARATE, 4, 0, leaves=5)


@pytest.mark.parametrize(
    "parameters", ["", ":", ":0", ":x", ":2:", ":2:1.01", ":2:-0.1", ":2:2", ":2:x", ":2:0.1:3"]
)
def test_other_parameters_are_refused(parameters):
    with reports("write it as cdfgnn:2 or cdfgnn:2:0.5"):
        plan_of(KARATE, partition=f"cdfgnn{parameters}")


def test_the_topology_says_how_many_leaves():
    leaf_spine = even_leaf_spine(6, 3, 1)
    assert (
        partition_for_leaf_spine("cdfgnn", leaf_spine)
        == partition_for_leaf_spine("cdfgnn:3", leaf_spine)
        == "cdfgnn:3"
    )
    assert partition_for_leaf_spine("cdfgnn:3:0.5", leaf_spine) == "cdfgnn:3:0.5"
    assert partition_for_leaf_spine("cdfgnn:2", None) == "cdfgnn:2"
    for name, fitting in (("cdfgnn:2", "cdfgnn:3$"), ("cdfgnn:2:0.5", "cdfgnn:3:0.5$")):
        with pytest.raises(PlannerError, match=f"not for 3 leaves: write it as {fitting}"):
            partition_for_leaf_spine(name, leaf_spine)
