"""The data of the paper's figures 1, 7, 9 and 18, for any graph."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from switchgnn.base.array_types import Int32s, Int64s
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.build import build_resolved
from switchgnn.planner.costs.report import simulate_pool
from switchgnn.planner.graphs.boundary import BoundaryEdges, boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.workers import MAX_WORKERS, partition_workers
from switchgnn.planner.presets import PlanContext, Preset

_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_FEWEST_SLOTS = 8
# The paper's measure of skew: the share of the first fifth.
FIRST = 0.2

Progress = Callable[[str], None]


@dataclass(frozen=True)
class PartitionPoint:
    """One number of partitions (figures 1 and 9)."""

    workers: int
    boundary_vertices: int  # at an end of a boundary edge
    copies: int  # packets up of host-based exchange per fragment, and as many down
    largest_component: int  # of the boundary graph, in vertices


@dataclass(frozen=True)
class MemoryPoint:
    """One size of the switch's memory (figure 18)."""

    slots: int  # aggregators of 128 bytes
    fractions: dict[str, float]  # shares of host-based traffic by strategy, and of the strawman


def study_partitions(graph: Graph, most: int, seed: int, tell: Progress) -> list[PartitionPoint]:
    """Partition with METIS for 2, 4, 8, ... up to `most` workers, and for `most`."""
    counts = [2**power for power in range(1, MAX_WORKERS.bit_length()) if 2**power < most]
    points = []
    for workers in [*counts, most]:
        tell(f"partition for {workers} workers")
        boundary = boundary_edges(graph, partition_workers(graph, workers, seed))
        points.append(study_boundary(boundary, workers))
    return points


def study_boundary(boundary: BoundaryEdges, workers: int) -> PartitionPoint:
    """Return the point of one partition."""
    return PartitionPoint(
        workers=workers,
        boundary_vertices=len(boundary.vertices()),
        copies=boundary.host_copies()[0].size,
        largest_component=largest_component(boundary),
    )


def largest_component(boundary: BoundaryEdges) -> int:
    """Count the vertices of the largest connected part of the boundary graph."""
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow to import
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    if len(boundary) == 0:
        return 0
    ids = boundary.vertices()
    row, column = np.searchsorted(ids, boundary.source), np.searchsorted(ids, boundary.destination)
    ones = np.ones(len(row), dtype=np.int8)
    graph = csr_matrix((ones, (row, column)), shape=(len(ids), len(ids)))
    _, part = connected_components(graph, directed=False)
    return int(np.bincount(part).max())


def neighbour_counts(boundary: BoundaryEdges) -> Int64s:
    """Return the remote in-neighbours of every destination, descending (figure 7)."""
    counts = np.bincount(boundary.destination)
    return np.sort(counts[counts > 0])[::-1].astype(np.int64)


def share_of_most(counts: Int64s, share: float = FIRST) -> float:
    """Return the share of the total that the largest ones hold."""
    return float(counts[: round(share * len(counts))].sum() / counts.sum()) if len(counts) else 0.0


def study_memory(
    graph: Graph, assignment: Int32s, presets: Mapping[str, Preset], seed: int, tell: Progress
) -> list[MemoryPoint]:
    """Plan with slots for 1 % to 100 % of the boundary vertices; `assignment`: int32[V]."""
    boundary = boundary_edges(graph, assignment)
    vertices, copies = len(boundary.vertices()), boundary.host_copies()[0].size
    sizes = sorted({max(_FEWEST_SLOTS, round(share * vertices)) for share in _SHARES})
    workers = int(assignment.max()) + 1
    points = []
    for slots in sizes if copies else []:
        tell(f"plan with {slots:,} slots")
        packets = {
            name: _packets(graph, assignment, preset, slots, seed)
            for name, preset in presets.items()
        }
        packets["strawman"] = simulate_pool(boundary, slots, workers, seed).total
        fractions = {name: number / (2 * copies) for name, number in packets.items()}
        points.append(MemoryPoint(slots, fractions))
    return points


def _packets(graph: Graph, assignment: Int32s, preset: Preset, slots: int, seed: int) -> int:
    context = PlanContext(int(assignment.max()) + 1, slots)
    choice = preset(graph, context)
    plan = build_resolved(graph, choice, context, program="0", seed=seed, assignment=assignment)
    said = plan.manifest.direction(Direction.FORWARD).prediction
    return sum(said.packets_up) + sum(said.packets_down)
