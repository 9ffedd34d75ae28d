# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from switchgnn.planner import graph_from_edges
from switchgnn.training import DatasetError, dataset_from_graph, split_vertices
from tests.training.helpers import STEADY, datasets, one_sentence, pairs


def tiny(multilabel=False):
    graph = graph_from_edges(
        np.array([0, 1, 2, 2]), np.array([1, 2, 2, 3]), name="tiny", vertices=6, directed=False
    )
    labels = np.array([0, 1, 0, 1, 0, 1])
    labels = np.eye(2, dtype=np.float32)[labels] if multilabel else labels
    return dataset_from_graph(
        graph,
        features=np.ones((6, 2), dtype=np.float32),
        labels=labels,
        split=split_vertices(labels, 0),
    )


@pytest.mark.parametrize("multilabel", [False, True])
def test_what_follows_from_the_graph(multilabel):
    data = tiny(multilabel)
    assert (data.name, data.vertices, data.classes) == ("tiny", 6, 2)
    assert data.multilabel is multilabel
    assert data.undirected
    assert data.self_loops.tolist() == [2]


@STEADY
@given(datasets())
def test_undirected_is_what_the_edges_say(data):
    edges = pairs(data.graph)
    assert data.undirected == (edges == {(v, u) for u, v in edges})


def test_unlabelled_vertices_are_admitted_outside_the_split():
    data = tiny()
    labels = np.array([-1, 1, 0, 1, 0, 1])
    train, no = np.arange(6) == 1, np.zeros(6, dtype=bool)
    replace(data, labels=labels, train=train, validation=no, test=no)
    with pytest.raises(DatasetError) as error:
        replace(data, labels=labels, train=train, validation=no, test=np.arange(6) == 0)
    assert "vertex 0 in its split, which has no label" in one_sentence(error)


MASK = np.ones(6, dtype=bool)
NAN = np.ones((6, 2), dtype=np.float32)
NAN[4, 1] = np.nan


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"features": np.ones((6, 2))}, "float32"),
        ({"features": np.ones((6, 0), dtype=np.float32)}, "float32"),
        ({"features": np.ones((5, 2), dtype=np.float32)}, "6 vertices but features for 5"),
        ({"features": NAN}, "vertex 4"),
        ({"labels": np.zeros(5, dtype=np.int64)}, "int64[5]"),
        ({"labels": np.zeros(6, dtype=np.int32)}, "int32"),
        ({"labels": np.array([0, 1, 2, 0, 0, 0])}, "outside 0..1"),
        ({"labels": np.array([0, 1, -2, 0, 0, 0])}, "outside 0..1"),
        ({"labels": np.zeros((6, 2), dtype=np.float32)}, "float32[6, 2]"),
        ({"multilabel": True}, "float32[V, C]"),
        ({"classes": 0}, "no classes"),
        ({"train": MASK.astype(int)}, "train mask"),
        ({"test": MASK[:3]}, "test mask"),
        ({"validation": MASK}, "two parts"),
        ({"train": ~MASK}, "train on"),
        ({"self_loops": np.array([2], dtype=np.int32)}, "int64"),
        ({"self_loops": np.array([2, 2])}, "each once"),
        ({"self_loops": np.array([6])}, "are vertices"),
    ],
)
def test_what_does_not_fit_is_refused(changes, part):
    with pytest.raises(DatasetError) as error:
        replace(tiny(), **changes)
    assert part in one_sentence(error)


def test_multilabel_labels_are_zeros_and_ones():
    data = tiny(multilabel=True)
    replace(data, labels=data.labels.astype(bool))
    with pytest.raises(DatasetError) as error:
        replace(data, labels=data.labels / 2)
    assert "other than 0 and 1" in one_sentence(error)


def test_a_directed_graph_is_not_called_undirected():
    graph = graph_from_edges(
        np.array([0]), np.array([1]), name="one-way", vertices=6, directed=True
    )
    with pytest.raises(DatasetError) as error:
        replace(tiny(), graph=graph)
    assert "reverse" in one_sentence(error)
