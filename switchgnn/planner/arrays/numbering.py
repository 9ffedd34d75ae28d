# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers for keys, without sorting them where that can be avoided."""

import numpy as np
from numpy.typing import NDArray

# A table may have so many places per key, or so many in all.
_PLACES_PER_KEY, _PLACES = 4, 1 << 22


def number_keys(
    keys: NDArray[np.integer], bound: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The distinct keys, ascending, and the place of each key among them.

    What numpy.unique does, in O(keys + bound) by a table where that is small enough; sorting
    a hundred million keys takes many times as long.

    Args:
        keys: integers[E], 0 <= key < bound; fewer than 2^31 distinct ones.
        bound: above every key.

    Returns:
        (int64[N], int32[E])
    """
    if not _fits_table(keys, bound):
        distinct, number = np.unique(keys, return_inverse=True)
        return distinct.astype(np.int64), number.reshape(-1).astype(np.int32)
    distinct = _distinct_by_table(keys, bound)
    place = np.zeros(bound, dtype=np.int32)
    place[distinct] = np.arange(len(distinct), dtype=np.int32)
    return distinct, place[keys]


def number_ids(ids: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """`number_keys` of vertex ids, whatever the largest is."""
    return number_keys(ids, int(ids.max(initial=-1)) + 1)


def distinct_keys(keys: NDArray[np.integer], bound: int) -> NDArray[np.int64]:
    """Only the distinct keys, ascending; arguments as those of `number_keys`."""
    if not _fits_table(keys, bound):
        return np.unique(keys).astype(np.int64)
    return _distinct_by_table(keys, bound)


def number_pairs(
    one: NDArray[np.integer], other: NDArray[np.integer]
) -> tuple[tuple[NDArray[np.int32], NDArray[np.int32]], NDArray[np.int32]]:
    """`distinct_pairs`, and the place of each pair among them, int32[E]."""
    size = int(other.max(initial=0)) + 1
    bound = (int(one.max(initial=0)) + 1) * size
    pairs, number = number_keys(pair_keys(one, other, size), bound)
    return _split(pairs, size), number


def distinct_pairs(
    one: NDArray[np.integer], other: NDArray[np.integer]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The pairs of numbers that occur, by the first, then the second: int32[N] each.

    Args:
        one: integers[E], from 0.
        other: integers[E], from 0.
    """
    size = int(other.max(initial=0)) + 1
    bound = (int(one.max(initial=0)) + 1) * size
    return _split(distinct_keys(pair_keys(one, other, size), bound), size)


def pair_keys(one: NDArray[np.integer], other: NDArray[np.integer], size: int) -> NDArray[np.int64]:
    """One number for each pair, in the order of the pairs; `size` is above every `other`."""
    keys = one.astype(np.int64)
    keys *= size
    keys += other
    return keys


def _split(pairs: NDArray[np.int64], size: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    first, second = np.divmod(pairs, size)
    return first.astype(np.int32), second.astype(np.int32)


def _fits_table(keys: NDArray[np.integer], bound: int) -> bool:
    return bound <= max(_PLACES_PER_KEY * len(keys), _PLACES)


def _distinct_by_table(keys: NDArray[np.integer], bound: int) -> NDArray[np.int64]:
    present = np.zeros(bound, dtype=np.bool_)
    present[keys] = True
    return np.flatnonzero(present)
