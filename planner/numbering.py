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
    if bound > max(_PLACES_PER_KEY * len(keys), _PLACES):
        distinct, number = np.unique(keys, return_inverse=True)
        return distinct.astype(np.int64), number.reshape(-1).astype(np.int32)
    present = np.zeros(bound, dtype=np.bool_)
    present[keys] = True
    distinct = np.flatnonzero(present)
    place = np.zeros(bound, dtype=np.int32)
    place[distinct] = np.arange(len(distinct), dtype=np.int32)
    return distinct, place[keys]
