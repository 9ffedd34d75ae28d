"""The part of a data set that one worker holds."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from switchgnn.base.array_types import Bools, Float32s, Int32s, Int64s, Integers
from switchgnn.base.arrays import ArrayKind, ArraysError, pack_arrays, read_arrays
from switchgnn.base.files import reason_to_keep, replacing, writing
from switchgnn.base.records import RecordError, make_record, parse_json
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.metis import partition_vertices
from switchgnn.planner.partition.vertex_cut import ReplicaGraph
from switchgnn.planner.partition.workers import check_assignment, fill_parts
from switchgnn.training.base.errors import DatasetError
from switchgnn.training.data.dataset import OF_VERTICES, Dataset
from switchgnn.training.data.weights import partial_sums

_OF_WEIGHTS = ("edge_weights", "in_weight", "factors", "partial_weights")
_SPLITS = ("train", "validation", "test")
_OF_DATASET = ("name", "classes", "multilabel", "undirected")


@dataclass(frozen=True, kw_only=True)
class PartitionedData:
    """The facts of a data set that each of its parts repeats."""

    workers: int  # the number of parts
    name: str  # the name of the data set
    classes: int  # the number of classes, C
    # see Dataset
    multilabel: bool
    undirected: bool
    total_vertices: int  # vertices of the whole graph
    # vertices of each split of the whole graph
    total_train: int
    total_validation: int
    total_test: int
    workers_per_machine: int = 1  # those of a machine have consecutive numbers


@dataclass(frozen=True, eq=False, kw_only=True)
class Partition(PartitionedData):
    """One worker's vertices, and what it knows of the other workers; a row is a local vertex."""

    worker: int  # the number of the worker
    # int64[n], ids in the whole graph, ascending; the position is the row, as in a WorkerPart of a
    # plan with the same assignment
    vertices: Int64s
    # int64[2, E], rows (source, destination) of the edges with both ends here, and of the
    # self-loops of the input; sorted by source, then destination
    edges: Int64s
    self_loop: Bools  # bool[n], whether the vertex had a self-loop in the input
    # int64[n], the edges into the vertex in the whole graph, without self-loops
    in_degree: Int64s
    out_degree: Int64s  # int64[n], the edges out of it
    features: Float32s  # float32[n, F]
    # int64[n], or float32[n, C] or bool[n, C] if `multilabel`; see Dataset
    labels: Int64s | Float32s | Bools
    # bool[n], the split
    train: Bools
    validation: Bools
    test: Bools
    # float32[E], or None if the data set has no weights
    edge_weights: Float32s | None = None
    # float32[n], the weights of the edges that in_degree counts, added up; or None
    in_weight: Float32s | None = None
    # float32[n], of the self-loops of the input, 0 where there is none; None: `edges` has them
    loop_weight: Float32s | None = None
    # float32[2, n], of sources and destinations; the weight of an edge to another worker is a
    # product of both. None: there are none, or no weights.
    factors: Float32s | None = None
    # int64[2, X], the edges to other workers as (row, number of the partial sum); None: rows are
    # sent, and no partial sums
    partial: Int64s | None = None
    partial_weights: Float32s | None = None  # float32[X], or None
    # int64[2, I], the edges from other workers, as (id of the source, row); None: not kept
    incoming: Int64s | None = None
    # int64[m], for each vertex of the worker's machine, ids ascending, which of the machine's
    # workers holds it; empty with one worker per machine
    machine: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    # int64[2, B], the edges with one end here and the other at another worker of the machine, as
    # positions in `machine`
    beside: Int64s = field(default_factory=lambda: np.empty((2, 0), np.int64))
    # bool[2, n], which rows are replicas of vertices with others, and which are mirrors, which come
    # last and are in no split; None: each vertex has one row
    replicas: Bools | None = None

    @property
    def own(self) -> int:
        """The number of rows but mirrors: of all workers together, one for each vertex."""
        return len(self.vertices) - (0 if self.replicas is None else int(self.replicas[1].sum()))

    def without_weights(self) -> "Partition":
        """Return it for layers that add up rows as they are."""
        none: dict[str, Any] = dict.fromkeys(_OF_WEIGHTS)
        return self if self.edge_weights is None else replace(self, **none)

    @property
    def partial_sums(self) -> int:
        """The number of partial sums that are sent instead of rows."""
        return 0 if self.partial is None else int(self.partial[1].max(initial=-1)) + 1

    @property
    def sent_rows(self) -> int:
        """The rows of an exchange: of each vertex of the machine, or those of partial sums, too."""
        return len(self.machine) or len(self.vertices) + self.partial_sums

    @property
    def place(self) -> Int64s:
        """int64[n], the positions of the vertices among those of the machine."""
        return np.flatnonzero(self.machine == self.worker % self.workers_per_machine)


