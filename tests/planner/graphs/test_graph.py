# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from hypothesis import given

from switchgnn.planner import Graph, PlannerError, graph_from_edges
from tests.planner.helpers import STEADY, graphs, one_sentence, reports, tuples


def build(u, v, **options):
    settings = {"name": "g", "vertices": 4, "directed": True, **options}
    return graph_from_edges(np.array(u, dtype=np.int64), np.array(v, dtype=np.int64), **settings)


def test_duplicates_and_self_loops_are_dropped():
    graph = build([0, 0, 1, 2, 0], [1, 1, 1, 0, 3])
    assert graph.indptr.tolist() == [0, 2, 2, 3, 3]
    assert graph.indices.tolist() == [1, 3, 0]


def test_dropped_self_loops_are_named():
    assert build([2, 0, 0, 2], [2, 1, 0, 2]).self_loops.tolist() == [0, 2]
    assert build([2, 0], [2, 1], directed=False).self_loops.tolist() == [2]
    assert build([0], [1]).self_loops is None


def test_undirected_graph_has_both_directions():
    u, v = build([0, 1], [1, 2], directed=False).edges()
    assert list(tuples(u, v)) == [(0, 1), (1, 0), (1, 2), (2, 1)]


@STEADY
@given(graphs())
def test_edges_build_the_same_graph_again(graph):
    again = graph_from_edges(*graph.edges(), name="x", vertices=graph.vertices, directed=True)
    assert again.digest() == graph.digest()


def test_digest_depends_on_structure_only():
    plain = build([0], [1])
    other = build([0], [1], name="h", features=np.ones((4, 2), dtype=np.float32))
    assert plain.digest() == other.digest()
    assert plain.digest() != build([1], [0]).digest()
    assert plain.digest() != build([0], [1], vertices=5).digest()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_features_must_be_finite(bad):
    features = np.zeros((4, 2), dtype=np.float32)
    features[2, 1] = bad
    with reports("vertex 2"):
        build([0], [1], features=features)


@pytest.mark.parametrize(
    ("indptr", "indices"),
    [
        ([0], []),
        ([0, 2], [0]),
        ([1, 1], [0]),
        ([0, 1, 1], [5]),
        ([0, 1, 1], [-1]),
        ([0, 1, 1], [0]),
        ([0, 2, 2, 2], [2, 1]),
        ([0, 2, 2], [1, 1]),
    ],
)
def test_rows_must_be_well_formed(indptr, indices):
    with pytest.raises(PlannerError) as error:
        Graph(np.array(indptr, dtype=np.int64), np.array(indices, dtype=np.int32), "g")
    one_sentence(error)


def test_wrong_types_and_lengths_are_refused():
    with pytest.raises(PlannerError, match="int64"):
        Graph(np.array([0, 0], dtype=np.int32), np.array([], dtype=np.int32), "g")
    with pytest.raises(PlannerError, match="labels for 3"):
        build([0], [1], labels=np.zeros(3, dtype=np.int64))
    with pytest.raises(PlannerError, match="float32"):
        build([0], [1], features=np.zeros((4, 2)))
    with pytest.raises(PlannerError, match="0 vertices"):
        build([], [], vertices=0)
    with pytest.raises(PlannerError, match="outside"):
        build([0], [4])
