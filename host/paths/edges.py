"""The edges between workers, by block, and the rows that hosts send along some of them.

Each worker has a file with its own edges, from which it makes its schedule for any paths. The two
workers of a pair have the same edges, so both choose and number the same rows: a minimum cover of
a bipartite graph by König's theorem does not depend on the matching that it is found with.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

import numpy as np

from switchgnn.base.array_types import Bools, Int32s, Int64s, Integers, UInt8s
from switchgnn.base.arrays import ArrayKind, ArraysError, pack_arrays, read_arrays
from switchgnn.base.full_disk import writing
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

# The block of edges whose destination the plan leaves to the hosts; its path is HOST_PARTIAL.
_LEFT = 0
_CODES = {path: code for code, path in enumerate(Path)}


@dataclass(frozen=True, eq=False)
class PathSchedule(BinnedSchedule):
    """One worker's rows for some paths.

    `copies`: by direction, the share of this worker's rows that are copies of the path HOST.
    """

    copies: Mapping[Direction, float]


@dataclass(frozen=True, eq=False)
class HostEdges:
    """The E edges with one end at a worker, and the block that each is summed in.

    `blocks`: for each direction of the plan int32[E], the block of the edge among those of the
    direction, from 1; 0 if the plan leaves its destination to the hosts.
    """

    worker: int
    workers: int
    vertices: Int64s  # Int64[n], the ids of its vertices, ascending.
    edges: BoundaryEdges  # Sorted by source, then destination.
    blocks: Mapping[Direction, Int32s]
    digest: UInt8s  # Uint8[32], SHA-256 of the edges and blocks of all workers.

    @property
    def peers(self) -> frozenset[int]:
        """The workers at the other ends."""
        ends = np.union1d(self.edges.source_worker, self.edges.destination_worker)
        return frozenset(ends.tolist()) - {self.worker}

    def schedule(self, paths: BlockPaths) -> PathSchedule:
        """Return the rows of this worker along the edges that are not summed by the switch."""
        sha = hashlib.sha256(self.digest.tobytes())
        for direction, own in sorted(paths.items()):
            sha.update(f"/{direction.value}".encode() + bytes(_CODES[path] for path in own))
        digest = np.frombuffer(sha.digest(), dtype=np.uint8)
        cut = {each: self._cut(each, paths.get(each, ()), digest) for each in Direction}
        return PathSchedule(
            forward=cut[Direction.FORWARD][0],
            backward=cut[Direction.BACKWARD][0],
            copies={each: copies for each, (_, copies) in cut.items()},
        )

    def _cut(
        self, direction: Direction, paths: Sequence[Path], digest: UInt8s
    ) -> tuple[DirectSchedule, float]:
        edges, block = self.towards(direction)
        codes = np.array([_CODES[path] for path in (Path.HOST_PARTIAL, *paths)])
        path = codes[block]
        chosen = np.flatnonzero(path != _CODES[Path.SWITCH])
        edges, whole = edges.take(chosen), path[chosen] == _CODES[Path.HOST]
        copy = pair_keys(edges.source, edges.destination_worker, self.workers)
        copies = np.unique(copy[whole])
        # A copy also serves the other edges to its worker.
        by_copy: Bools = np.isin(copy, copies)
        rest = np.flatnonzero(~by_copy)
        by_copy[rest] = fewest_rows(edges.take(rest))
        made = cut_schedule(
            *(self.worker, self.vertices, edges),
            workers=self.workers,
            by_copy=by_copy,
            digest=digest,
        )
        return made, len(copies) / max(1, len(made.send) + made.add.width)

    def towards(self, direction: Direction) -> tuple[BoundaryEdges, Int32s]:
        """Return the edges that a direction sums along, and the blocks of them."""
        block = self.blocks.get(direction)
        if block is None:
            return self.edges.take(np.zeros(0, dtype=np.int64)), np.zeros(0, dtype=np.int32)
        if direction is Direction.FORWARD:
            return self.edges, block
        return self.edges.transposed(), block[_turned(self.edges)]


def host_edges(graph: Graph, plan: Plan) -> tuple[HostEdges, ...]:
    """Give each worker its edges, with the blocks of a plan for that graph."""
    workers = plan.manifest.workers
    check_workers(graph, plan.assignment, workers)
    edges = boundary_edges(graph, plan.assignment)
    blocks = {each: _blocks(edges, plan, each) for each in map(Direction, plan.manifest.directions)}
    sha = hashlib.sha256(b"switchgnn-host-edges 1\n")
    for array in (plan.assignment, edges.source, edges.destination, *blocks.values()):
        sha.update(np.ascontiguousarray(array, dtype="<i4").data)
    digest = np.frombuffer(sha.digest(), dtype=np.uint8)
    made = []
    for part in plan.workers:
        here = (edges.source_worker == part.worker) | (edges.destination_worker == part.worker)
        own = np.flatnonzero(here)
        those = {each: block[own] for each, block in blocks.items()}
        made.append(HostEdges(part.worker, workers, part.vertices, edges.take(own), those, digest))
    return tuple(made)


def _blocks(edges: BoundaryEdges, plan: Plan, direction: Direction) -> Int32s:
    """Return int32[E], the block in which a direction sums each edge."""
    turned, size = edges.towards(direction), len(plan.assignment)
    keys = pair_keys(turned.source, turned.destination, size)
    found: Int32s = np.zeros(len(edges), dtype=np.int32)
    for part in plan.workers:
        block, source, destination = _summed(part, plan.manifest, direction)
        found[np.searchsorted(keys, pair_keys(source, destination, size))] = block
    if direction is Direction.FORWARD:
        return found
    in_order: Int32s = np.empty_like(found)
    in_order[_turned(edges)] = found
    return in_order


def _summed(
    part: WorkerPart, manifest: Manifest, direction: Direction
) -> tuple[Int64s, Integers, Integers]:
    """Return block (from 1), source and destination of each edge that the switch sums."""
    numbers = manifest.direction(direction).block_numbers
    sums = part.receive_indptr[numbers.start - 1 : numbers.stop]
    inside = slice(sums[0], sums[-1])
    edges = part.neighbour_indptr[inside.start : inside.stop + 1]
    sizes = np.diff(edges)
    block = np.repeat(np.arange(1, len(sums)), np.diff(sums))
    source = part.neighbour_vertex[edges[0] : edges[-1]]
    return np.repeat(block, sizes), source, np.repeat(part.receive_vertex[inside], sizes)


def _turned(edges: BoundaryEdges) -> Int64s:
    """Return the order in which `BoundaryEdges.transposed` has edges sorted by source."""
    order: Int64s = np.argsort(edges.destination, kind="stable")
    return order


_REMEDY = "write it again"
# n of V vertices, E edges, W workers; F and B: the blocks of a direction, and one for what is left.
_ARRAYS = {
    "worker": ArrayKind(("<i8",), (0,), below="W"),
    "vertices": ArrayKind(("<i8",), shape="n", ascending=True),
    "source": ArrayKind(("<i4",), shape="E", below="V"),
    "destination": ArrayKind(("<i4",), shape="E", below="V"),
    "source_worker": ArrayKind(("|u1",), shape="E", below="W"),
    "destination_worker": ArrayKind(("|u1",), shape="E", below="W"),
    "forward": ArrayKind(("<i4",), shape="E", below="F", optional=True),
    "backward": ArrayKind(("<i4",), shape="E", below="B", optional=True),
    "digest": ArrayKind(("|u1",), shape="32"),
}


def write_edges(graph: Graph, plan: Plan, paths: Sequence[FilePath]) -> None:
    """Write the edges of each worker to a file; ScheduleError: one cannot be written."""
    for made, path in zip(host_edges(graph, plan), paths, strict=True):
        arrays = {
            "worker": np.array(made.worker),
            "vertices": made.vertices,
            **vars(made.edges),
            **{direction.value: block for direction, block in made.blocks.items()},
            "digest": made.digest,
        }
        typed = {name: array.astype(_ARRAYS[name].types[0]) for name, array in arrays.items()}
        with writing(path, refuse=ScheduleError):
            path.write_bytes(pack_arrays(typed))


def read_edges(path: FilePath, manifest: Manifest, part: WorkerPart) -> HostEdges:
    """Read a worker's edges; ScheduleError: no such file, or not those of its part of the plan."""
    sizes = {"W": manifest.workers, "V": manifest.graph.vertices}
    sizes |= {
        each.value[0].upper(): 1 + len(manifest.direction(each).block_numbers)
        for each in map(Direction, manifest.directions)
    }
    try:
        arrays = read_arrays(path, _ARRAYS, remedy=_REMEDY, sizes={"F": 1, "B": 1, **sizes})
    except ArraysError as error:
        raise ScheduleError(f"Cannot read the edges: {error}") from error
    ends = (arrays[name] for name in ("source", "destination"))
    workers = (arrays[name] for name in ("source_worker", "destination_worker"))
    found = HostEdges(
        worker=int(arrays["worker"]),
        workers=manifest.workers,
        vertices=arrays["vertices"],
        edges=BoundaryEdges(*ends, *workers),
        blocks={each: arrays[each.value] for each in Direction if each.value in arrays},
        digest=arrays["digest"],
    )
    if not _fit(found, manifest, part):
        raise ScheduleError(
            f"The edges in {path} are not those of worker {part.worker} in its plan: {_REMEDY}."
        )
    return found


