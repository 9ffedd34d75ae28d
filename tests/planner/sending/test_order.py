"""Orders, partial sums and their weights against literal searches and all choices."""

from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import strategies as st

from switchgnn.planner import BLOCK_STRATEGIES, PlanContext, ResolvedStrategies, boundary_edges
from switchgnn.planner.base.arrays import symmetric_rows
from switchgnn.planner.build import build_resolved
from switchgnn.planner.plan.banks import BANKS_OF_SWITCHES
from switchgnn.planner.sending import cover
from switchgnn.planner.sending.cover import cover_edges, packets_up
from switchgnn.planner.sending.order import gamr, priority_bfs
from switchgnn.planner.sending.packets import make_packets
from switchgnn.planner.sending.rates import WEIGHTS, Rates, exchange_seconds
from tests.planner import helpers


def search(edges, starts, *, by_degree=True):
    u, v = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    indptr, indices = symmetric_rows(u, v, len(starts))
    priority = np.diff(indptr) if by_degree else np.zeros(len(starts), dtype=np.int64)
    return priority_bfs(indptr, indices, np.array(starts), priority).tolist()


def literal_search(neighbours, starts, by_degree):
    """Section 3.2.2 word by word, with a plain list as the queue; or first in, first out."""
    queue, enqueued, sequence = [], set(), []
    for start in starts:
        if start in enqueued:
            continue
        queue.append(start)
        enqueued.add(start)
        while queue:
            vertex = max(queue, key=lambda v: len(neighbours[v])) if by_degree else queue[0]
            queue.remove(vertex)
            sequence.append(vertex)
            for neighbour in sorted(neighbours[vertex]):
                if neighbour not in enqueued:
                    queue.append(neighbour)
                    enqueued.add(neighbour)
    return sequence


def rows(edges, n):
    neighbours = {v: set() for v in range(n)}
    for u, v in edges:
        neighbours[u].add(v)
        neighbours[v].add(u)
    return neighbours


@helpers.given(helpers.graphs(), st.integers(0, 5), st.booleans())
def test_against_the_literal_search(graph, seed, by_degree):
    edges = list(helpers.tuples(*graph.edges()))
    starts = np.random.default_rng(seed).permutation(graph.vertices).tolist()
    expected = literal_search(rows(edges, graph.vertices), starts, by_degree)
    assert search(edges, starts, by_degree=by_degree) == expected
    assert sorted(expected) == list(range(graph.vertices))


def test_the_start_depends_on_the_seed():
    ring = helpers.graph_of(np.arange(50), (np.arange(50) + 1) % 50, 50)
    boundary = helpers.boundary_of(ring, np.arange(50) % 2)
    block = np.ones(len(boundary), dtype=np.int32)
    assert len({int(gamr(boundary, block, seed).source[0]) for seed in range(20)}) > 5


def test_degree_counts_neighbours_in_the_block_only():
    """0 has many neighbours, but in block 2 only one; there 3 leads."""
    graph = helpers.graph_of([0, 0, 0, 3, 3, 3], [1, 2, 3, 4, 5, 6], 7)
    boundary = helpers.boundary_of(graph, np.arange(7))
    second = (boundary.source >= 3) | (boundary.destination >= 3)
    order = gamr(boundary, np.where(second, 2, 1).astype(np.int32), 0)
    in_second = order.source[order.block == 2].tolist()
    assert 3 in in_second[:2]
    assert set(in_second) == {0, 3, 4, 5, 6}


def packets_of(boundary, block, multicast):
    """(features, partial sums) as sets, in plain Python."""
    ends = helpers.tuples(boundary.source, boundary.destination, boundary.source_worker, block)
    features, partials = set(), set()
    for (u, v, worker, number), raw in zip(ends, multicast, strict=True):
        if raw:
            features.add((worker, number, u))
        else:
            partials.add((worker, number, v))
    return features, partials


def cost(boundary, block, multicast, weight):
    features, partials = packets_of(boundary, block, multicast)
    contributions = sum(map(bool, multicast)) + len(partials)
    return len(features) + len(partials) + weight * contributions


def first_edges(case, most):
    boundary = helpers.boundary_of(case[0], case[2])
    kept = {each.name: getattr(boundary, each.name)[:most] for each in fields(boundary)}
    return replace(boundary, **kept)


@helpers.given(
    helpers.split_graphs(), st.integers(1, 3), st.sampled_from([0.0, 0.125, 0.25, 0.5, 1.0, 3.0])
)
def test_no_choice_costs_less(data, blocks, weight):
    boundary = first_edges(data, 9)
    block = (boundary.destination % blocks + 1).astype(np.int32)
    multicast = cover_edges(boundary, block, weight)
    assert multicast.dtype == np.bool_
    assert multicast.shape == (len(boundary),)
    choices = product([False, True], repeat=len(boundary))
    least = min(cost(boundary, block, choice, weight) for choice in choices)
    # Weights are rounded to 1/1024 of a packet, and these are multiples of it.
    assert cost(boundary, block, multicast.tolist(), weight) == least


