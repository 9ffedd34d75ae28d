# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Which source contributes to which destination, as rows of both, for strategies that count."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

# Temporary arrays are made for so many edges at a time.
_CHUNK = 1 << 22


@dataclass(frozen=True, eq=False)
class Incidence:
    """A bipartite graph of sources and destinations, both numbered from 0, in rows of each.

    Attributes:
        source: int32[E], ascending.
        destination: int32[E].
        sources: their number, N.
        destinations: their number, D.
    """

    source: NDArray[np.int32]
    destination: NDArray[np.int32]
    sources: int
    destinations: int

    @cached_property
    def _by_source(self) -> NDArray[np.int64]:
        return _indptr(self.source, self.sources)

    @cached_property
    def _by_destination(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        order = np.argsort(self.destination, kind="stable")
        return _indptr(self.destination, self.destinations), self.source[order]

    @cached_property
    def degree(self) -> NDArray[np.int64]:
        """int64[D], the sources of each destination."""
        return np.diff(self._by_destination[0])

    def pair_counts(self, part: NDArray[np.int32], parts: int) -> NDArray[np.int32]:
        """int32[N, parts], how many destinations of each part each source has."""
        counts = np.empty((self.sources, parts), dtype=np.int32)
        for low, high, first, last in _chunks(self._by_source):
            key = (self.source[first:last] - np.int64(low)) * parts + part[
                self.destination[first:last]
            ]
            size = (high - low) * parts
            counts[low:high] = np.bincount(key, minlength=size).reshape(-1, parts)
        return counts

    def count_present(self, counts: NDArray[np.int32]) -> NDArray[np.int32]:
        """int32[D, parts], how many of a destination's sources have some in each part."""
        from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow to import

        indptr, indices = self._by_destination
        present = (counts > 0).astype(np.int32)
        total = np.empty((self.destinations, counts.shape[1]), dtype=np.int32)
        for low, high, first, last in _chunks(indptr):
            ones = np.ones(last - first, dtype=np.int32)
            rows = indptr[low : high + 1] - first
            shape = (high - low, self.sources)
            uses = csr_matrix((ones, indices[first:last], rows), shape=shape)
            total[low:high] = np.asarray(uses @ present)
        return total

    def count_lone(self, counts: NDArray[np.int32], part: NDArray[np.int32]) -> NDArray[np.int64]:
        """int64[D], how many of a destination's sources have no other one in its part."""
        indptr, indices = self._by_destination
        lone = np.empty(self.destinations, dtype=np.int64)
        for low, high, first, last in _chunks(indptr):
            row = np.repeat(np.arange(high - low), np.diff(indptr[low : high + 1]))
            only = counts[indices[first:last], part[low:high][row]] == 1
            lone[low:high] = np.bincount(row[only], minlength=high - low)
        return lone


def _indptr(rows: NDArray[np.int32], size: int) -> NDArray[np.int64]:
    indptr = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=size), out=indptr[1:])
    return indptr


def _chunks(indptr: NDArray[np.int64]) -> Iterator[tuple[int, int, int, int]]:
    """(first row, row behind the last, first edge, edge behind the last) of each chunk."""
    rows, low = len(indptr) - 1, 0
    while low < rows:
        high = int(np.searchsorted(indptr, indptr[low] + _CHUNK, side="right")) - 1
        high = min(max(high, low + 1), rows)
        yield low, high, int(indptr[low]), int(indptr[high])
        low = high
