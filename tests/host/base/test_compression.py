"""When a cached row has changed enough to be sent."""

import numpy as np
import pytest

from switchgnn.host.base.compression import LeastChange

ROWS = np.array([8.0, 4.0, 1.0, 0.0, 7.0], dtype=np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_a_small_row_changes_by_a_share_of_an_average_one(dtype):
    least = LeastChange.of(0.5, ROWS.astype(dtype))
    assert least.usual == 4
    changes = np.array([4, 2, 2, 0, 5], dtype=dtype)
    assert least.reached(changes, ROWS.astype(dtype)).tolist() == [False, False, False, False, True]
    assert least.reached(changes + dtype(1), ROWS.astype(dtype)).all(where=[1, 1, 1, 0, 1])


def test_without_a_share_any_change_counts():
    changes = np.array([0, 1e-30, 0, 1, 0], dtype=np.float32)
    assert LeastChange.of(0.0, ROWS).reached(changes, ROWS).tolist() == [0, 1, 0, 1, 0]


def test_what_is_not_finite_does_not_hide_the_others():
    sizes = np.array([np.inf, np.inf, np.nan, 2.0, 4.0], dtype=np.float32)
    least = LeastChange.of(0.5, sizes)
    assert least.usual == 3
    # A row that becomes infinite has changed, and so has one that stays so.
    changes = np.array([np.inf, np.nan, np.nan, 1.6, 1.6], dtype=np.float32)
    assert least.reached(changes, sizes).tolist() == [True, True, True, True, False]