def machines_of(workers: int, per_machine: int) -> int:
    """Return how many machines some workers are on."""
    if per_machine < 1 or workers % per_machine:
        raise DatasetError(f"{workers} workers cannot be {per_machine} on each machine.")
    return workers // per_machine


def split_machines(graph: Graph, machine: Int32s, per_machine: int, seed: int) -> Int32s:
    """Return the worker of each vertex, int32[V], from its machine: with METIS, as for machines."""
    if per_machine == 1:
        return machine
    edges, degree = np.stack(graph.edges()), np.diff(graph.indptr)
    machines = int(machine.max(initial=0)) + 1
    row, owner = _rows(machine, machines), machine[edges]
    worker: Int32s = machine * np.int32(per_machine)
    for each in range(machines):
        own = np.flatnonzero(machine == each)
        inside = row[edges[:, (owner == each).all(axis=0)]]
        part = partition_vertices(*inside, vertices=len(own), parts=per_machine, seed=seed)
        worker[own] += fill_parts(part, per_machine, degree[own])
    return check_assignment(graph, machines * per_machine, worker)


def partition_dataset(
    data: Dataset, assignment: Integers, per_machine: int = 1, *, incoming: bool = False
) -> Iterator[Partition]:
    """Yield the part of each worker, 0 first; only one of them has to be in memory at a time.

    Args:
        data: the data set, with V vertices.
        assignment: integers[V], the worker of each vertex; every worker needs one.
        per_machine: how many workers are on each machine.
        incoming: whether parts have the edges from other workers.

    Yields:
        The part of a worker.

    Raises:
        PlannerError: an assignment of another length, or one that leaves a worker without vertices.
    """
    if data.cut is not None:
        yield from _parts_of_cut(data, data.cut)
        return
    workers = int(assignment.max(initial=0)) + 1
    owner = check_assignment(data.graph, workers, assignment)
    row = _rows(owner, workers)
    edges, weights = _edges_with_self_loops(data)
    stays = owner[edges[0]] == owner[edges[1]]
    local, local_owner = edges[:, stays], owner[edges[0][stays]]
    sums = partial_sums(data.graph, owner) if weights is not None and data.factors is None else None
    if sums is not None and per_machine > 1:
        raise DatasetError(
            f"The edge weights of {data.name} are not products of factors, and workers of one "
            "machine exchange no partial sums: drop the weights, or --per-machine."
        )
    whole = _Whole(data, workers)
    shared: dict[str, Any] = {"workers_per_machine": per_machine}
    on, seat = owner // per_machine, owner.astype(np.int64) % per_machine
    row_of_machine = _rows(on, machines_of(workers, per_machine))
    near = edges[:, ~stays & (on[edges[0]] == on[edges[1]])]
    for worker in range(workers):
        vertices, mine = np.flatnonzero(owner == worker).astype(np.int64), local_owner == worker
        if weights is not None:
            shared["edge_weights"] = weights[stays][mine]
            if workers > 1 and data.factors is not None:
                shared["factors"] = data.factors[:, vertices]
            elif workers > 1 and sums is not None:
                shared |= sums.of_worker(worker, row)
        if incoming:
            into = edges[:, ~stays & (owner[edges[1]] == worker)].astype(np.int64)
            shared["incoming"] = np.stack([into[0], row[into[1]]])
        if per_machine > 1:
            shared["machine"] = seat[on == worker // per_machine]
            shared["beside"] = row_of_machine[near[:, (owner[near] == worker).any(axis=0)]]
        yield Partition(edges=row[local[:, mine]], **whole.part(worker, vertices), **shared)


class _Whole:
    """What parts have of the whole graph."""

    def __init__(self, data: Dataset, workers: int) -> None:
        self._data, graph = data, data.graph
        self._facts: dict[str, Any] = {name: getattr(data, name) for name in _OF_DATASET}
        self._facts |= {f"total_{name}": int(getattr(data, name).sum()) for name in _SPLITS}
        self._facts |= {"workers": workers, "total_vertices": data.vertices}
        self.self_loop = np.zeros(data.vertices, dtype=bool)
        self.self_loop[data.self_loops] = True
        self._rows = {name: getattr(data, name) for name in OF_VERTICES} | {
            "self_loop": self.self_loop,
            "in_degree": np.bincount(graph.indices, minlength=data.vertices).astype(np.int64),
            "out_degree": np.diff(graph.indptr),
        }
        if graph.weights is not None:
            entering = np.bincount(graph.indices, graph.weights, minlength=data.vertices)
            self._rows["in_weight"] = entering.astype(np.float32)

    def part(self, worker: int, vertices: Int64s) -> dict[str, Any]:
        """Return the facts of the data set, and the rows of a worker's vertices."""
        own = {name: rows[vertices] for name, rows in self._rows.items()}
        return {"worker": worker, "vertices": vertices, **self._facts, **own}


def _parts_of_cut(data: Dataset, cut: ReplicaGraph) -> Iterator[Partition]:
    """Yield the replicas of each worker with its edges; a self-loop is at the master."""
    edges, weights = _edges_with_self_loops(data)
    loops = edges[0] == edges[1]
    owner = np.empty(len(loops), dtype=np.int64)
    owner[~loops], owner[loops] = cut.edge_worker, cut.worker[edges[0, loops]]
    workers = int(cut.worker.max()) + 1
    whole, shared = _Whole(data, workers), np.diff(cut.indptr) > 0
    loop_weight = whole.self_loop.astype(np.float32)
    if weights is not None:
        loop_weight[edges[0, loops]] = weights[loops]
    row = np.zeros(data.vertices, dtype=np.int64)
    for worker in range(workers):
        mine, replica = owner == worker, np.flatnonzero(cut.worker == worker)
        mirror, vertices = replica >= cut.masters, cut.vertex[replica].astype(np.int64)
        row[vertices] = np.arange(len(vertices))
        local = row[edges[:, mine]]
        order = np.lexsort((local[1], local[0]))
        part = whole.part(worker, vertices)
        part |= {name: part[name] & ~mirror for name in _SPLITS}
        yield Partition(
            edges=local[:, order],
            edge_weights=None if weights is None else weights[mine][order],
            loop_weight=loop_weight[vertices],
            replicas=np.stack([shared[replica], mirror]),
            **part,
        )


def _rows(owner: Int32s, workers: int) -> Int64s:
    row = np.zeros(len(owner), dtype=np.int64)
    for worker in range(workers):
        mine = np.flatnonzero(owner == worker)
        row[mine] = np.arange(len(mine))
    return row


def _edges_with_self_loops(data: Dataset) -> tuple[Int32s, Float32s | None]:
    """Return all edges and the input's self-loops, int32[2, E], by source, destination.

    Also their weights, float32[E], if they have any.
    """
    edges, weights, loops = np.stack(data.graph.edges()), data.graph.weights, data.self_loops
    if not len(loops):
        return edges, weights
    edges = np.concatenate([edges, np.stack([loops, loops]).astype(np.int32)], axis=1)
    order = np.lexsort((edges[1], edges[0]))
    if weights is not None and data.graph.loop_weights is not None:
        weights = np.concatenate([weights, data.graph.loop_weights])[order]
    return edges[:, order], weights


FORMAT, VERSION = "switchgnn-partition", 4
_FACTS, _REMEDY = "facts", "write the partitions again"

# The arrays of a worker's file, little-endian, besides its facts in JSON.
ARRAYS: Mapping[str, ArrayKind] = {
    "vertices": ArrayKind(("<i8",), shape="n"),
    "edges": ArrayKind(("<i8",), (2,), shape="2,E", below="n"),
    "self_loop": ArrayKind(("|b1",), shape="n"),
    "in_degree": ArrayKind(("<i8",), shape="n"),
    "out_degree": ArrayKind(("<i8",), shape="n"),
    **OF_VERTICES,
    "edge_weights": ArrayKind(("<f4",), optional=True, shape="E"),
    "in_weight": ArrayKind(("<f4",), optional=True, shape="n"),
    "loop_weight": ArrayKind(("<f4",), optional=True, shape="n"),
    "factors": ArrayKind(("<f4",), (2,), optional=True, shape="2,n"),
    "partial": ArrayKind(("<i8",), (2,), optional=True, shape="2,X"),
    "partial_weights": ArrayKind(("<f4",), optional=True, shape="X"),
    "incoming": ArrayKind(("<i8",), (2,), optional=True, shape="2,I"),
    "machine": ArrayKind(("<i8",), optional=True, shape="m"),
    "beside": ArrayKind(("<i8",), (2,), optional=True, shape="2,B", below="m"),
    "replicas": ArrayKind(("|b1",), (2,), optional=True, shape="2,n"),
}
SHARED = tuple(field.name for field in fields(PartitionedData))


def partition_file(worker: int) -> str:
    """Return the name of the file of a worker's part."""
    return f"partition-{worker:03d}.safetensors"


def write_partitions(
    data: Dataset,
    assignment: Integers,
    folder: str | Path,
    per_machine: int = 1,
    *,
    incoming: bool = False,
) -> None:
    """Write each worker's part; a reader sees either all of them or none.

    Args:
        data: the data set.
        assignment: as for `partition_dataset`.
        folder: new, empty, or older partitions, which are replaced as a whole.
        per_machine: as for `partition_dataset`.
        incoming: as for `partition_dataset`.

    Raises:
        DatasetError: `folder` holds something else, or cannot be written.
        PlannerError: an assignment that does not fit; see `partition_dataset`.
    """
    target = Path(folder).resolve()
    with writing(target, "partitions ", DatasetError):
        if reason := reason_to_keep(target, "partitions", _is_ours):
            raise DatasetError(reason)
        with replacing(target) as new:
            for part in partition_dataset(data, assignment, per_machine, incoming=incoming):
                _write(part, new)


def read_partition(folder: str | Path, worker: int) -> Partition:
    """Read one worker's part; the files of other workers are not touched.

    Raises:
        DatasetError: no such part, or a damaged one.
    """
    path = Path(folder) / partition_file(worker)
    kinds = {_FACTS: ArrayKind(("|u1",)), **ARRAYS}
    try:
        arrays: dict[str, Any] = read_arrays(path, kinds, remedy=_REMEDY)
        facts = parse_json(arrays.pop(_FACTS).tobytes())
        if not isinstance(facts, dict) or facts.pop("format", None) != FORMAT:
            raise RecordError("it is no partition")
        if facts.pop("version", None) != VERSION:
            raise RecordError(f"it has another version than {VERSION}")
        return Partition(worker=worker, **arrays, **vars(make_record(PartitionedData, facts)))
    except ArraysError as error:
        raise DatasetError(str(error)) from error
    except RecordError as error:
        raise DatasetError(f"{path} cannot be used: {error}; {_REMEDY}.") from error


def _is_ours(name: str) -> bool:
    digits = name.removeprefix("partition-").removesuffix(".safetensors")
    return digits.isdecimal() and name == partition_file(int(digits))


def _write(part: Partition, folder: Path) -> None:
    facts = {"format": FORMAT, "version": VERSION} | {name: getattr(part, name) for name in SHARED}
    arrays = {_FACTS: np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)}
    arrays |= {name: getattr(part, name) for name in ARRAYS if getattr(part, name) is not None}
    (folder / partition_file(part.worker)).write_bytes(pack_arrays(arrays))