def _fit(found: HostEdges, manifest: Manifest, part: WorkerPart) -> bool:
    edges = found.edges
    mine = np.stack(
        [each == part.worker for each in (edges.source_worker, edges.destination_worker)]
    )
    ends = np.stack([edges.source, edges.destination])
    if (found.worker, {each.value for each in found.blocks}) != (
        part.worker,
        set(manifest.directions),
    ):
        return False
    if not np.array_equal(found.vertices, part.vertices) or np.any(mine.sum(axis=0) != 1):
        return False
    # Exactly the ends here are vertices of this worker.
    if not np.array_equal(np.isin(ends, part.vertices), mine):
        return False
    return all(_sums_fit(found, manifest, part, each) for each in found.blocks)


def _sums_fit(found: HostEdges, manifest: Manifest, part: WorkerPart, direction: Direction) -> bool:
    edges, block = found.towards(direction)
    into = edges.destination_worker == part.worker
    left = np.unique(edges.destination[into & (block == _LEFT)])
    here = np.flatnonzero(into & (block != _LEFT))
    own = np.stack([block[here], edges.destination[here], edges.source[here]]).astype(np.int64)
    of_plan, source, destination = _summed(part, manifest, direction)
    planned = np.stack([of_plan, destination, source]).astype(np.int64)
    # The plan's are sorted in this order.
    return np.array_equal(own[:, np.lexsort(own[::-1])], planned) and np.array_equal(
        left, part.vertices[part.left(direction)]
    )
