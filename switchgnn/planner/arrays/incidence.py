# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Which source contributes to which destination, in rows of the destinations."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.arrays.rows import sort_by_key


@dataclass(frozen=True, eq=False)
class Incidence:
    """A bipartite graph of sources and destinations, both numbered from 0.

    Attributes:
        source: int32[E].
        destination: int32[E].
        sources: their number, N.
        destinations: their number, D.
    """

    source: NDArray[np.int32]
    destination: NDArray[np.int32]
    sources: int
    destinations: int

    @cached_property
    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """(indptr int64[D + 1], indices int32[E]): the sources of each destination."""
        indptr, order = sort_by_key(self.destination, self.destinations)
        return indptr, self.source[order]

    @cached_property
    def degree(self) -> NDArray[np.int64]:
        """int64[D], the sources of each destination."""
        return np.diff(self.rows[0])
