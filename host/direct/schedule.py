"""The schedules of exchanges between hosts: which worker sends which rows, and their sums.

Every boundary edge u→v is served either by a copy of u's row, which the worker of v adds, or by a
partial sum for v, which the worker of u computes. `host` and `host-partial` differ only in that
choice, one bit per edge.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from switchgnn.base.array_types import Bools, Float32s, Int32s, Int64s, Integers, UInt8s
from switchgnn.base.arrays import ArrayKind, ArraysError, pack_arrays, read_arrays
from switchgnn.base.files import writing
from switchgnn.host.base.errors import ScheduleError
from switchgnn.planner.base.arrays import indptr_of, ranges, sort_by_key
from switchgnn.planner.graphs.boundary import BoundaryEdges, boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.sending.between_hosts import rows_between


@dataclass(frozen=True, eq=False)
class RowSums:
    """Each result is the sum of some of the given rows; a sparse matrix in CSR form."""

    # Int64[N + 1]; result i adds the rows column[indptr[i]:indptr[i + 1]].
    indptr: Int64s
    column: Int64s  # Int64[K], ascending for each result.
    width: int  # The number of given rows, M.

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def sizes(self) -> Int64s:
        """int64[N], how many rows each result adds."""
        return np.diff(self.indptr)

    def apply(self, rows: Float32s) -> Float32s:
        """Return float32[N, F] for float32[M, F]; added in float32, in the order of the rows."""
        if len(self.column) == len(self) and np.all(self.sizes == 1):
            return rows[self.column]
        from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow to import

        ones = np.ones(len(self.column), dtype=np.float32)
        matrix = csr_matrix((ones, self.column, self.indptr), shape=(len(self), self.width))
        sums: Float32s = matrix @ rows
        return sums

    def rows(self, indices: Integers) -> "RowSums":
        """Return some of the results, in that order."""
        sizes = self.sizes[indices]
        entry = ranges(self.indptr[indices], sizes)
        return RowSums(indptr_of(sizes), self.column[entry], self.width)

    def transposed(self) -> "RowSums":
        """Return the sums along the same entries the other way round: M results of N rows."""
        result = np.repeat(np.arange(len(self)), self.sizes)
        return row_sums(self.column, result, len_results=self.width, width=len(self))


def row_sums(result: Integers, column: Integers, *, len_results: int, width: int) -> RowSums:
    """Make RowSums of K distinct entries in any order: result and column, each integers[K]."""
    order = np.lexsort((column, result))
    indptr = indptr_of(np.bincount(result, minlength=len_results))
    return RowSums(indptr, column[order].astype(np.int64), width)


# Worker numbers have 8 bits on the wire.
MOST_WORKERS = 256

EdgeChoice = Callable[[BoundaryEdges], Bools]


@dataclass(frozen=True, eq=False)
class DirectSchedule:
    """One worker's part."""

    worker: int
    vertices: Int64s  # Int64[n], the ids of its vertices, ascending.
    # Int64[W + 1]; the rows for worker b are those from out_indptr[b] to out_indptr[b + 1], and
    # that worker awaits them in the same order.
    out_indptr: Int64s
    send: RowSums  # Makes the S outgoing rows from the worker's n rows.
    in_indptr: Int64s  # Int64[W + 1], the same for the rows that worker b sends.
    add: RowSums  # Adds the R incoming rows to the worker's n rows.
    pairs: Int64s  # Int64[W, W], the rows from worker a to worker b.
    digest: UInt8s  # Uint8[32], SHA-256 of the schedule of all workers.
    # Whether sums are of replicas: gathered by their masters, which send them back.
    scatters: bool = False

    @property
    def workers(self) -> int:
        """The number of workers, W."""
        return len(self.out_indptr) - 1

    def transposed(self) -> "DirectSchedule":
        """Return the schedule of the sums over the transposed edges.

        Where a row was copied to, the rows for it are now added up and sent back as one: the same
        pairs of workers exchange as many rows in the other direction. With `send` and `add` as
        matrices, it is the gradient of add·(exchange)·send.
        """
        return replace(
            self,
            out_indptr=self.in_indptr,
            send=self.add.transposed(),
            in_indptr=self.out_indptr,
            add=self.send.transposed(),
            pairs=self.pairs.T,
        )


@dataclass(frozen=True, eq=False)
class _RowIds:
    """All rows that travel, sorted by sender, receiver, turn, kind and vertex."""

    sender: Int64s
    receiver: Int64s
    of_edge: Int64s


DirectSchedules = tuple[DirectSchedule, ...]


