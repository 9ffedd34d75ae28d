# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Exact balance for partitions that are balanced only roughly."""

import math

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.partition.workers import fill_parts

# The most vertices of a worker, as a share of the mean.
MOST_SHARE = 1.05


def even_shares(
    part: NDArray[np.int32], workers: int, degree: NDArray[np.integer]
) -> NDArray[np.int32]:
    """Bring every worker down to MOST_SHARE of the mean, and give each at least one vertex.

    The vertices with the fewest neighbours move from the fullest workers to the emptiest ones. No
    share of the int32[V] is then above MOST_SHARE * V / workers, rounded up.
    """
    most = math.ceil(MOST_SHARE * len(part) / workers)
    shares = np.bincount(part, minlength=workers)
    leaving = _surplus(part, shares, degree, most)
    # Every free place, by the vertices that its worker has once it is taken.
    room = np.maximum(most - shares, 0)
    worker = np.repeat(np.arange(workers, dtype=np.int32), room)
    before = np.repeat(np.cumsum(room) - room, room)
    level = np.repeat(shares, room) + np.arange(len(worker)) - before
    part = part.copy()
    part[leaving] = worker[np.argsort(level, kind="stable")[: len(leaving)]]
    return fill_parts(part, workers, degree)


def _surplus(
    part: NDArray[np.int32], shares: NDArray[np.int64], degree: NDArray[np.integer], most: int
) -> NDArray[np.int64]:
    """Return the surplus vertices of all workers, those with the fewest neighbours."""
    full = np.flatnonzero((shares > most)[part])
    ranked = full[np.lexsort((degree[full], part[full]))]
    first = np.searchsorted(part[ranked], part[ranked])
    return ranked[np.arange(len(ranked)) - first < shares[part[ranked]] - most]
