"""The edges between workers, by block, and the rows that hosts send along some of them.

Each worker has a file with its own edges, from which it makes its schedule for any paths. The two
workers of a pair have the same edges, so both choose and number the same rows: the minimum cover
of König's theorem does not depend on the matching that it is found with.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

import numpy as np

from switchgnn.base.array_types import Bools, Int32s, Int64s, UInt8s
from switchgnn.base.arrays import ArrayKind, ArraysError, pack_arrays, read_arrays
from switchgnn.base.files import writing
from switchgnn.host.base.errors import ScheduleError
from switchgnn.host.direct.kinds import BinnedSchedule
from switchgnn.host.direct.schedule import DirectSchedule, check_workers, cut_schedule
from switchgnn.host.paths.base import BlockPaths, Path
from switchgnn.planner.base.arrays import pair_keys
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.graphs.boundary import BoundaryEdges, boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.plan.manifest import Manifest
from switchgnn.planner.plan.plan import Plan, WorkerPart
from switchgnn.planner.sending.between_hosts import fewest_rows

_CODES = {path: code for code, path in enumerate(Path)}
_BETWEEN_HOSTS = [_CODES[path] for path in (Path.HOST, Path.HOST_PARTIAL)]


@dataclass(frozen=True, eq=False)
class PathSchedule(BinnedSchedule):
    """One worker's rows for some paths.

    `copies`: by direction, the share of this worker's rows that are copies of the path HOST.
    """

    copies: Mapping[Direction, float]


@dataclass(frozen=True, eq=False)
class HostEdges:
    """The E edges with one end at a worker, and the block that each is summed in."""

    worker: int
    workers: int
    vertices: Int64s  # Int64[n], the ids of its vertices, ascending.
    edges: BoundaryEdges  # Sorted by source, then destination.
    # Int32[E] for each direction of the plan, in the order of `edges.towards`: the block among
    # those of the direction, from 1; 0 if the plan leaves the destination to the hosts.
    blocks: Mapping[Direction, Int32s]
    digest: UInt8s  # Uint8[32], that of the plan.

    @property
    def peers(self) -> frozenset[int]:
        """The workers at the other ends."""
        ends = np.union1d(self.edges.source_worker, self.edges.destination_worker)
        return frozenset(ends.tolist()) - {self.worker}

    def schedule(self, paths: BlockPaths, left: Path = Path.HOST_PARTIAL) -> PathSchedule:
        """Return the rows that this worker exchanges over the switch's links with other hosts.

        `left`: the path of what a plan leaves to the hosts.
        """
        sha = hashlib.sha256(self.digest.tobytes())
        for direction, own in sorted(paths.items()):
            sha.update(f"/{direction.value}".encode() + bytes(_CODES[path] for path in own))
        digest = np.frombuffer(sha.digest(), dtype=np.uint8)
        cut = {each: self._cut(each, (left, *paths.get(each, ())), digest) for each in Direction}
        return PathSchedule(
            forward=cut[Direction.FORWARD][0],
            backward=cut[Direction.BACKWARD][0],
            copies={each: copies for each, (_, copies) in cut.items()},
        )

    def _cut(
        self, direction: Direction, paths: Sequence[Path], digest: UInt8s
    ) -> tuple[DirectSchedule, float]:
        codes = np.array([_CODES[path] for path in paths])
        # Of a direction that the plan lacks, no sums are made.
        path = codes[self.blocks[direction]] if direction in self.blocks else codes[:0]
        chosen = np.flatnonzero(np.isin(path, _BETWEEN_HOSTS))
        edges = self.edges.towards(direction).take(chosen)
        copy = pair_keys(edges.source, edges.destination_worker, self.workers)
        copies = np.unique(copy[path[chosen] == _CODES[Path.HOST]])
        # A copy also serves the other edges to its worker.
        by_copy: Bools = np.isin(copy, copies)
        rest = np.flatnonzero(~by_copy)
        by_copy[rest] = fewest_rows(edges.take(rest))
        made = cut_schedule(
            self.worker, self.vertices, edges, workers=self.workers, by_copy=by_copy, digest=digest
        )
        return made, len(copies) / max(1, len(made.send) + made.add.width)


def host_edges(graph: Graph, plan: Plan) -> tuple[HostEdges, ...]:
    """Give each worker its edges, with the blocks of a plan for that graph."""
    workers = plan.manifest.workers
    check_workers(graph, plan.assignment, workers)
    boundary = boundary_edges(graph, plan.assignment)
    ways = {each: boundary.towards(each) for each in map(Direction, plan.manifest.directions)}
    blocks = {each: _blocks(edges, plan, each) for each, edges in ways.items()}
    digest = _digest(plan.manifest)
    made = []
    for part in plan.workers:
        own = {each: blocks[each][_at(part.worker, edges)] for each, edges in ways.items()}
        here = boundary.take(np.flatnonzero(_at(part.worker, boundary)))
        made.append(HostEdges(part.worker, workers, part.vertices, here, own, digest))
    return tuple(made)


def _at(worker: int, edges: BoundaryEdges) -> Bools:
    here: Bools = (edges.source_worker == worker) | (edges.destination_worker == worker)
    return here


def _digest(manifest: Manifest) -> UInt8s:
    return np.frombuffer(bytes.fromhex(manifest.digest), dtype=np.uint8)


def _blocks(edges: BoundaryEdges, plan: Plan, direction: Direction) -> Int32s:
    """Return int32[E], the block in which a direction sums each of its edges, from 1."""
    size, found = len(plan.assignment), np.zeros(len(edges), dtype=np.int32)
    keys = pair_keys(edges.source, edges.destination, size)
    numbers = plan.manifest.direction(direction).block_numbers
    for part in plan.workers:
        for index, block in enumerate(numbers, 1):
            sums = slice(part.receive_indptr[block - 1], part.receive_indptr[block])
            bounds = part.neighbour_indptr[sums.start : sums.stop + 1]
            source = part.neighbour_vertex[bounds[0] : bounds[-1]]
            destination = np.repeat(part.receive_vertex[sums], np.diff(bounds))
            found[np.searchsorted(keys, pair_keys(source, destination, size))] = index
    return found


_REMEDY = "write it again"
# E edges; V vertices and W workers of the plan.
_ARRAYS = {
    "source": ArrayKind(("<i4",), shape="E", below="V"),
    "destination": ArrayKind(("<i4",), shape="E", below="V"),
    "source_worker": ArrayKind(("|u1",), shape="E", below="W"),
    "destination_worker": ArrayKind(("|u1",), shape="E", below="W"),
    "digest": ArrayKind(("|u1",), shape="32"),
}


def write_edges(graph: Graph, plan: Plan, paths: Sequence[FilePath]) -> None:
    """Write the edges of each worker to a file; ScheduleError: one cannot be written."""
    for made, path in zip(host_edges(graph, plan), paths, strict=True):
        blocks = {direction.value: block for direction, block in made.blocks.items()}
        arrays = pack_arrays({**vars(made.edges), **blocks, "digest": made.digest})
        with writing(path, refuse=ScheduleError):
            path.write_bytes(arrays)


def read_edges(path: FilePath, manifest: Manifest, part: WorkerPart) -> HostEdges:
    """Read a worker's edges; ScheduleError: no such file, or not those of its part of the plan."""
    sizes = {name: 1 + len(each.block_numbers) for name, each in manifest.directions.items()}
    kinds = _ARRAYS | {name: ArrayKind(("<i4",), shape="E", below=name) for name in sizes}
    known = {**sizes, "W": manifest.workers, "V": manifest.graph.vertices}
    try:
        arrays = read_arrays(path, kinds, remedy=_REMEDY, sizes=known)
    except ArraysError as error:
        raise ScheduleError(f"Cannot read the edges: {error}") from error
    blocks = {Direction(name): arrays.pop(name) for name in sizes}
    digest, edges = arrays.pop("digest"), BoundaryEdges(**arrays)
    ends = np.stack([edges.source, edges.destination])
    here = np.stack([edges.source_worker, edges.destination_worker]) == part.worker
    # Exactly one end of each is a vertex of this worker.
    fits = np.array_equal(np.isin(ends, part.vertices), here) and np.all(here[0] != here[1])
    if not fits or not np.array_equal(digest, _digest(manifest)):
        raise ScheduleError(
            f"The edges in {path} are not those of worker {part.worker} in its plan: {_REMEDY}."
        )
    return HostEdges(part.worker, manifest.workers, part.vertices, edges, blocks, digest)
