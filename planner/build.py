# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""From a graph to a plan."""

import hashlib
import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.archive import render_parts
from switchgnn.planner.banks import BANKS, place_destinations, slots_per_bank
from switchgnn.planner.blocks import MAX_BLOCKS
from switchgnn.planner.boundary import BoundaryEdges, boundary_edges
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graph import FIRST_RESERVED_ID, Graph
from switchgnn.planner.manifest import (
    PLAN_FORMAT,
    PLAN_VERSION,
    GraphRecord,
    Manifest,
    PartitionRecord,
    Prediction,
    StrategyRecord,
    seal,
)
from switchgnn.planner.order import SendOrder
from switchgnn.planner.partition import check_assignment, partition_workers
from switchgnn.planner.parts import switch_part, worker_part
from switchgnn.planner.plan import Plan, SwitchPart, WorkerPart
from switchgnn.planner.strategies import BLOCK_STRATEGIES, ORDER_STRATEGIES, find_strategy

Progress = Callable[[str], None]


def build_plan(
    graph: Graph,
    *,
    workers: int,
    slots: int,
    program: str,
    seed: int = 0,
    blocks: str = "mlgp",
    order: str = "gamr",
    assignment: NDArray[np.integer] | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Plan the exchange of one graph; the same arguments give the same plan.

    Args:
        graph: what is trained on.
        workers: how many hold it, from 1 to 128.
        slots: the aggregators of the switch. One fragment is summed at a time, so their
            number does not depend on the width of the features.
        program: a hex digest of the P4 program that the plan is for; only recorded.
        seed: of the partition, the blocks and the order; not negative.
        blocks: a key of BLOCK_STRATEGIES.
        order: a key of ORDER_STRATEGIES.
        assignment: integers[V], the worker of each vertex; None lets METIS choose.
        progress: called with a few words at the start of each step.

    Raises:
        PlannerError: arguments out of range, or a plan beyond the limits of the protocol.
    """
    _check_arguments(graph, slots, program, seed)
    make_blocks = find_strategy("block", blocks, BLOCK_STRATEGIES)
    make_order = find_strategy("order", order, ORDER_STRATEGIES)
    tell = progress or (lambda _step: None)

    tell("partition the vertices over the workers")
    if assignment is None:
        owner = partition_workers(graph, workers, seed)
    else:
        owner = check_assignment(graph, workers, assignment)
    boundary = boundary_edges(graph, owner)

    tell("form blocks")
    block = make_blocks(boundary, slots, seed)
    _check_blocks(blocks, boundary, block, slots)

    tell("order the sources")
    sends = make_order(boundary, block, seed)
    _check_order(order, boundary, block, sends)

    tell("give every destination a slot")
    placement = place_destinations(boundary, block, slots)

    tell("write the parts of the switch and the workers")
    count = int(block.max(initial=0))
    switch = switch_part(boundary, block, placement)
    parts = tuple(
        worker_part(owner == worker, boundary, sends, placement, worker=worker, blocks=count)
        for worker in range(workers)
    )
    manifest = Manifest(
        format=PLAN_FORMAT,
        version=PLAN_VERSION,
        workers=workers,
        slots=slots,
        banks=BANKS,
        slots_per_bank=slots_per_bank(slots),
        blocks=count,
        max_fan_in=boundary.max_fan_in(),
        graph=GraphRecord(graph.name, graph.vertices, len(graph.indices), graph.digest()),
        partition=PartitionRecord(
            method="metis" if assignment is None else "given",
            seed=seed,
            digest=hashlib.sha256(owner.astype("<i4").data).hexdigest(),
        ),
        strategy=StrategyRecord(blocks, order, seed),
        program=program,
        prediction=_predict(parts, boundary, switch),
        files={
            name: hashlib.sha256(data).hexdigest()
            for name, data in render_parts(switch, parts, owner)
        },
        digest="",
    )
    return Plan(seal(manifest), switch, parts, owner)


def _check_arguments(graph: Graph, slots: int, program: str, seed: int) -> None:
    if graph.vertices > FIRST_RESERVED_ID:
        raise PlannerError(
            f"graph {graph.name} has {graph.vertices} vertices; ids from 2^31 on are reserved"
        )
    if not 1 <= slots < 2**32:
        raise PlannerError(f"{slots} slots are not possible; at least 1 is")
    if not re.fullmatch(r"[0-9a-f]+", program):
        raise PlannerError(f"the digest of the P4 program must be lower-case hex, not {program!r}")
    if seed < 0:
        raise PlannerError(f"the seed must not be negative, but it is {seed}")


def _check_blocks(name: str, boundary: BoundaryEdges, block: NDArray[np.int32], slots: int) -> None:
    if block.shape != (len(boundary),):
        raise PlannerError(f"block strategy {name} must give one block for each boundary edge")
    used = np.unique(block)
    if not np.array_equal(used, np.arange(1, len(used) + 1)):
        raise PlannerError(f"block strategy {name} must number the blocks from 1 without gaps")
    if len(used) > MAX_BLOCKS:
        raise PlannerError(
            f"{len(used)} blocks are too many, at most {MAX_BLOCKS} fit; give the switch more slots"
        )
    pairs = np.unique((block.astype(np.int64) << 32) | boundary.destination)
    fullest = int(np.bincount(pairs >> 32).max(initial=0))
    if fullest > slots:
        raise PlannerError(
            f"block strategy {name} made a block of {fullest} destinations for {slots} slots"
        )


def _check_order(
    name: str, boundary: BoundaryEdges, block: NDArray[np.int32], sends: SendOrder
) -> None:
    needed = np.unique((block.astype(np.int64) << 32) | boundary.source)
    given = np.sort((sends.block.astype(np.int64) << 32) | sends.source)
    if not np.array_equal(needed, given) or np.any(np.diff(sends.block) < 0):
        raise PlannerError(
            f"order strategy {name} must give each source of each block once, blocks ascending"
        )


def _predict(
    parts: Sequence[WorkerPart], boundary: BoundaryEdges, switch: SwitchPart
) -> Prediction:
    copies_from, copies_to = boundary.host_copies()
    entries = len(switch.entry_block)
    return Prediction(
        boundary_vertices=len(boundary.vertices()),
        boundary_edges=len(boundary),
        packets_up=tuple(len(part.send_source) for part in parts),
        packets_down=tuple(len(part.receive_vertex) for part in parts),
        host_packets_up=_per_worker(copies_from, len(parts)),
        host_packets_down=_per_worker(copies_to, len(parts)),
        passes=entries,
        contributions=len(boundary),
        entries=entries,
    )


def _per_worker(rows: NDArray[np.int32], workers: int) -> tuple[int, ...]:
    return tuple(np.bincount(rows, minlength=workers).tolist())