@helpers.given(helpers.split_graphs(), st.integers(1, 4), st.sampled_from([0.0, 0.2, 1.0]))
def test_what_is_sent(data, blocks, weight):
    """Blocks need not be whole destinations; no partial sum is one feature or leaves one out."""
    boundary = first_edges(data, 1000)
    block = ((boundary.destination + boundary.source) % blocks + 1).astype(np.int32)
    multicast = cover_edges(boundary, block, weight)
    features, partials = packets_of(boundary, block, multicast.tolist())
    for worker, number, v in partials:
        own = (boundary.source_worker == worker) & (block == number)
        own &= boundary.destination == v
        assert own.sum() > 1
        assert not multicast[own].any()
    every = packets_of(boundary, block, [True] * len(boundary))[0]
    if not weight:
        assert len(features) + len(partials) <= len(every)
    raw, summed = packets_up(boundary, block, multicast)
    for worker in range(len(raw)):
        assert raw[worker] == sum(w == worker for w, _, _ in features)
        assert summed[worker] == sum(w == worker for w, _, _ in partials)


@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_worker_by_worker_is_the_same_as_all_at_once(monkeypatch, weight):
    boundary = helpers.boundary_of(
        helpers.random_graph(60, 500, 2, directed=True), np.arange(60) % 7
    )
    block = (boundary.destination % 3 + 1).astype(np.int32)
    whole = cover_edges(boundary, block, weight)
    assert 0 < np.count_nonzero(whole) < len(whole)
    for some in (1, 50):
        monkeypatch.setattr(cover, "_AT_A_TIME", some)
        assert np.array_equal(cover_edges(boundary, block, weight), whole)


WORKERS, SLOTS = 6, 30
GRAPH = helpers.random_graph(120, 1600, 3)
RATES = [Rates(link, loop, 1.0) for link, loop in ((1e6, 1e7), (1e6, 1e6), (1e6, 1e12), (1e3, 1.0))]


def planned(weight=0.0, rates=None, fits=None):
    strategies = ResolvedStrategies("metis", "destination", "cover", weight, "gamr", rates=rates)
    context = PlanContext(WORKERS, SLOTS, banks=1)
    return build_resolved(GRAPH, strategies, context, program="ab", seed=0, fits=fits)


def counted(plan, rates):
    """Seconds of a fragment, counted in the parts of the plan, block by block."""
    switch, total = plan.switch, 0.0
    for block in range(1, plan.manifest.blocks + 1):
        links = [
            int(indptr[block] - indptr[block - 1])
            for part in plan.workers
            for indptr in (part.send_indptr, part.receive_indptr)
        ]
        loop = np.count_nonzero(switch.entry_hop[switch.entry_block == block])
        total += max(max(links) / rates.link, loop / rates.loop)
    return total


@pytest.fixture(scope="module")
def by_weight():
    return {weight: planned(weight=weight) for weight in WEIGHTS}


@pytest.mark.whole
@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("weight", [0.0, 0.125, 1.0])
def test_the_time_is_that_of_the_plan(by_weight, rates, weight):
    plan = by_weight[weight]
    boundary = boundary_edges(GRAPH, plan.assignment)
    block = BLOCK_STRATEGIES["destination"](boundary, SLOTS, 0)
    chosen = cover_edges(boundary, block, weight)
    packets = make_packets(boundary, block, chosen, vertices=GRAPH.vertices, workers=WORKERS)
    assert exchange_seconds(packets, rates, WORKERS) == pytest.approx(counted(plan, rates))


@pytest.mark.parametrize("banks", BANKS_OF_SWITCHES)
def test_more_additions_need_fewer_passes(by_weight, banks):
    boundary = boundary_edges(GRAPH, by_weight[0.0].assignment)
    block = np.ones(len(boundary), dtype=np.int32)
    everything = np.ones(len(boundary), dtype=np.bool_)
    packets = make_packets(boundary, block, everything, vertices=GRAPH.vertices, workers=WORKERS)
    sent = len(set(boundary.source.tolist()))
    seconds = exchange_seconds(packets, Rates(1e12, 1.0, float(banks)), WORKERS)
    assert seconds == pytest.approx(max(0, len(boundary) / banks - sent), abs=1e-6)


@pytest.mark.whole
def test_of_the_weights_whose_plans_fit_the_quickest_is_taken(by_weight):
    """A quick loop, so that the weight with the most entries would be taken."""

    def entries(plan):
        return len(plan.switch.entry_block)

    rates = RATES[2]
    seconds = {weight: counted(plan, rates) for weight, plan in by_weight.items()}
    needed = sorted({entries(plan) for plan in by_weight.values()})
    assert entries(planned(rates=rates)) == needed[-1]
    for room in (needed[0], needed[len(needed) // 2]):
        found = planned(rates=rates, fits=lambda plan, room=room: entries(plan) <= room)
        fitting = [each for weight, each in seconds.items() if entries(by_weight[weight]) <= room]
        assert entries(found) <= room
        assert counted(found, rates) == pytest.approx(min(fitting))
    assert entries(planned(rates=rates, fits=lambda _: False)) == needed[0]
