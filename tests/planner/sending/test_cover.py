# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The choice between features and partial sums against all choices there are."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner import graph_from_edges
from switchgnn.planner.sending import cover
from switchgnn.planner.sending.cover import cover_edges, packets_up
from tests.planner.helpers import STEADY, boundary_of, random_graph, split_graphs


def sent(boundary, block, multicast):
    """(features, partial sums) as sets, in plain Python."""
    rows = zip(
        boundary.source.tolist(),
        boundary.destination.tolist(),
        boundary.source_worker.tolist(),
        block.tolist(),
        multicast,
        strict=True,
    )
    features, partials = set(), set()
    for u, v, worker, number, raw in rows:
        if raw:
            features.add((worker, number, u))
        else:
            partials.add((worker, number, v))
    return features, partials


def cost(boundary, block, multicast, weight):
    features, partials = sent(boundary, block, multicast)
    contributions = sum(map(bool, multicast)) + len(partials)
    return len(features) + len(partials) + weight * contributions


def least_cost(boundary, block, weight):
    choices = product([False, True], repeat=len(boundary))
    return min(cost(boundary, block, choice, weight) for choice in choices)


def drawn(data, most):
    graph, _, assignment = data
    boundary = boundary_of(graph, assignment)
    if len(boundary) > most:
        keep = np.arange(len(boundary)) < most
        boundary = type(boundary)(
            *(
                getattr(boundary, name)[keep]
                for name in ("source", "destination", "source_worker", "destination_worker")
            )
        )
    return boundary


@STEADY
@given(split_graphs(), st.integers(1, 3), st.sampled_from([0.0, 0.125, 0.25, 0.5, 1.0, 3.0]))
def test_no_choice_costs_less(data, blocks, weight):
    boundary = drawn(data, 9)
    block = (boundary.destination % blocks + 1).astype(np.int32)
    multicast = cover_edges(boundary, block, weight)
    assert multicast.dtype == np.bool_
    assert multicast.shape == (len(boundary),)
    # Weights are rounded to 1/1024 of a packet, and these are multiples of it.
    assert cost(boundary, block, multicast.tolist(), weight) == least_cost(boundary, block, weight)


@STEADY
@given(split_graphs(), st.integers(1, 4), st.sampled_from([0.0, 0.2, 1.0]))
def test_what_is_sent(data, blocks, weight):
    """Blocks need not be whole destinations; no partial sum is one feature or leaves one out."""
    boundary = drawn(data, 1000)
    block = ((boundary.destination + boundary.source) % blocks + 1).astype(np.int32)
    multicast = cover_edges(boundary, block, weight)
    features, partials = sent(boundary, block, multicast.tolist())
    for worker, number, v in partials:
        own = (boundary.source_worker == worker) & (block == number)
        own &= boundary.destination == v
        assert own.sum() > 1
        assert not multicast[own].any()
    every = sent(boundary, block, [True] * len(boundary))[0]
    if not weight:
        assert len(features) + len(partials) <= len(every)
    raw, summed = packets_up(boundary, block, multicast)
    for worker in range(len(raw)):
        assert raw[worker] == sum(w == worker for w, _, _ in features)
        assert summed[worker] == sum(w == worker for w, _, _ in partials)


def test_a_planted_mistake_costs_more():
    """Turning any one edge of an optimal choice around never saves, and here always costs."""
    u, v = np.array([0, 0, 1, 2, 3]), np.array([4, 5, 6, 6, 6])
    graph = graph_from_edges(u, v, name="g", vertices=7, directed=True)
    boundary = boundary_of(graph, [0, 0, 0, 0, 1, 1, 1])
    block = np.ones(5, dtype=np.int32)
    multicast = cover_edges(boundary, block)
    assert multicast.tolist() == [True, True, False, False, False]
    for edge in range(5):
        wrong = multicast.copy()
        wrong[edge] ^= True
        assert cost(boundary, block, wrong, 0) > 2


def test_scarce_recirculation_prefers_partial_sums():
    """Two sources of the same three destinations: 2 features or 3 sums, 6 additions or 3."""
    u, v = np.array([0, 0, 0, 1, 1, 1]), np.array([2, 3, 4, 2, 3, 4])
    graph = graph_from_edges(u, v, name="g", vertices=5, directed=True)
    boundary = boundary_of(graph, [0, 0, 1, 1, 1])
    block = np.ones(6, dtype=np.int32)
    assert cover_edges(boundary, block, 0.0).all()
    assert cover_edges(boundary, block, 0.3).all()
    assert not cover_edges(boundary, block, 0.4).any()


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_no_edges(weight):
    graph = graph_from_edges(np.array([0]), np.array([1]), name="g", vertices=3, directed=False)
    boundary = boundary_of(graph, [0, 0, 1])
    assert len(cover_edges(boundary, np.zeros(0, dtype=np.int32), weight)) == 0


@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_worker_by_worker_is_the_same_as_all_at_once(monkeypatch, weight):
    boundary = boundary_of(random_graph(60, 500, 2, directed=True), np.arange(60) % 7)
    block = (boundary.destination % 3 + 1).astype(np.int32)
    whole = cover_edges(boundary, block, weight)
    assert 0 < np.count_nonzero(whole) < len(whole)
    for some in (1, 50):
        monkeypatch.setattr(cover, "_AT_A_TIME", some)
        assert np.array_equal(cover_edges(boundary, block, weight), whole)
