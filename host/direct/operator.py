# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sums of rows as a sparse matrix of ones."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class RowSums:
    """Each result is the sum of some of the given rows; a sparse matrix in CSR form.

    Attributes:
        indptr: int64[N + 1]; result i adds the rows column[indptr[i]:indptr[i + 1]].
        column: int64[K], ascending for each result.
        width: the number of given rows, M.
    """

    indptr: NDArray[np.int64]
    column: NDArray[np.int64]
    width: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """int64[N], how many rows each result adds."""
        return np.diff(self.indptr)

    def apply(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return float32[N, F] for float32[M, F]; added in float32, in the order of the rows."""
        if len(self.column) == len(self) and np.all(self.sizes == 1):
            return rows[self.column]
        from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow to import

        ones = np.ones(len(self.column), dtype=np.float32)
        matrix = csr_matrix((ones, self.column, self.indptr), shape=(len(self), self.width))
        sums: NDArray[np.float32] = matrix @ rows
        return sums

    def rows(self, places: NDArray[np.integer]) -> "RowSums":
        """Return some of the results, in that order."""
        sizes = self.sizes[places]
        indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        entry = np.arange(indptr[-1]) + np.repeat(self.indptr[places] - indptr[:-1], sizes)
        return RowSums(indptr, self.column[entry], self.width)

    def transposed(self) -> "RowSums":
        """Return the sums along the same entries the other way round: M results of N rows."""
        result = np.repeat(np.arange(len(self)), self.sizes)
        return row_sums(self.column, result, len_results=self.width, width=len(self))


def row_sums(
    result: NDArray[np.integer], column: NDArray[np.integer], *, len_results: int, width: int
) -> RowSums:
    """Make RowSums of a list of different entries in any order.

    Args:
        result: integers[K], which result.
        column: integers[K], which row it adds.
        len_results: the number of results.
        width: the number of given rows.

    Returns:
        The sums.
    """
    order = np.lexsort((column, result))
    indptr = np.zeros(len_results + 1, dtype=np.int64)
    np.cumsum(np.bincount(result, minlength=len_results), out=indptr[1:])
    return RowSums(indptr, column[order].astype(np.int64), width)
