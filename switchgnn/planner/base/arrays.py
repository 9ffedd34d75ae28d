"""Compressed rows, distinct keys and groups of equal keys; counting sorts in O(rows + edges)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Bools, Int32s, Int64s, Integers
from switchgnn.base.files import reason_to_distrust

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

# For fewer numbers Python finishes before numba is imported.
_FEW = 1 << 15


class Compiled(Generic[_Parameters, _Result]):
    """A function of arrays and numbers that numba compiles when the arrays are large.

    Compilation takes seconds, once; loading the cached code takes most of a second, so small arrays
    are left to Python. The results are the same.
    """

    def __init__(self, function: Callable[_Parameters, _Result]) -> None:
        self.interpreted = function
        update_wrapper(self, function)

    @cached_property
    def machine(self) -> Callable[_Parameters, _Result]:
        """The compiled function."""
        import numba  # noqa: PLC0415 - slow to import, and small graphs do without

        try:
            Path("~").expanduser()  # without a home numba would make a folder called ~ here
            kept = numba.njit(cache=True)(self.interpreted)
        except RuntimeError:  # or neither the source's folder nor the user's cache can be written
            kept = None
        if kept is None or self._is_foreign(Path(str(kept.stats.cache_path))):
            return cast("Callable[_Parameters, _Result]", numba.njit(self.interpreted))
        return cast("Callable[_Parameters, _Result]", kept)

    def _is_foreign(self, cache: Path) -> bool:
        if cache.parent == Path(self.interpreted.__code__.co_filename).parent:
            return False
        try:
            return reason_to_distrust(cache) is not None
        except OSError:
            return True

    def __call__(self, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        """Call it, compiled if the arrays are large."""
        numbers = sum(each.size for each in args if isinstance(each, np.ndarray))
        return (self.machine if numbers > _FEW else self.interpreted)(*args, **kwargs)


# A hash of an edge is below this.
_HASHES = 2**31


def indptr_of_keys(key: Integers, size: int) -> Int64s:
    """Return where the sorted rows of each key begin, int64[size + 1]; 0 <= key < size."""
    indptr = np.zeros(size + 1, dtype=np.int64)
    _count(key, indptr[1:])
    return np.cumsum(indptr, out=indptr)


def sort_by_key(key: Integers, size: int) -> tuple[Int64s, Int32s]:
    """Sort stably by numbers 0 <= key < size.

    Returns (indptr int64[size + 1], order int32[E]); row k is order[indptr[k] : indptr[k + 1]].
    """
    indptr = indptr_of_keys(key, size)
    return indptr, _order_of(key, indptr[:-1].copy())


def sort_by_keys(*keys: Integers) -> Int32s:
    """Do what numpy.lexsort does, int32[E], in O(E + largest key) for each key."""
    order = np.arange(len(keys[0]), dtype=np.int32)
    for key in keys:
        order = order[sort_by_key(key[order], int(key.max(initial=0)) + 1)[1]]
    return order


def strange_row(indptr: Int64s, indices: Int32s) -> tuple[str, int] | None:
    """Return ("loop", row) or ("order", row) for the first row that is not simple and ascending."""
    kind, row = _find_strange(indptr, indices)
    return (("loop", "order")[kind], row) if kind >= 0 else None


def is_symmetric(indptr: Int64s, indices: Int32s) -> bool:
    """Return whether every edge is there in both directions; rows must ascend strictly."""
    return bool(_meets_its_reverse(indptr, indices, indptr[:-1].copy()))


def symmetric_rows(source: Integers, destination: Integers, vertices: int) -> tuple[Int64s, Int32s]:
    """Return the rows of the undirected simple graph that has these edges.

    Edges that are these rows already are not copied. Returns (indptr int64[vertices + 1], indices
    int32[2E']), rows ascending.
    """
    u = source.astype(np.int32, copy=False)
    v = destination.astype(np.int32, copy=False)
    if not np.any(u[1:] < u[:-1]):
        indptr = indptr_of_keys(u, vertices)
        if strange_row(indptr, v) is None and is_symmetric(indptr, v):
            return indptr, v
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow to import

    proper = u != v
    u, v = u[proper], v[proper]
    ones = np.ones(len(u), dtype=np.bool_)
    rows = csr_matrix((ones, (u, v)), shape=(vertices, vertices))
    both = csr_matrix(rows + rows.T)
    both.sort_indices()
    return both.indptr.astype(np.int64), both.indices.astype(np.int32, copy=False)


def thin(indptr: Int64s, indices: Int32s, share: float) -> tuple[Int64s, Int32s]:
    """Keep a share of the edges of an undirected graph, the same ones each time.

    `indptr` int64[V + 1] and `indices` int32[2E]; returns the same for the edges that stay.
    """
    kept = np.zeros(len(indptr), dtype=np.int64)
    few = np.empty(len(indices), dtype=np.int32)
    edges = _keep_some(indptr, indices, np.int64(share * _HASHES), kept, few)
    return kept, few[:edges].copy()


@Compiled
def _keep_some(indptr: Int64s, indices: Int32s, below: np.int64, kept: Int64s, few: Int32s) -> int:
    """Keep edges whose hash is under `below`; it is the same in both directions."""
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
def _count(key: Integers, rows: Int64s) -> None:
    """Count the edges of each key; numpy.bincount would copy the keys to int64."""
    for edge in range(len(key)):
        rows[key[edge]] += 1


@Compiled
def _order_of(key: Integers, free: Int64s) -> Int32s:
    """Return the order of a stable sort; consumes `free`, the next index of each key."""
    order = np.empty(len(key), dtype=np.int32)
    for edge in range(len(key)):
        row = key[edge]
        order[free[row]] = edge
        free[row] += 1
    return order


@Compiled
def _find_strange(indptr: Int64s, indices: Int32s) -> tuple[int, int]:
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
def _meets_its_reverse(indptr: Int64s, indices: Int32s, unread: Int64s) -> bool:
    """Return whether the reverse of each edge is what its other row has next, as rows ascend."""
    for u in range(len(indptr) - 1):
        for at in range(indptr[u], indptr[u + 1]):
            v = indices[at]
            mine = unread[v]
            if mine == indptr[v + 1] or indices[mine] != u:
                return False
            unread[v] = mine + 1
    return True


def starts_group(*keys: Integers) -> Bools:
    """Return where sorted rows of keys change; the first row counts as a change."""
    new = np.zeros(len(keys[0]), dtype=bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return new


def rank_in_group(*keys: Integers) -> Int64s:
    """Return the position of each row within its group of equal, sorted keys."""
    positions = np.arange(len(keys[0]))
    starts = np.where(starts_group(*keys), positions, 0)
    ranks: Int64s = positions - np.maximum.accumulate(starts)
    return ranks


def rank_within(groups: Sequence[NDArray[Any]], by: Sequence[NDArray[Any]] = ()) -> Int64s:
    """Return the rank of each row, in no order, within its group of equal keys.

    Rows ascend by the last key of `by`, then by the one before it, then as they come.
    """
    order = np.lexsort((*by, *groups))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = rank_in_group(*(keys[order] for keys in groups))
    return rank


def ranges(starts: Int64s, counts: Int64s) -> Int64s:
    """Return start, start + 1, ... count numbers for each start, one after another."""
    total = int(counts.sum())
    before = np.cumsum(counts) - counts
    joined: Int64s = np.arange(total) + np.repeat(starts - before, counts)
    return joined


def indptr_of(sizes: Integers) -> Int64s:
    """Return where each group begins, and where the last one ends."""
    indptr = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=indptr[1:])
    return indptr


_Record = TypeVar("_Record", bound="DataclassInstance")


def concatenate(records: Sequence[_Record]) -> _Record:
    """Concatenate dataclasses of arrays, field by field."""
    names = [field.name for field in fields(records[0])]
    return type(records[0])(*(np.concatenate([getattr(r, n) for r in records]) for n in names))


# The most cells that a table may have per key, and in all.
_CELLS_PER_KEY, _CELLS = 4, 1 << 22


def number_keys(keys: Integers, bound: int) -> tuple[Int64s, Int32s]:
    """Return the distinct keys, int64[N], and the index of each key among them, int32[E].

    Does what numpy.unique does; 0 <= key < bound. A small bound takes a table in O(keys + bound).
    """
    if not _fits_table(keys, bound):
        distinct, number = np.unique(keys, return_inverse=True)
        return distinct.astype(np.int64), number.reshape(-1).astype(np.int32)
    distinct = distinct_keys(keys, bound)
    index = np.zeros(bound, dtype=np.int32)
    index[distinct] = np.arange(len(distinct), dtype=np.int32)
    return distinct, index[keys]


def number_ids(ids: Int32s) -> tuple[Int64s, Int32s]:
    """Return `number_keys` of vertex ids."""
    return number_keys(ids, int(ids.max(initial=-1)) + 1)


def number_pairs(one: Integers, other: Integers) -> tuple[tuple[Int32s, Int32s], Int32s]:
    """Return `distinct_pairs`, and the index of each pair among them, int32[E]."""
    size = int(other.max(initial=0)) + 1
    bound = (int(one.max(initial=0)) + 1) * size
    pairs, number = number_keys(pair_keys(one, other, size), bound)
    return _split(pairs, size), number


def distinct_pairs(one: Integers, other: Integers) -> tuple[Int32s, Int32s]:
    """Return the distinct pairs of numbers from 0, sorted: int32[N] each."""
    size = int(other.max(initial=0)) + 1
    bound = (int(one.max(initial=0)) + 1) * size
    return _split(distinct_keys(pair_keys(one, other, size), bound), size)


def pair_keys(one: Integers, other: Integers, size: int) -> Int64s:
    """Return one number for each pair, in the order of the pairs; 0 <= other < size."""
    keys = one.astype(np.int64)
    keys *= size
    keys += other
    return keys


def _split(pairs: Int64s, size: int) -> tuple[Int32s, Int32s]:
    first, second = np.divmod(pairs, size)
    return first.astype(np.int32), second.astype(np.int32)


def _fits_table(keys: Integers, bound: int) -> bool:
    return bound <= max(_CELLS_PER_KEY * len(keys), _CELLS)


def distinct_keys(keys: Integers, bound: int) -> Int64s:
    """Return the distinct keys, ascending, int64[N]; 0 <= key < bound."""
    if not _fits_table(keys, bound):
        return np.unique(keys).astype(np.int64)
    present = np.zeros(bound, dtype=np.bool_)
    present[keys] = True
    return np.flatnonzero(present)


@dataclass(frozen=True, eq=False)
class Incidence:
    """A bipartite graph of N sources and D destinations, both numbered from 0."""

    source: Int32s  # [E]
    destination: Int32s  # [E]
    source_id: Int64s  # [N], vertex ids, ascending
    destination_id: Int64s  # [D], vertex ids, ascending

    @property
    def sources(self) -> int:
        """The number of sources, N."""
        return len(self.source_id)

    @property
    def destinations(self) -> int:
        """The number of destinations, D."""
        return len(self.destination_id)

    @cached_property
    def rows(self) -> tuple[Int64s, Int32s]:
        """(indptr int64[D + 1], indices int32[E]): the sources of each destination."""
        indptr, order = sort_by_key(self.destination, self.destinations)
        return indptr, self.source[order]

    @cached_property
    def degree(self) -> Int64s:
        """int64[D], the sources of each destination."""
        return np.diff(self.rows[0])
