# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Edges in the rows of one of their ends: counting sorts, each in O(rows + edges)."""

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.arrays.compiled import Compiled

# A hash of an edge is below this.
_HASHES = 2**31


def indptr_of_keys(key: NDArray[np.integer], size: int) -> NDArray[np.int64]:
    """Where the rows of each key begin once they are sorted: int64[size + 1].

    Args:
        key: integers[E], 0 <= key < size.
        size: the number of rows.
    """
    indptr = np.zeros(size + 1, dtype=np.int64)
    _count(key, indptr[1:])
    return np.cumsum(indptr, out=indptr)


def sort_by_key(key: NDArray[np.integer], size: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """A stable sort by small numbers.

    Args:
        key: integers[E], 0 <= key < size; fewer than 2^31.
        size: the number of rows.

    Returns:
        (indptr int64[size + 1], order int32[E]): the edges of row k are
        order[indptr[k] : indptr[k + 1]], ascending.
    """
    indptr = indptr_of_keys(key, size)
    return indptr, _order_of(key, indptr[:-1].copy())


def sort_by_keys(*keys: NDArray[np.integer]) -> NDArray[np.int32]:
    """A stable sort by several small numbers, the most important one last: int32[E].

    As numpy.lexsort, but in O(E + largest key) for each key.
    """
    order = np.arange(len(keys[0]), dtype=np.int32)
    for key in keys:
        order = order[sort_by_key(key[order], int(key.max(initial=0)) + 1)[1]]
    return order


def strange_row(indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> tuple[str, int] | None:
    """The first row that holds its own number or is not strictly ascending, and which it is.

    Args:
        indptr: int64[V + 1].
        indices: int32[E].

    Returns:
        ("loop", row), ("order", row), or None.
    """
    kind, row = _find_strange(indptr, indices)
    return (("loop", "order")[kind], row) if kind >= 0 else None


def is_symmetric(indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> bool:
    """Whether every edge is there in both directions.

    Args:
        indptr: int64[V + 1].
        indices: int32[E], strictly ascending within each row.
    """
    return bool(_meets_its_reverse(indptr, indices, indptr[:-1].copy()))


def thin(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], share: float
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Rows of an undirected graph with a random share of its edges, the same ones each time.

    Args:
        indptr: int64[V + 1].
        indices: int32[2E].
        share: of the edges that stay, from 0 to 1.
    """
    kept = np.zeros(len(indptr), dtype=np.int64)
    few = np.empty(len(indices), dtype=np.int32)
    edges = _keep_some(indptr, indices, np.int64(share * _HASHES), kept, few)
    return kept, few[:edges].copy()


@Compiled
def _keep_some(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    below: np.int64,
    kept: NDArray[np.int64],
    few: NDArray[np.int32],
) -> int:
    """Keep edges whose ends have a hash below `below`, in whichever direction they are read."""
    edges = 0
    for u in range(len(indptr) - 1):
        for at in range(indptr[u], indptr[u + 1]):
            v = np.int64(indices[at])
            # Multipliers of Knuth's hash and of MurmurHash3; 31 bits of each product are kept.
            mixed = (min(u, v) * 2654435761 + max(u, v) * 2246822519) & 0x7FFFFFFF
            mixed = ((mixed ^ (mixed >> 15)) * 2246822519) & 0x7FFFFFFF
            if (mixed ^ (mixed >> 13)) < below:
                few[edges] = v
                edges += 1
        kept[u + 1] = edges
    return edges


@Compiled
def _count(key: NDArray[np.integer], rows: NDArray[np.int64]) -> None:
    """Add up the edges of each key; numpy.bincount would copy the keys to int64."""
    for edge in range(len(key)):
        rows[key[edge]] += 1


@Compiled
def _order_of(key: NDArray[np.integer], free: NDArray[np.int64]) -> NDArray[np.int32]:
    """The order of a stable sort; `free` is the next place of each key and is used up."""
    order = np.empty(len(key), dtype=np.int32)
    for edge in range(len(key)):
        row = key[edge]
        order[free[row]] = edge
        free[row] += 1
    return order


@Compiled
def _find_strange(indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> tuple[int, int]:
    for row in range(len(indptr) - 1):
        before = -1
        for at in range(indptr[row], indptr[row + 1]):
            here = indices[at]
            if here == row:
                return 0, row
            if here <= before:
                return 1, row
            before = here
    return -1, 0


@Compiled
def _meets_its_reverse(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], unread: NDArray[np.int64]
) -> bool:
    """Read all rows; the reverse of each edge must be what its other row has next.

    As rows are ascending and taken in ascending order, the edges that lead to a row come in
    the order of that row.
    """
    for u in range(len(indptr) - 1):
        for at in range(indptr[u], indptr[u + 1]):
            v = indices[at]
            mine = unread[v]
            if mine == indptr[v + 1] or indices[mine] != u:
                return False
            unread[v] = mine + 1
    return True
