# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner import graph_from_edges
from switchgnn.planner.blocks import mlgp as blocks
from switchgnn.planner.blocks.mlgp import mlgp
from tests.planner.helpers import STEADY, boundary_of, graphs, random_graph, reports, tuples


def everyone_apart(graph):
    """All edges are boundary edges."""
    return boundary_of(graph, np.arange(graph.vertices))


def block_vertices(boundary, block):
    return [
        set(boundary.source[block == b].tolist()) | set(boundary.destination[block == b].tolist())
        for b in range(1, block.max(initial=0) + 1)
    ]


def check(boundary, block, slots):
    assert block.dtype == np.int32
    assert block.shape == (len(boundary),)
    assert sorted(set(block.tolist())) == list(range(1, block.max(initial=0) + 1))
    assert all(len(vertices) <= slots for vertices in block_vertices(boundary, block))


@STEADY
@given(graphs(), st.integers(2, 45), st.integers(0, 2))
def test_every_edge_is_in_one_block_that_fits(graph, slots, seed):
    boundary = everyone_apart(graph)
    block = mlgp(boundary, slots, seed)
    check(boundary, block, slots)
    assert np.array_equal(block, mlgp(boundary, slots, seed))


@pytest.mark.parametrize("slots", [2, 3, 7, 50, 299, 300])
def test_a_larger_graph(slots):
    boundary = everyone_apart(random_graph(300, 900, 5))
    check(boundary, mlgp(boundary, slots, 0), slots)


@STEADY
@given(graphs(), st.integers(2, 10))
def test_both_directions_of_an_edge_share_a_block(graph, slots):
    boundary = everyone_apart(graph)
    block = mlgp(boundary, slots, 0)
    pairs = tuples(boundary.source, boundary.destination)
    of = dict(zip(pairs, block.tolist(), strict=True))
    assert all(of.get((v, u), b) == b for (u, v), b in of.items())


def test_what_fits_is_one_block():
    boundary = everyone_apart(random_graph(30, 60, 1))
    assert set(mlgp(boundary, len(boundary.vertices()), 0).tolist()) == {1}


def test_no_edges_no_blocks():
    graph = random_graph(5, 10, 0)
    assert len(mlgp(boundary_of(graph, [0] * 5), 4, 0)) == 0


@pytest.mark.parametrize("slots", [2, 3, 8])
def test_a_star_needs_a_block_per_slots_minus_one_leaves(slots):
    leaves = 30
    graph = graph_from_edges(
        np.zeros(leaves, int), np.arange(1, leaves + 1), name="s", vertices=31, directed=False
    )
    boundary = everyone_apart(graph)
    block = mlgp(boundary, slots, 0)
    check(boundary, block, slots)
    assert block.max() >= leaves / (slots - 1)


def test_levels_are_the_cut_edges_of_the_level_before():
    """Within a level no two blocks share a vertex, as the parts are disjoint."""
    graph = random_graph(120, 500, 3)
    boundary = everyone_apart(graph)
    vertices = block_vertices(boundary, mlgp(boundary, 20, 0))
    levels = [set()]
    for block in vertices:
        if levels[-1] & block:
            levels.append(set())
        levels[-1] |= block
    assert len(levels) < len(vertices) / 2
    assert all(later <= earlier for earlier, later in pairwise(levels))


@pytest.mark.parametrize("parts_of", ["all cut", "one part", "one vertex apart"])
@pytest.mark.parametrize("slots", [2, 4, 9])
def test_a_poor_partition_is_repaired(monkeypatch, parts_of, slots):
    """Surplus moves away, and if every edge is cut the greedy cut takes over."""

    def poor(source, destination, *, vertices, parts, seed):
        part = np.zeros(vertices, dtype=np.int32)
        if parts_of == "all cut":  # the graph below is bipartite: even and odd ids
            part = (np.arange(vertices) % 2).astype(np.int32)
        elif parts_of == "one vertex apart":
            part[0] = parts - 1
        return part

    monkeypatch.setattr(blocks, "partition_vertices", poor)
    rng = np.random.default_rng(0)
    u, v = 2 * rng.integers(0, 20, 100), 2 * rng.integers(0, 20, 100) + 1
    graph = graph_from_edges(u, v, name="bipartite", vertices=40, directed=False)
    boundary = everyone_apart(graph)
    check(boundary, mlgp(boundary, slots, 0), slots)


def test_the_greedy_cut_makes_progress(monkeypatch):
    def scatter(source, destination, *, vertices, parts, seed):
        return (np.arange(vertices) // 2).astype(np.int32)

    monkeypatch.setattr(blocks, "partition_vertices", scatter)
    # Parts {0,1} {2,3} {4,5}, and no edge inside any of them.
    u, v = np.array([0, 0, 1, 2]), np.array([2, 4, 3, 5])
    graph = graph_from_edges(u, v, name="g", vertices=6, directed=False)
    boundary = everyone_apart(graph)
    block = mlgp(boundary, 2, 0)
    check(boundary, block, 2)
    assert block.max() == 4


@pytest.mark.parametrize("slots", [1, 0, -3])
def test_too_few_slots(slots):
    with reports("at least 2"):
        mlgp(everyone_apart(random_graph(5, 10, 0)), slots, 0)


def test_too_many_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "MAX_BLOCKS", 10)
    with reports("more slots"):
        mlgp(everyone_apart(random_graph(50, 200, 0)), 2, 0)
