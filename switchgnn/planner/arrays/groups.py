# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Groups of equal rows in sorted keys."""

import numpy as np
from numpy.typing import NDArray


def starts_group(*keys: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Where sorted rows of keys change; the first row counts as a change."""
    new = np.zeros(len(keys[0]), dtype=bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return new


def rank_in_group(*keys: NDArray[np.integer]) -> NDArray[np.int64]:
    """The position of each row within its group of equal, sorted keys."""
    positions = np.arange(len(keys[0]))
    starts = np.where(starts_group(*keys), positions, 0)
    ranks: NDArray[np.int64] = positions - np.maximum.accumulate(starts)
    return ranks


def ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """start, start + 1, ... count numbers for each start, one after another."""
    total = int(counts.sum())
    before = np.cumsum(counts) - counts
    joined: NDArray[np.int64] = np.arange(total) + np.repeat(starts - before, counts)
    return joined


def indptr_of(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each group begins, and where the last one ends."""
    indptr = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=indptr[1:])
    return indptr
