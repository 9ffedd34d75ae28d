# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A graph as shards, one for each rank of a parallel partitioner."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.arrays import ArrayKind, ArraysError, pack_arrays, read_arrays
from switchgnn.base.files import replacing
from switchgnn.base.full_disk import why_not_written
from switchgnn.planner.arrays import are_offsets
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.metis import symmetric_rows

_SHARD = re.compile(r"shard-(\d{3}|[1-9]\d{3,})\.safetensors")
_KINDS = {"starts": "<i8", "edges": "<i8", "indptr": "<i8", "indices": "<i4", "graph": "|u1"}


@dataclass(frozen=True, eq=False)
class Shard:
    """Consecutive rows of the undirected graph without self-loops, for one rank."""

    rank: int
    # [ranks + 1]; rank r has the vertices from starts[r] to starts[r + 1] - 1
    starts: NDArray[np.int64]
    indptr: NDArray[np.int64]  # [n + 1], from 0, of its n vertices
    indices: NDArray[np.int32]  # [e], the neighbours of its vertices, ids of the whole graph
    edges: int  # the ends of edges in all shards together
    graph: str  # `Graph.digest()` of the graph

    @property
    def ranks(self) -> int:
        """How many shards the graph has."""
        return len(self.starts) - 1

    @property
    def vertices(self) -> int:
        """The vertices of the whole graph."""
        return int(self.starts[-1])


def write_shards(graph: Graph, ranks: int, folder: str | Path) -> None:
    """Write the shards of a graph, `shard-000.safetensors` and so on.

    Every edge is stored in both directions, as partitioners want it. Shards have about as many
    vertices and edges together. All appear at once, replacing older shards or an empty folder.
    """
    if not 1 <= ranks <= graph.vertices:
        raise PlannerError(
            f"graph {graph.name} has {graph.vertices} vertices, so it can have from 1 to "
            f"{graph.vertices} shards, not {ranks}"
        )
    target = Path(folder).resolve()
    try:
        _check_target(target)
        with replacing(target) as new:
            _write_files(graph, ranks, new)
    except OSError as error:
        raise PlannerError(
            f"cannot write shards {folder}: {why_not_written(error, target)}"
        ) from error


def read_shard(folder: str | Path, rank: int) -> Shard:
    """Read the shard of one rank, and no other file."""
    path = Path(folder) / shard_file(rank)
    if not path.exists():
        raise PlannerError(
            f"{path} does not exist: there must be a shard for each rank; make them with "
            "switchgnn shard"
        )
    kinds = {name: ArrayKind((kind,)) for name, kind in _KINDS.items()}
    try:
        arrays = read_arrays(path, kinds, remedy="it is not a shard; make it with switchgnn shard")
    except ArraysError as error:
        raise PlannerError(str(error)) from error
    shard = Shard(
        rank=rank,
        starts=arrays["starts"],
        indptr=arrays["indptr"],
        indices=arrays["indices"],
        edges=int(arrays["edges"].sum()),
        graph=arrays["graph"].tobytes().hex(),
    )
    _check(shard, path)
    return shard


def shard_file(rank: int) -> str:
    """Return the name of a rank's file."""
    return f"shard-{rank:03d}.safetensors"


def _write_files(graph: Graph, ranks: int, folder: Path) -> None:
    indptr, indices = symmetric_rows(*graph.edges(), graph.vertices)
    starts, digest = _starts(indptr, ranks), graph.digest()
    for rank in range(ranks):
        first, last = starts[rank], starts[rank + 1]
        arrays = {
            "starts": starts,
            "edges": np.array([len(indices)]),
            "indptr": indptr[first : last + 1] - indptr[first],
            "indices": indices[indptr[first] : indptr[last]],
            "graph": np.frombuffer(bytes.fromhex(digest), dtype=np.uint8),
        }
        kinds = {name: arrays[name].astype(kind, copy=False) for name, kind in _KINDS.items()}
        (folder / shard_file(rank)).write_bytes(pack_arrays(kinds))


def _starts(indptr: NDArray[np.int64], ranks: int) -> NDArray[np.int64]:
    """Return int64[ranks + 1], cuts with about equal vertices plus edges; none is empty."""
    vertices = len(indptr) - 1
    load = indptr + np.arange(vertices + 1)
    cuts = np.searchsorted(load, load[-1] * np.arange(ranks + 1) / ranks)
    step = np.arange(ranks + 1)
    cuts = np.maximum.accumulate(cuts - step) + step
    starts: NDArray[np.int64] = np.minimum(cuts, vertices - step[::-1]).astype(np.int64)
    return starts


def _check(shard: Shard, path: Path) -> None:
    """Refuse input that would crash a C library."""
    starts, indptr, indices = shard.starts, shard.indptr, shard.indices
    if len(starts) < 2 or starts[0] != 0 or np.any(starts[1:] <= starts[:-1]):
        raise PlannerError(f"{path} is damaged: its ranks have no vertices")
    if shard.rank >= shard.ranks:
        raise PlannerError(f"{path} is one of {shard.ranks} shards, so it cannot be of that rank")
    first, last = int(starts[shard.rank]), int(starts[shard.rank + 1])
    if len(indptr) != last - first + 1 or not are_offsets(indptr, len(indices)):
        raise PlannerError(f"{path} is damaged: it does not hold the rows that it names")
    if len(indices) and (indices.min() < 0 or indices.max() >= shard.vertices):
        raise PlannerError(f"{path} is damaged: it names a vertex that the graph does not have")


def _check_target(target: Path) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise PlannerError(f"{target} is a file; give the name of a folder for the shards")
    names = (path.name for path in target.iterdir())
    strange = sorted(name for name in names if not _SHARD.fullmatch(name))
    if strange:
        raise PlannerError(
            f"{target} holds {strange[0]}, which is not a shard, so it is not overwritten; "
            "choose another name"
        )
