"""The arguments of `build_plan`: what is refused, and the edges that they give to the switch."""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from switchgnn.base.array_types import Bools, Int32s
from switchgnn.planner.base.arrays import distinct_pairs
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.base.lanes import BANK_LANES, banks_of_slot
from switchgnn.planner.blocks.destination import find_blocks_over
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.vertex_cut import MOST_SETS, ReplicaGraph
from switchgnn.planner.plan.banks import BANKS, BANKS_OF_SWITCHES, MOST_POOLS
from switchgnn.planner.plan.manifest import REPLICAS, STRAWMAN
from switchgnn.planner.plan.parts import DirectionPlan
from switchgnn.planner.presets import PlanContext, ResolvedStrategies, check_lanes
from switchgnn.planner.sending.replicas import contributions
from switchgnn.planner.strategies import check_blocks

# bool[V] for both directions, or one for each.
Left = Bools | Mapping[Direction, Bools]
MULTICAST = "multicast"


def check_arguments(
    strategies: ResolvedStrategies, graph: Graph, *, program: str, seed: int
) -> None:
    """Refuse numbers out of range, and sends that the graph or the strawman does not have."""
    if (strategies.send == REPLICAS) != isinstance(graph, ReplicaGraph):
        raise PlannerError(f"Workers send {REPLICAS} in a vertex cut, and only there.")
    if not re.fullmatch(r"[0-9a-f]+", program):
        raise PlannerError(f"The digest of the P4 program must be lower-case hex, not {program!r}.")
    if seed < 0:
        raise PlannerError(f"The seed must not be negative, but it is {seed}.")
    if not 0 <= strategies.weight < math.inf:
        raise PlannerError(
            f"The weight of a contribution must be a number from 0, not {strategies.weight}."
        )
    if strategies.blocks == STRAWMAN and strategies.send != MULTICAST:
        raise PlannerError(
            f"The strawman's switch forwards features unchanged: its workers send "
            f"{MULTICAST}, not {strategies.send}."
        )


def check_switch(context: PlanContext, *, strawman: bool) -> None:
    """Refuse a switch that has no room for a sum."""
    slots, banks, lanes = context.slots, context.banks, context.lanes
    if not 1 <= slots < 2**32:
        raise PlannerError(
            f"{slots} slots are not possible: give at least 1 and at most {2**32 - 1:,}."
        )
    if banks not in BANKS_OF_SWITCHES:
        raise PlannerError(f"A switch has 1, 2, 4 or 8 banks, not {banks}.")
    if not 1 <= context.pools <= MOST_POOLS:
        raise PlannerError(f"{context.pools} pools are not possible: give 1 to {MOST_POOLS}.")
    check_lanes(context)
    if context.room < 1:
        each = f" in each of {context.pools} pools" * (context.pools > 1)
        raise PlannerError(
            f"{slots} slots of {BANK_LANES} numbers have no room for one sum of {lanes}{each}: "
            f"give at least {banks_of_slot(context.slot_lanes) * context.pools}."
        )
    if strawman and context.pools * context.rows > 1:
        raise PlannerError("The strawman's switch hands out its slots to single rows, in one pool.")
    if strawman and banks_of_slot(lanes) > 1:
        raise PlannerError(
            f"The strawman's switch adds frames of at most {BANK_LANES} numbers, not {lanes}."
        )


def one_block(boundary: BoundaryEdges, slots: int, seed: int) -> Int32s:
    """Put all boundary edges into one block, even where it exceeds the slots."""
    if slots < BANKS:
        raise PlannerError(
            f"{slots} slots are too few for the strawman, whose {BANKS} banks hand out their own: "
            f"it needs at least {BANKS}."
        )
    return np.ones(len(boundary), dtype=np.int32)


def checked_room(blocks: str, context: PlanContext, formed: Sequence[DirectionPlan]) -> int:
    """Check the blocks that were formed, and return the slots that the fullest one takes."""
    slots = context.room
    if blocks == STRAWMAN:
        slots = max([1, *(len(np.unique(each.boundary.destination)) for each in formed)])
    over = find_blocks_over(blocks)
    largest = slots
    for each in formed:
        most = slots if over is None else max(len(each.boundary), 1)
        check_blocks(blocks, each.boundary, each.block, most)
        if over is not None:
            over.check(each.boundary, each.block, slots, context.workers)
        block = distinct_pairs(each.block, each.boundary.destination)[0]
        largest = max(largest, int(np.bincount(block).max(initial=0)))
    return largest


def left_to_hosts(
    left: Left | None, boundary: BoundaryEdges, vertices: int, wanted: Sequence[Direction]
) -> dict[Direction, Bools] | None:
    """Return bool[V] by direction: the destinations that are left; None: there are none."""
    if left is None:
        return None
    chosen: dict[Direction, Bools] = {}
    ends = {Direction.FORWARD: boundary.destination, Direction.BACKWARD: boundary.source}
    for direction, end in ends.items():
        chosen[direction] = np.zeros(vertices, dtype=np.bool_)
        given = left.get(direction) if isinstance(left, Mapping) else left
        if given is None or direction not in wanted:
            continue
        if given.shape != (vertices,) or given.dtype != np.bool_:
            raise PlannerError(
                f"The vertices that are left to the hosts must be bool[{vertices}], not "
                f"{given.dtype}{list(given.shape)}."
            )
        chosen[direction][end] = given[end]
    return chosen if any(each.any() for each in chosen.values()) else None


def edge_sets(
    boundary: BoundaryEdges,
    wanted: Sequence[Direction],
    left: Mapping[Direction, Bools] | None = None,
    cut: ReplicaGraph | None = None,
) -> list[DirectionPlan]:
    """Return the edges of each wanted direction, once where both have the same.

    In a vertex cut, these are the contributions of replicas, in both directions.
    """
    if cut is not None and cut.sets > MOST_SETS:
        raise PlannerError(
            f"{cut.sets:,} sets of workers share vertices, and a switch has {MOST_SETS:,} groups "
            "for them: cut edges, or plan for fewer workers."
        )
    if cut is not None:
        return [DirectionPlan(tuple(wanted), contributions(cut), boundary)]
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
