"""The boundary edges of each direction, and their blocks in one numbering."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from switchgnn.base.array_types import Bools, Int32s
from switchgnn.planner.base.arrays import concatenate, indptr_of
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.blocks.mlgp import MAX_BLOCKS
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.sending.order import SendOrder
from switchgnn.planner.sending.packets import NO_SUMS, Packets, PartialSums, ones

_NO_NUMBERS = np.empty(0, dtype=np.int32)
_NO_WORKERS = np.empty(0, dtype=np.uint8)
_NO_EDGES = BoundaryEdges(_NO_NUMBERS, _NO_NUMBERS, _NO_WORKERS, _NO_WORKERS)
_NO_PACKETS = Packets(0, _NO_EDGES, _NO_NUMBERS, ones(0), NO_SUMS)
_NO_ORDER = SendOrder(_NO_NUMBERS, _NO_NUMBERS)


@dataclass(frozen=True, eq=False)
class DirectionPlan:
    """The edges of a direction, and the decision of each planning stage; empty before its stage."""

    directions: tuple[Direction, ...]  # one, or both where they have the same edges
    boundary: BoundaryEdges  # the edges that get blocks, length E
    whole: BoundaryEdges  # those and the edges that are left to the hosts
    # [E], numbered from 1 without gaps
    block: Int32s = field(default_factory=lambda: _NO_NUMBERS)
    packets: Packets = _NO_PACKETS  # the packets that serve the edges
    order: SendOrder = _NO_ORDER  # the packets of each block in sending order

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return int(self.block.max(initial=0))


def edge_sets(
    boundary: BoundaryEdges,
    wanted: Sequence[Direction],
    left: Mapping[Direction, Bools] | None = None,
) -> list[DirectionPlan]:
    """Return the edges of each wanted direction, once where both have the same."""
    forward = boundary if left is None else boundary.into(~left[Direction.FORWARD])
    if Direction.BACKWARD not in wanted:
        return [DirectionPlan(tuple(wanted), forward, boundary)]
    transposed = boundary.transposed()
    backward = transposed if left is None else transposed.into(~left[Direction.BACKWARD])
    if transposed.same_edges(boundary) and backward.same_edges(forward):
        return [DirectionPlan(tuple(wanted), forward, boundary)]
    return [
        DirectionPlan((Direction.FORWARD,), forward, boundary),
        DirectionPlan((Direction.BACKWARD,), backward, transposed),
    ]


def join_blocks(sets: Sequence[DirectionPlan]) -> DirectionPlan:
    """Return all blocks in one numbering, set by set; edges are sorted within a set only."""
    *before, blocks = np.cumsum([0, *(each.blocks for each in sets)]).tolist()
    if blocks > MAX_BLOCKS:
        raise PlannerError(
            f"{blocks} blocks are too many, at most {MAX_BLOCKS} fit; give the switch more slots."
        )
    if len(sets) == 1:
        return sets[0]
    shifts = np.array(before, dtype=np.int32)
    return DirectionPlan(
        directions=tuple(direction for each in sets for direction in each.directions),
        whole=concatenate([each.whole for each in sets]),
        boundary=concatenate([each.boundary for each in sets]),
        block=_shifted([each.block for each in sets], shifts),
        packets=_join_packets([each.packets for each in sets], shifts),
        order=SendOrder(
            block=_shifted([each.order.block for each in sets], shifts),
            source=np.concatenate([each.order.source for each in sets]),
        ),
    )


def _join_packets(sets: Sequence[Packets], shifts: Int32s) -> Packets:
    sums = [each.sums for each in sets]
    edges = concatenate([each.edges for each in sets])
    summing = any(len(each.block) for each in sums)
    return Packets(
        vertices=sets[0].vertices,
        edges=edges,
        block=_shifted([each.block for each in sets], shifts),
        count=np.concatenate([e.count for e in sets]) if summing else ones(len(edges)),
        sums=PartialSums(
            block=_shifted([each.block for each in sums], shifts),
            source=np.concatenate([each.source for each in sums]),
            destination=np.concatenate([each.destination for each in sums]),
            indptr=indptr_of(np.concatenate([np.diff(each.indptr) for each in sums])),
            vertex=np.concatenate([each.vertex for each in sums]),
        ),
    )


def _shifted(blocks: Sequence[Int32s], shifts: Int32s) -> Int32s:
    return np.concatenate([block + n for block, n in zip(blocks, shifts, strict=True)])
