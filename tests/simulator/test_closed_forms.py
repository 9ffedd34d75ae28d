# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The paper's star and ring (section 3.2.2), by its own formulas, in simulated packets.

The paper's model moves k = 1 packet in and out per step. So one worker has all sources and
another all destinations, links take a step per packet and have no delay. A sum that is complete
when its last packet has entered leaves in the step that follows, where the model lets it leave in
the same one: what the model calls z takes z + 1 steps on two links.
"""

import numpy as np
import pytest

from switchgnn.lab.simulator import NetworkOptions, run_simulation
from switchgnn.planner import load_graph
from tests.planner.helpers import flow_of_packets

from .scenes import Row, Sent, features_at_switch, scene, sums_at_workers

STEP = 188 * 80


def steps(neighbours, order):
    """z: each vertex contributes to its neighbours, and is sent in that order."""
    rows = [Row(1, len(neighbours[vertex])) for vertex in range(len(neighbours))]
    # One slot per pass, as the paper recirculates; the loop takes no time.
    packets = [Sent(0, [[other] for other in neighbours[vertex]]) for vertex in order]
    options = NetworkOptions(delay=0.0, window=4_096, congestion_control=False, ecn_threshold=None)
    run = run_simulation(scene(2, rows, packets), options, trace=True)
    began = features_at_switch(run)[0][0] - STEP
    taken, odd = divmod(sums_at_workers(run)[-1][0] - began, STEP)
    assert odd == 0
    return taken - 1


def star(n):
    return [list(range(1, n)), *([0] for _ in range(n - 1))]


def ring(n):
    return [[(v - 1) % n, (v + 1) % n] for v in range(n)]


@pytest.mark.parametrize("n", [3, 10, 100])
def test_a_star_takes_n_steps_with_its_centre_first(n):
    assert steps(star(n), range(n)) == n


@pytest.mark.parametrize("n", [3, 10, 100])
def test_a_star_takes_2n_minus_2_with_its_centre_last(n):
    """The paper says 2n - 1; docs/planner.md says why its own model gives one less."""
    assert steps(star(n), range(n - 1, -1, -1)) == 2 * n - 2


@pytest.mark.parametrize("place", [1, 2, 5, 9])
def test_a_star_takes_longer_the_later_its_centre_comes(place):
    """n + p - 1 with the centre at a place p from 1, but the last: (3n - 1) / 2 on average."""
    order = list(range(1, 10))
    order.insert(place - 1, 0)
    assert steps(star(10), order) == 10 + place - 1


def breadth_first(n):
    """0, its neighbours, theirs: all have the same degree, so the search is first in, first out."""
    order = [0]
    for distance in range(1, n // 2 + 1):
        order += dict.fromkeys((distance, n - distance))
    return order


@pytest.mark.parametrize("n", [5, 6, 11, 100])
def test_a_ring_takes_n_plus_2_steps_breadth_first(n):
    assert steps(ring(n), breadth_first(n)) == n + 2


@pytest.mark.parametrize("n", [4, 6, 10, 100])
def test_a_ring_takes_n_plus_1_steps_at_best(n):
    """Every other vertex, and then the others."""
    assert steps(ring(n), [*range(0, n, 2), *range(1, n, 2)]) == n + 1


def test_the_steps_are_those_of_the_planners_model():
    """Any order: the oracle is `planner/costs/flow.py`, which knows no link and no packet."""
    graph = load_graph("random:40:200:5")
    neighbours = [graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist() for v in range(40)]
    source, destination = graph.edges()
    assert len(np.unique(destination)) == 40
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(40)
        turn = np.zeros(40, dtype=np.int64)
        turn[order] = np.arange(len(order))
        block = np.ones(len(order), dtype=np.int32)
        flow = flow_of_packets(block, turn[source], destination)
        assert steps(neighbours, order.tolist()) == flow.steps
