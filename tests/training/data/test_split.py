# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.training import DatasetError, split_vertices
from tests.training.helpers import STEADY, one_sentence

LABELS = st.lists(st.integers(-1, 4), max_size=60).map(lambda x: np.array(x, dtype=np.int64))


@STEADY
@given(LABELS, st.integers(0, 5))
def test_each_labelled_vertex_is_in_one_part(labels, seed):
    split = split_vertices(labels, seed)
    times = split.train.astype(int) + split.validation + split.test
    assert np.array_equal(times, (labels >= 0).astype(int))


@STEADY
@given(LABELS, st.integers(0, 5))
def test_each_class_trains_and_large_ones_are_everywhere(labels, seed):
    split = split_vertices(labels, seed)
    for label, count in zip(*np.unique(labels[labels >= 0], return_counts=True), strict=True):
        members = labels == label
        assert split.train[members].any()
        assert split.validation[members].any() == split.test[members].any() == (count >= 3)


@STEADY
@given(LABELS, st.integers(0, 5))
def test_the_seed_decides(labels, seed):
    one, two = split_vertices(labels, seed), split_vertices(labels, seed)
    assert np.array_equal(one.train, two.train)
    assert np.array_equal(one.test, two.test)


@STEADY
@given(st.integers(3, 30), st.floats(0, 0.49), st.floats(0, 0.49))
def test_any_shares_leave_some_to_train(count, validation, test):
    split = split_vertices(np.zeros(count, dtype=np.int64), 0, validation=validation, test=test)
    assert split.train.any()
    assert split.validation.any() == (validation > 0)
    assert split.test.any() == (test > 0)


def test_shares_and_chance():
    labels = np.repeat([0, 1], 100)
    split, other = split_vertices(labels, 0), split_vertices(labels, 1)
    for label in (0, 1):
        members = labels == label
        parts = split.train, split.validation, split.test
        assert [int(part[members].sum()) for part in parts] == [60, 20, 20]
    assert not np.array_equal(split.train, other.train)


def test_multilabel_ones_are_split_as_one_class():
    split = split_vertices(np.zeros((10, 4), dtype=np.float32), 0)
    assert [int(x.sum()) for x in (split.train, split.validation, split.test)] == [6, 2, 2]


@pytest.mark.parametrize(
    ("seed", "shares", "part"),
    [(-1, {}, "-1"), (0, {"test": 0.8}, "nothing to train"), (0, {"test": -0.1}, "nothing")],
)
def test_impossible_splits(seed, shares, part):
    with pytest.raises(DatasetError) as error:
        split_vertices(np.zeros(9, dtype=np.int64), seed, **shares)
    assert part in one_sentence(error)