def direct_schedules(
    graph: Graph, assignment: Int32s, workers: int, *, choose: EdgeChoice
) -> DirectSchedules:
    """Cut the exchange into one schedule per worker.

    `assignment`: int32[V], the worker of each vertex. `choose`: returns bool[E] for the boundary
    edges: whether a copy of the source serves the edge, or a partial sum for the destination.
    """
    check_workers(graph, assignment, workers)
    boundary = boundary_edges(graph, assignment)
    turn = np.zeros(graph.vertices, dtype=np.int64)
    return cut_schedules(boundary, assignment, workers, by_copy=choose(boundary), turn=turn)


def check_workers(graph: Graph, assignment: Int32s, workers: int) -> None:
    """Reject a number of workers or an assignment that allows no schedule."""
    if not 1 <= workers <= MOST_WORKERS:
        raise ScheduleError(f"Between 1 and {MOST_WORKERS} workers can exchange, not {workers}.")
    if assignment.shape != (graph.vertices,) or np.any((assignment < 0) | (assignment >= workers)):
        raise ScheduleError(
            f"The assignment must give one of {workers} workers to each of "
            f"{graph.vertices} vertices."
        )


def cut_schedules(
    boundary: BoundaryEdges, assignment: Int32s, workers: int, *, by_copy: Bools, turn: Int64s
) -> tuple[DirectSchedule, ...]:
    """Cut the exchange along some edges into one schedule per worker.

    `by_copy`: bool[E], whether a copy of the source serves the edge. `turn`: int64[V], when the row
    of a vertex is ready; a pair's rows are sent in the order in which their last source is ready.
    """
    rows = _rows(boundary, by_copy, turn[boundary.source])
    digest = _digest(boundary, assignment, by_copy, turn)
    each = (np.flatnonzero(assignment == worker).astype(np.int64) for worker in range(workers))
    return tuple(
        _schedule(worker, workers, vertices, boundary, rows=rows, digest=digest)
        for worker, vertices in enumerate(each)
    )


def cut_schedule(
    worker: int,
    vertices: Int64s,
    own: BoundaryEdges,
    *,
    workers: int,
    by_copy: Bools,
    digest: UInt8s,
) -> DirectSchedule:
    """Cut one worker's schedule from its own edges, those with an end here; see `cut_schedules`.

    Workers with the same edges between them, chosen alike, number the rows of these alike.
    """
    rows = _rows(own, by_copy, np.zeros(len(own), dtype=np.int64))
    return _schedule(worker, workers, vertices, own, rows=rows, digest=digest)


def rows_per_pair(schedules: tuple[DirectSchedule, ...]) -> Int64s:
    """Return int64[W, W], the rows from worker a to worker b."""
    return np.stack([np.diff(schedule.out_indptr) for schedule in schedules])


@dataclass(frozen=True, eq=False)
class PairRows:
    """int64[W, W] rows from worker a to worker b; `sums`: partial sums of two or more of them."""

    rows: Int64s
    sums: int


def count_rows(boundary: BoundaryEdges, workers: int, choose: EdgeChoice) -> PairRows:
    """Count the rows of an exchange without making its schedules; see ``rows_per_pair``."""
    rows, sums = np.zeros((workers, workers), dtype=np.int64), 0
    indptr, order = sort_by_key(boundary.destination_worker, workers)
    for low, high in pairwise(indptr.tolist()):
        if low == high:
            continue
        part = boundary.take(order[low:high])
        by_copy = choose(part)
        rows += rows_between(part, workers, by_copy)
        pairs = part.destination.astype(np.int64) * workers + part.source_worker
        # A sum has several rows.
        sums += int(np.count_nonzero(np.unique(pairs[~by_copy], return_counts=True)[1] > 1))
    return PairRows(rows, sums)


def _rows(boundary: BoundaryEdges, by_copy: Bools, turn_of_edge: Int64s) -> _RowIds:
    vertex = np.where(by_copy, boundary.source, boundary.destination).astype(np.int64)
    pair = boundary.source_worker.astype(np.int64) * MOST_WORKERS + boundary.destination_worker
    key = (pair << 33) | (~by_copy).astype(np.int64) << 32 | vertex
    unique, of_edge = np.unique(key, return_inverse=True)
    of_edge = of_edge.reshape(-1)
    ready = np.full(len(unique), np.iinfo(np.int64).min)
    np.maximum.at(ready, of_edge, turn_of_edge)
    order = np.lexsort((ready, unique >> 33))
    index = np.empty_like(order)
    index[order] = np.arange(len(order))
    sender, receiver = np.divmod(unique[order] >> 33, MOST_WORKERS)
    return _RowIds(sender, receiver, index[of_edge])


