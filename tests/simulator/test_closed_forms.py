"""The paper's star and ring (section 3.2.2) and G3's bins, by their own formulas.

The paper's model moves k = 1 packet in and out per step. So one worker has all sources and another
all destinations, and links take a step per packet without delay. A sum leaves in the step after its
last packet, where the model has it leave in the same one: its z is z + 1 steps on two links.
"""

import heapq
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchgnn.host.base.pace import CongestionRule
from switchgnn.lab.simulator.request import NetworkOptions
from switchgnn.lab.simulator.setup import overlapped_seconds
from switchgnn.lab.simulator.simulation import run_simulation
from switchgnn.planner import load_graph
from tests.planner.helpers import flow_of_packets

from .scenes import Row, Sent, features_at_switch, scene, sums_at_workers
from .test_command import as_json

STEP = 188 * 80


def steps(neighbours, order):
    """z: each vertex contributes to its neighbours, and is sent in that order."""
    rows = [Row(1, len(neighbours[vertex])) for vertex in range(len(neighbours))]
    # One slot per pass, as the paper recirculates; the loop takes no time.
    packets = [Sent(0, [[other] for other in neighbours[vertex]]) for vertex in order]
    uncontrolled = {"congestion": CongestionRule.NONE, "ecn_threshold": None}
    options = NetworkOptions(delay=0.0, window=4_096, **uncontrolled)
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
def test_a_star_takes_2n_minus_2_with_its_centre_last(n):
    """The paper says 2n - 1; docs/planner.md says why its own model gives one less."""
    assert steps(star(n), range(n - 1, -1, -1)) == 2 * n - 2


@pytest.mark.parametrize(("n", "position"), [(3, 1), (10, 1), (10, 2), (10, 5), (10, 9), (100, 1)])
def test_a_star_takes_longer_the_later_its_centre_comes(n, position):
    """n + p - 1 with the centre at position p from 1, but the last: (3n - 1) / 2 on average."""
    order = list(range(1, n))
    order.insert(position - 1, 0)
    assert steps(star(n), order) == n + position - 1


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
        turn[order] = np.arange(40)
        flow = flow_of_packets(np.ones(40, dtype=np.int32), turn[source], destination)
        assert steps(neighbours, order.tolist()) == flow.steps


DURATIONS = st.fractions(0, 10, max_denominator=20)
EXAMPLES = settings(deadline=None, derandomize=True, max_examples=100)


def pipeline(compute, communication, bins):
    """When the last bin has been sent: a processor and a link, event by event."""
    events, waiting, link_busy = [(compute / bins, 0, "computed")], [], False
    computed, now = 1, Fraction(0)
    while events:
        now, _, what = heapq.heappop(events)
        if what == "computed":
            waiting.append(None)
            if computed < bins:
                heapq.heappush(events, (now + compute / bins, computed, "computed"))
                computed += 1
        else:
            link_busy = False
        if waiting and not link_busy:
            waiting.pop()
            link_busy = True
            heapq.heappush(events, (now + communication / bins, -1, "sent"))
    return now


@EXAMPLES
@given(DURATIONS, DURATIONS, st.integers(1, 40))
def test_bins_take_what_a_pipeline_takes(compute, communication, bins):
    taken = compute + communication - overlapped_seconds(compute, communication, bins)
    assert taken == pipeline(compute, communication, bins)
    most = max(compute, communication)
    assert most <= taken <= compute + communication
    assert taken == (compute + communication + (bins - 1) * most) / bins


HUBS = ["--graph", "products-like:0.001:0", "--workers", 8]


def test_an_epoch_with_bins():
    """From the command's own numbers: three forward exchanges, two backward ones."""
    told = as_json(*HUBS, "--system", "g3", "--bin-size", 60, "--layers", 3)
    communication = 5 * Fraction(told["exchange_seconds"])
    assert told["communication_seconds"] == pytest.approx(float(communication))
    epoch = pipeline(Fraction(told["compute_seconds"]), communication, told["bins"])
    assert told["epoch_seconds"] == pytest.approx(float(epoch))
    assert 3 * load_graph(HUBS[1]).vertices / 8 / 60 > told["bins"] >= 2
    both = told["communication_seconds"] + told["compute_seconds"]
    assert told["overlapped_seconds"] == pytest.approx(both - told["epoch_seconds"])
    assert told["overlapped_seconds"] > 0
