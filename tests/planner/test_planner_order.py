# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
from itertools import permutations
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planner_helpers import STEADY, boundary_of, graphs

from switchgnn.planner import graph_from_edges
from switchgnn.planner.blocks import mlgp
from switchgnn.planner.metis import symmetric_rows
from switchgnn.planner.order import gamr, priority_bfs


def search(edges, starts):
    u, v = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return priority_bfs(*symmetric_rows(u, v, len(starts)), np.array(starts)).tolist()


def literal_search(neighbours, starts):
    """Section 3.2.2 word by word, with a plain list as the queue."""
    queue, enqueued, sequence = [], set(), []
    for start in starts:
        if start in enqueued:
            continue
        queue.append(start)
        enqueued.add(start)
        while queue:
            highest = max(len(neighbours[v]) for v in queue)
            vertex = next(v for v in queue if len(neighbours[v]) == highest)
            queue.remove(vertex)
            sequence.append(vertex)
            for neighbour in sorted(neighbours[vertex]):
                if neighbour not in enqueued:
                    queue.append(neighbour)
                    enqueued.add(neighbour)
    return sequence


def completion_time(neighbours, sequence, k=1):
    """The model of section 3.2.1: k packets in and k packets out per time slot."""
    n = len(sequence)
    arrived, done, queue = set(), set(), 0
    for t in range(ceil(n / k)):
        arrived.update(sequence[t * k : (t + 1) * k])
        completed = {v for v in neighbours if v not in done and neighbours[v] <= arrived}
        done |= completed
        queue = max(len(completed) + queue - k, 0)
    return ceil(n / k) + ceil(queue / k)


def star(n):
    return [(0, v) for v in range(1, n)]


def ring(n):
    return [(v, (v + 1) % n) for v in range(n)]


def rows(edges, n):
    neighbours = {v: set() for v in range(n)}
    for u, v in edges:
        neighbours[u].add(v)
        neighbours[v].add(u)
    return neighbours


@STEADY
@given(graphs(), st.integers(0, 5))
def test_against_the_literal_search(graph, seed):
    u, v = graph.edges()
    edges = list(zip(u.tolist(), v.tolist(), strict=True))
    starts = np.random.default_rng(seed).permutation(graph.vertices).tolist()
    expected = literal_search(rows(edges, graph.vertices), starts)
    assert search(edges, starts) == expected
    assert sorted(expected) == list(range(graph.vertices))


def test_the_papers_example():
    """Figure 8: 3 and 5 are neighbours of 1, 5 has more; 7 has as many as 3; 9 has one."""
    edges = [(1, 3), (1, 5), (3, 5), (5, 7), (7, 9)]
    compact = [((u - 1) // 2, (v - 1) // 2) for u, v in edges]
    sequence = search(compact, range(5))
    assert [2 * v + 1 for v in sequence] == [1, 5, 3, 7, 9]


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7])
def test_star_of_section_3_2_2(n):
    neighbours = rows(star(n), n)
    # From the centre: time n. From a leaf the centre is second, which costs one slot more
    # (the paper's search starts at the centre).
    assert completion_time(neighbours, search(star(n), range(n))) == n
    starts = [1, *range(2, n), 0]
    assert search(star(n), starts)[:2] == [1, 0]
    assert completion_time(neighbours, search(star(n), starts)) <= n + 1
    times = [completion_time(neighbours, order) for order in permutations(range(n))]
    assert min(times) == n
    # The paper says 2n - 1; its own model, which lets a packet leave in the slot in which
    # it completes, gives one less.
    assert max(times) == 2 * n - 2
    assert np.mean(times) == pytest.approx(n + (n - 2) * (n + 1) / (2 * n))


@pytest.mark.parametrize("n", [4, 5, 6, 7, 8])
def test_ring_of_section_3_2_2(n):
    neighbours = rows(ring(n), n)
    times = {completion_time(neighbours, order) for order in permutations(range(n))}
    ours = {completion_time(neighbours, search(ring(n), [s, *range(n)])) for s in range(n)}
    assert ours == {n + 2}
    assert min(times) == n + 1
    # The paper gives n + 2 as the worst; in its model some orders are worse from n = 7 on
    # (every second vertex first, for one), which only speaks for the search.
    assert max(times) == (n + 2 if n < 7 else n // 2 + n)


@STEADY
@given(graphs(), st.integers(2, 30), st.integers(0, 3))
def test_each_source_of_each_block_is_sent_once(graph, slots, seed):
    boundary = boundary_of(graph, np.arange(graph.vertices) % 3)
    block = mlgp(boundary, slots, seed)
    order = gamr(boundary, block, seed)
    sent = list(zip(order.block.tolist(), order.source.tolist(), strict=True))
    needed = set(zip(block.tolist(), boundary.source.tolist(), strict=True))
    assert len(sent) == len(needed)
    assert set(sent) == needed
    assert order.block.tolist() == sorted(order.block.tolist())
    again = gamr(boundary, block, seed)
    assert np.array_equal(order.source, again.source)


def test_the_start_depends_on_the_seed():
    graph_edges = np.array(ring(50))
    u, v = graph_edges.T
    graph = graph_from_edges(u, v, name="ring", vertices=50, directed=False)
    boundary = boundary_of(graph, np.arange(50) % 2)
    block = np.ones(len(boundary), dtype=np.int32)
    first = {int(gamr(boundary, block, seed).source[0]) for seed in range(20)}
    assert len(first) > 5


def test_degree_counts_neighbours_in_the_block_only():
    """0 has many neighbours, but in block 2 only one; there 3 leads."""
    u, v = np.array([0, 0, 0, 3, 3, 3]), np.array([1, 2, 3, 4, 5, 6])
    graph = graph_from_edges(u, v, name="g", vertices=7, directed=False)
    boundary = boundary_of(graph, np.arange(7))
    second = (boundary.source >= 3) | (boundary.destination >= 3)
    block = np.where(second, 2, 1).astype(np.int32)
    order = gamr(boundary, block, 0)
    in_second = order.source[order.block == 2].tolist()
    assert 3 in in_second[:2]
    assert set(in_second) == {0, 3, 4, 5, 6}
