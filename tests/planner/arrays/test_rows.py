# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner import arrays as compiled
from switchgnn.planner.arrays import (
    distinct_pairs,
    is_symmetric,
    number_pairs,
    sort_by_key,
    sort_by_keys,
    strange_row,
    thin,
)
from switchgnn.planner.partition.metis import symmetric_rows
from tests.planner.helpers import STEADY, graphs, random_graph, tuples

KEYS = st.lists(st.integers(0, 6), max_size=40)


@given(KEYS)
def test_a_counting_sort_is_a_stable_sort(keys):
    key = np.array(keys, dtype=np.int32)
    indptr, order = sort_by_key(key, 7)
    assert order.tolist() == np.argsort(key, kind="stable").tolist()
    assert indptr.tolist() == [sum(k < row for k in keys) for row in range(8)]


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=40))
def test_several_keys_sort_as_lexsort_does(rows):
    keys = np.array(rows, dtype=np.int32).T
    assert sort_by_keys(*keys).tolist() == np.lexsort(keys).tolist()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=30))
def test_pairs_are_those_of_a_set(pairs):
    one, other = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    expected = sorted(set(pairs))
    (first, second), number = number_pairs(one, other)
    assert list(tuples(first, second)) == expected
    assert [expected[n] for n in number.tolist()] == pairs
    assert [each.tolist() for each in distinct_pairs(one, other)] == [
        first.tolist(),
        second.tolist(),
    ]


@STEADY
@given(graphs())
def test_symmetry_is_that_of_the_edges(graph):
    edges = set(zip(*(ends.tolist() for ends in graph.edges()), strict=True))
    assert is_symmetric(graph.indptr, graph.indices) == all((v, u) in edges for u, v in edges)


@STEADY
@given(graphs())
def test_symmetric_rows_hold_each_edge_both_ways(graph):
    source, destination = graph.edges()
    edges = set(tuples(source, destination))
    both = sorted(edges | {(v, u) for u, v in edges})
    indptr, indices = symmetric_rows(source, destination, graph.vertices)
    rows = np.repeat(np.arange(graph.vertices), np.diff(indptr))
    assert list(tuples(rows, indices)) == both


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([[1, 2], [0], []], None),
        ([[1, 2], [0, 1], []], ("loop", 1)),
        ([[1], [2, 0], []], ("order", 1)),
        ([[1], [0, 0], [2]], ("order", 1)),
        ([[], [], []], None),
    ],
)
def test_strange_rows_are_found(rows, found):
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([v for row in rows for v in row], dtype=np.int32)
    assert strange_row(indptr, indices) == found


@pytest.mark.parametrize("few", [-1, 1 << 60], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_sample_keeps_both_directions_of_its_share(monkeypatch, share, few):
    monkeypatch.setattr(compiled, "_FEW", few)
    graph = random_graph(300, 9000, 5)
    indptr, indices = thin(graph.indptr, graph.indices, share)
    assert is_symmetric(indptr, indices)
    assert strange_row(indptr, indices) is None
    monkeypatch.setattr(compiled, "_FEW", 1 << 60)
    assert thin(graph.indptr, graph.indices, share)[1].tolist() == indices.tolist()
    kept = len(indices) / len(graph.indices)
    assert abs(kept - share) < 0.03
    for row in range(graph.vertices):
        mine = set(indices[indptr[row] : indptr[row + 1]].tolist())
        assert mine <= set(graph.indices[graph.indptr[row] : graph.indptr[row + 1]].tolist())
    # No vertex loses all or keeps all: the hash does not look at one end only.
    if share == 0.25:
        degree = np.diff(indptr) / np.maximum(np.diff(graph.indptr), 1)
        assert degree.std() < 0.1
