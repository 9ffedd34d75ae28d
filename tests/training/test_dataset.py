"""Data sets: their checks, and random splits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner import PlannerError, graph_from_edges
from switchgnn.training import DatasetError, dataset_from_graph, split_vertices
from tests.planner.helpers import pairs
from tests.training.helpers import STEADY, datasets, refusal


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


@STEADY
@given(datasets())
def test_undirected_is_what_the_edges_say(data):
    edges = set(pairs(data.graph))
    assert data.undirected == (edges == {(v, u) for u, v in edges})


def test_unlabelled_vertices_are_admitted_outside_the_split():
    data = tiny()
    labels = np.array([-1, 1, 0, 1, 0, 1])
    train, no = np.arange(6) == 1, np.zeros(6, dtype=bool)
    replace(data, labels=labels, train=train, validation=no, test=no)
    with refusal("vertex 0 in its split, which has no label", DatasetError):
        replace(data, labels=labels, train=train, validation=no, test=np.arange(6) == 0)


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
        ({"labels": np.zeros((6, 3), dtype=np.float32)}, "float32[6, 3]"),
        ({"classes": 0}, "no classes"),
        ({"train": MASK.astype(int)}, "train mask"),
        ({"test": MASK[:3]}, "test mask"),
        ({"validation": MASK}, "two parts"),
        ({"train": ~MASK}, "train on"),
    ],
)
def test_what_does_not_fit_is_refused(changes, part):
    with refusal(part, DatasetError):
        replace(tiny(), **changes)


def test_multilabel_labels_are_zeros_and_ones():
    data = tiny(multilabel=True)
    replace(data, labels=data.labels.astype(bool))
    with refusal("other than 0 and 1", DatasetError):
        replace(data, labels=data.labels / 2)


def test_self_loops_are_vertices_in_order():
    for loops, part in (
        (np.array([2], dtype=np.int32), "<i8"),
        (np.array([2, 2]), "not ascending"),
        (np.array([6]), "outside 0..5"),
    ):
        with refusal(part, PlannerError):
            replace(tiny().graph, self_loops=loops)


LABELS = st.lists(st.integers(-1, 4), max_size=60).map(lambda x: np.array(x, dtype=np.int64))


@STEADY
@given(LABELS, st.integers(0, 5))
def test_a_split_has_each_labelled_vertex_once_and_each_class_trains(labels, seed):
    """Large classes are in all of its parts."""
    split = split_vertices(labels, seed)
    times = split.train.astype(int) + split.validation + split.test
    assert np.array_equal(times, (labels >= 0).astype(int))
    for label, count in zip(*np.unique(labels[labels >= 0], return_counts=True), strict=True):
        members = labels == label
        assert split.train[members].any()
        assert split.validation[members].any() == split.test[members].any() == (count >= 3)


def test_shares_and_chance():
    labels = np.repeat([0, 1], 100)
    split, other = split_vertices(labels, 0), split_vertices(labels, 1)
    for label in (0, 1):
        members = labels == label
        parts = split.train, split.validation, split.test
        assert [int(part[members].sum()) for part in parts] == [60, 20, 20]
    assert not np.array_equal(split.train, other.train)


def test_a_negative_seed_is_refused():
    with refusal("-1", DatasetError):
        split_vertices(np.zeros(9, dtype=np.int64), -1)
