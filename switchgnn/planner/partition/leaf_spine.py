# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A leaf-spine: workers attached to several switches, the leaves, with spines above them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.errors import PlannerError


@dataclass(frozen=True)
class LeafSpine:
    """A leaf-spine: which leaf each worker is attached to; every leaf has a link to every spine.

    Attributes:
        leaf_of_worker: the leaf of each worker; a leaf's workers have numbers in a row.
        spines: their number.
    """

    leaf_of_worker: tuple[int, ...]
    spines: int

    @property
    def workers(self) -> int:
        """Number of workers."""
        return len(self.leaf_of_worker)

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return self.leaf_of_worker[-1] + 1

    def workers_of(self, leaf: int) -> range:
        """Return the workers of a leaf."""
        first = self.leaf_of_worker.index(leaf)
        return range(first, first + self.leaf_of_worker.count(leaf))

    def spine_of(self, vertex: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the spine that completes the sums of each vertex: they take turns."""
        spine: NDArray[np.int64] = vertex.astype(np.int64) % self.spines
        return spine


def even_leaf_spine(workers: int, leaves: int, spines: int) -> LeafSpine:
    """Divide workers over leaves as evenly as can be.

    Args:
        workers: their number.
        leaves: their number, from 1 to `workers`.
        spines: their number, at least 1.

    Returns:
        The leaf-spine; leaf sizes differ by one worker at most.

    Raises:
        PlannerError: a leaf without a worker, or no leaf or no spine.
    """
    if leaves < 1 or spines < 1:
        raise PlannerError(f"{leaves} leaves and {spines} spines are too few: take one at least")
    if leaves > workers:
        raise PlannerError(
            f"{leaves} leaves are too many for {workers} workers: each leaf needs a worker"
        )
    return LeafSpine(tuple(worker * leaves // workers for worker in range(workers)), spines)
