# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Cuts blocks, order and slots into the parts of the switch and of the workers."""

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.banks import BANKS, Placement
from switchgnn.planner.boundary import BoundaryEdges
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.order import SendOrder
from switchgnn.planner.plan import SwitchPart, WorkerPart

# Count, hop and Block_id have 16 bits, and the largest Count marks a released slot.
MAX_16_BITS = 65534


def switch_part(
    boundary: BoundaryEdges, block: NDArray[np.int32], placement: Placement
) -> SwitchPart:
    """The table entries.

    The h-th destination of a source in a bank is served by hop h.

    Raises:
        PlannerError: a fan-in or a number of hops that 16 bits cannot hold.
    """
    _check_16_bits("in-neighbours of one vertex in one block", placement.expected)
    source_vertex, first = np.unique(boundary.source, return_index=True)
    bank, slot = placement.bank[placement.row], placement.slot[placement.row]
    order = np.lexsort((slot, bank, boundary.source, block))
    hop = _rank_in_group(block[order], boundary.source[order], bank[order])
    _check_16_bits("passes of one source in one block", hop + 1)
    by_entry = np.lexsort((hop, boundary.source[order], block[order]))
    order, hop = order[by_entry], hop[by_entry]
    new = _starts_group(block[order], boundary.source[order], hop)
    entry = np.cumsum(new) - 1
    keys, hops = order[new], hop[new]
    entry_slot = np.zeros((len(keys), BANKS), dtype=np.uint32)
    entry_expected = np.zeros((len(keys), BANKS), dtype=np.uint16)
    entry_slot[entry, bank[order]] = slot[order]
    entry_expected[entry, bank[order]] = placement.expected[placement.row[order]]
    results = np.lexsort((placement.slot, placement.bank, placement.block))
    return SwitchPart(
        source_vertex=source_vertex.astype(np.uint32),
        source_worker=boundary.source_worker[first].astype(np.uint16),
        entry_block=block[keys].astype(np.uint16),
        entry_source=boundary.source[keys].astype(np.uint32),
        entry_hop=hops.astype(np.uint16),
        entry_last=np.append(hops, 0)[1:] == 0,
        entry_slot=entry_slot,
        entry_expected=entry_expected,
        result_block=placement.block[results].astype(np.uint16),
        result_bank=placement.bank[results].astype(np.uint8),
        result_slot=placement.slot[results].astype(np.uint32),
        result_vertex=placement.vertex[results].astype(np.uint32),
        result_worker=placement.worker[results].astype(np.uint16),
        result_expected=placement.expected[results].astype(np.uint16),
    )


def worker_part(
    owns: NDArray[np.bool_],
    boundary: BoundaryEdges,
    order: SendOrder,
    placement: Placement,
    *,
    worker: int,
    blocks: int,
) -> WorkerPart:
    """What one worker, which owns the vertices where `owns` is true, sends and receives."""
    vertices = np.flatnonzero(owns)
    sends = np.flatnonzero(owns[order.source])
    receives = np.flatnonzero(placement.worker == worker)
    numbers = np.arange(1, blocks + 2)
    counts = placement.expected[receives]
    neighbours = placement.edges[_ranges(np.cumsum(placement.expected)[receives] - counts, counts)]
    return WorkerPart(
        worker=worker,
        vertices=vertices.astype(np.int64),
        send_indptr=np.searchsorted(order.block[sends], numbers).astype(np.int64),
        send_source=order.source[sends].astype(np.uint32),
        send_row=np.searchsorted(vertices, order.source[sends]).astype(np.int64),
        receive_indptr=np.searchsorted(placement.block[receives], numbers).astype(np.int64),
        receive_vertex=placement.vertex[receives].astype(np.uint32),
        receive_row=np.searchsorted(vertices, placement.vertex[receives]).astype(np.int64),
        receive_count=counts.astype(np.uint16),
        neighbour_indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        neighbour_vertex=boundary.source[neighbours].astype(np.uint32),
        neighbour_worker=boundary.source_worker[neighbours].astype(np.uint16),
    )


def _starts_group(*keys: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Where sorted rows of keys change; the first row counts as a change."""
    new = np.zeros(len(keys[0]), dtype=bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return new


def _rank_in_group(*keys: NDArray[np.integer]) -> NDArray[np.int64]:
    """The position of each row within its group of equal, sorted keys."""
    positions = np.arange(len(keys[0]))
    starts = np.where(_starts_group(*keys), positions, 0)
    ranks: NDArray[np.int64] = positions - np.maximum.accumulate(starts)
    return ranks


def _ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """start, start + 1, ... count numbers for each start, one after another."""
    total = int(counts.sum())
    before = np.cumsum(counts) - counts
    ranges: NDArray[np.int64] = np.arange(total) + np.repeat(starts - before, counts)
    return ranges


def _check_16_bits(what: str, numbers: NDArray[np.int64]) -> None:
    largest = int(numbers.max(initial=0))
    if largest > MAX_16_BITS:
        raise PlannerError(f"{largest} {what} are too many; at most {MAX_16_BITS} fit")