def _schedule(
    worker: int,
    workers: int,
    vertices: Int64s,
    boundary: BoundaryEdges,
    *,
    rows: _RowIds,
    digest: UInt8s,
) -> DirectSchedule:
    sent, received = rows.sender == worker, rows.receiver == worker
    send_entries = _entries(sent, rows.of_edge, vertices, boundary.source)
    add_entries = _entries(received, rows.of_edge, vertices, boundary.destination)
    count_out, count_in = int(sent.sum()), int(received.sum())
    pair = rows.sender * workers + rows.receiver
    pairs = np.bincount(pair, minlength=workers**2).reshape(workers, workers)
    return DirectSchedule(
        worker=worker,
        vertices=vertices,
        out_indptr=indptr_of(pairs[worker]),
        send=row_sums(*send_entries, len_results=count_out, width=len(vertices)),
        in_indptr=indptr_of(pairs[:, worker]),
        add=row_sums(*reversed(add_entries), len_results=len(vertices), width=count_in),
        pairs=pairs,
        digest=digest,
    )


def _entries(
    mine: Bools, row_of_edge: Int64s, vertices: Int64s, end: Int32s
) -> tuple[Int64s, Int64s]:
    """Return the distinct pairs (index of a sent row, row of the vertex at this end)."""
    index = np.cumsum(mine) - 1
    edges = mine[row_of_edge]
    row = np.searchsorted(vertices, end[edges])
    key = np.unique(index[row_of_edge[edges]] * max(1, len(vertices)) + row)
    return key // max(1, len(vertices)), key % max(1, len(vertices))


def _digest(boundary: BoundaryEdges, assignment: Int32s, by_copy: Bools, turn: Int64s) -> UInt8s:
    sha = hashlib.sha256(b"switchgnn-host-schedule 2\n")
    for array in (assignment, boundary.source, boundary.destination):
        sha.update(np.ascontiguousarray(array, dtype="<i4").data)
    sha.update(by_copy.tobytes())
    sha.update(np.ascontiguousarray(turn, dtype="<i8").data)
    return np.frombuffer(sha.digest(), dtype=np.uint8)


_REMEDY = "write it again"
_INT64 = ("<i8",)
# The rows of a pair; sums of more would overflow, and no graph has as many.
_ROW_BITS = 40
# n vertices and W workers; s rows are sent and r are received, which add S and A entries.
_ARRAYS = {
    "worker": ArrayKind(_INT64, (0,), below="W"),
    "vertices": ArrayKind(_INT64, shape="n"),
    "out_indptr": ArrayKind(_INT64, shape="W+1", cuts="s"),
    "send_indptr": ArrayKind(_INT64, shape="s+1", cuts="S"),
    "send_column": ArrayKind(_INT64, shape="S", below="n"),
    "in_indptr": ArrayKind(_INT64, shape="W+1", cuts="r"),
    "add_indptr": ArrayKind(_INT64, shape="n+1", cuts="A"),
    "add_column": ArrayKind(_INT64, shape="A", below="r"),
    "pairs": ArrayKind(_INT64, (2,), shape="W,W"),
    "digest": ArrayKind(("|u1",), shape="32"),
    "scatters": ArrayKind(("|b1",), (0,)),
}


def schedule_file(worker: int) -> str:
    """Return the usual name of a worker's file."""
    return f"host-schedule-{worker:03d}.safetensors"


def write_schedule(schedule: DirectSchedule, path: str | Path) -> None:
    """Write one worker's schedule; ScheduleError: the file cannot be written."""
    values = dict(vars(schedule))
    for name, sums in (("send", schedule.send), ("add", schedule.add)):
        values |= {f"{name}_indptr": sums.indptr, f"{name}_column": sums.column}
    typed = {name: np.asarray(values[name], kind.types[0]) for name, kind in _ARRAYS.items()}
    with writing(Path(path), refuse=ScheduleError):
        Path(path).write_bytes(pack_arrays(typed))


def read_schedule(path: str | Path) -> DirectSchedule:
    """Read what ``write_schedule`` wrote; ScheduleError: no such file, or something else in it."""
    try:
        arrays = read_arrays(Path(path), _ARRAYS, remedy=_REMEDY)
    except ArraysError as error:
        raise ScheduleError(f"Cannot read the schedule: {error}") from error
    # Received rows take memory, and each of them is added to something.
    received, worker, pairs = int(arrays["in_indptr"][-1]), int(arrays["worker"]), arrays["pairs"]
    own = ((pairs[worker], "out_indptr"), (pairs[:, worker], "in_indptr"))
    agree = all(np.array_equal(rows, np.diff(arrays[name])) for rows, name in own)
    if received > len(arrays["add_column"]) or not agree or np.any(pairs >> _ROW_BITS):
        raise ScheduleError(f"The arrays of {path} do not fit each other: {_REMEDY}.")
    values: dict[str, Any] = {**arrays, "worker": worker, "scatters": bool(arrays["scatters"])}
    for name, width in (("send", len(arrays["vertices"])), ("add", received)):
        values[name] = RowSums(values.pop(f"{name}_indptr"), values.pop(f"{name}_column"), width)
    return DirectSchedule(**values)
