# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner.partition.workers import MOST_SHARE, even_shares
from tests.planner.helpers import STEADY


@st.composite
def uneven_parts(draw):
    workers = draw(st.integers(1, 9))
    part = draw(st.lists(st.integers(0, workers - 1), min_size=workers, max_size=120))
    degree = draw(st.lists(st.integers(0, 5), min_size=len(part), max_size=len(part)))
    return np.array(part, dtype=np.int32), workers, np.array(degree)


@STEADY
@given(uneven_parts())
def test_no_worker_has_too_many_and_each_has_one(drawn):
    part, workers, degree = drawn
    most = math.ceil(MOST_SHARE * len(part) / workers)
    before = np.bincount(part, minlength=workers)
    even = even_shares(part, workers, degree)
    after = np.bincount(even, minlength=workers)
    assert after.max() <= most
    assert after.min() >= 1
    assert even.dtype == np.int32
    # Nobody moves without need.
    needed = max(np.maximum(before - most, 0).sum(), (before == 0).sum())
    assert (even != part).sum() <= needed + (before == 0).sum()
    if before.max() <= most and before.min() >= 1:
        assert np.array_equal(even, part)


def test_those_with_the_fewest_neighbours_leave():
    part = np.zeros(8, dtype=np.int32)
    degree = np.array([5, 1, 7, 2, 9, 0, 8, 3])
    assert even_shares(part, 2, degree).tolist() == [0, 1, 0, 1, 0, 1, 0, 0]


def test_the_emptiest_take_them():
    part = np.array([0] * 8 + [1] * 3 + [2], dtype=np.int32)
    even = even_shares(part, 3, np.arange(12))
    assert np.bincount(even).tolist() == [5, 4, 3]
