# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Cuts packets, order and slots into the parts of the switch and of the workers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.banks import BANKS, Placement
from switchgnn.planner.boundary import BoundaryEdges
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.groups import indptr_of, ranges, rank_in_group, starts_group
from switchgnn.planner.packets import Packets, Sends, wire_ids
from switchgnn.planner.plan import SwitchPart, WorkerPart

# Count, hop and Block_id have 16 bits, and the largest Count marks a released slot.
MAX_16_BITS = 65534


def switch_part(boundary: BoundaryEdges, packets: Packets, placement: Placement) -> SwitchPart:
    """The table entries.

    The h-th destination of a source in a bank is served by hop h. The switch knows all sources
    of boundary edges, also those that are never sent as they are: they may be fetched.

    Args:
        boundary: the boundary edges.
        packets: what serves them.
        placement: of the packets' destinations.

    Raises:
        PlannerError: a fan-in or a number of hops that 16 bits cannot hold.
    """
    _check_16_bits("in-neighbours of one vertex in one block", placement.expected)
    edges, block = packets.edges, packets.block
    source, source_worker = _sources(boundary, packets)
    bank, slot = placement.bank[placement.row], placement.slot[placement.row]
    order = np.lexsort((slot, bank, edges.source, block))
    hop = rank_in_group(block[order], edges.source[order], bank[order])
    _check_16_bits("passes of one source in one block", hop + 1)
    by_entry = np.lexsort((hop, edges.source[order], block[order]))
    order, hop = order[by_entry], hop[by_entry]
    new = starts_group(block[order], edges.source[order], hop)
    entry = np.cumsum(new) - 1
    keys, hops = order[new], hop[new]
    entry_slot = np.zeros((len(keys), BANKS), dtype=np.uint32)
    entry_expected = np.zeros((len(keys), BANKS), dtype=np.uint16)
    entry_slot[entry, bank[order]] = slot[order]
    entry_expected[entry, bank[order]] = placement.expected[placement.row[order]]
    results = np.lexsort((placement.slot, placement.bank, placement.block))
    return SwitchPart(
        source_vertex=wire_ids(source, packets.vertices),
        source_worker=source_worker.astype(np.uint16),
        entry_block=block[keys].astype(np.uint16),
        entry_source=wire_ids(edges.source[keys], packets.vertices),
        entry_hop=hops.astype(np.uint16),
        entry_last=np.append(hops, 0)[1:] == 0,
        entry_count=packets.count[keys].astype(np.uint16),
        entry_slot=entry_slot,
        entry_expected=entry_expected,
        result_block=placement.block[results].astype(np.uint16),
        result_bank=placement.bank[results].astype(np.uint8),
        result_slot=placement.slot[results].astype(np.uint32),
        result_vertex=placement.vertex[results].astype(np.uint32),
        result_worker=placement.worker[results].astype(np.uint16),
        result_expected=placement.expected[results].astype(np.uint16),
    )


@dataclass(frozen=True, eq=False)
class AwaitedSums:
    """What each slot adds up, whatever carries it there.

    Attributes:
        placement: the destinations of all blocks.
        boundary: the boundary edges, length E.
        edges: int64[E], the edges sorted by block, destination, source: the rows of the first
            destination, then those of the second, and so on.
    """

    placement: Placement
    boundary: BoundaryEdges
    edges: NDArray[np.int64]


def awaited_sums(
    boundary: BoundaryEdges, block: NDArray[np.int32], packets: Packets, placement: Placement
) -> AwaitedSums:
    """Say which boundary edges, in the blocks `block`, each destination sums."""
    if not len(packets.sums.block):
        return AwaitedSums(placement, boundary, placement.edges)
    edges = np.lexsort((boundary.source, boundary.destination, block))
    return AwaitedSums(placement, boundary, edges)


def worker_part(
    owns: NDArray[np.bool_],
    sends: Sends,
    sums: AwaitedSums,
    *,
    worker: int,
    blocks: int,
) -> WorkerPart:
    """What one worker, which owns the vertices where `owns` is true, sends and receives."""
    vertices = np.flatnonzero(owns)
    sent = np.flatnonzero(sends.worker == worker)
    rows = np.diff(sends.indptr)[sent]
    placement = sums.placement
    receives = np.flatnonzero(placement.worker == worker)
    numbers = np.arange(1, blocks + 2)
    counts = placement.expected[receives]
    neighbours = sums.edges[ranges(np.cumsum(placement.expected)[receives] - counts, counts)]
    return WorkerPart(
        worker=worker,
        vertices=vertices.astype(np.int64),
        send_indptr=np.searchsorted(sends.block[sent], numbers).astype(np.int64),
        send_source=wire_ids(sends.source[sent], len(owns)),
        send_row_indptr=indptr_of(rows),
        send_row=np.searchsorted(vertices, sends.vertex[ranges(sends.indptr[sent], rows)]).astype(
            np.int64
        ),
        receive_indptr=np.searchsorted(placement.block[receives], numbers).astype(np.int64),
        receive_vertex=placement.vertex[receives].astype(np.uint32),
        receive_row=np.searchsorted(vertices, placement.vertex[receives]).astype(np.int64),
        receive_count=counts.astype(np.uint16),
        neighbour_indptr=indptr_of(counts),
        neighbour_vertex=sums.boundary.source[neighbours].astype(np.uint32),
        neighbour_worker=sums.boundary.source_worker[neighbours].astype(np.uint16),
    )


def _sources(
    boundary: BoundaryEdges, packets: Packets
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Whatever a FEATURE can be of, ascending, and whose it is."""
    worker_of = np.full(packets.vertices, -1, dtype=np.int32)
    worker_of[boundary.source] = boundary.source_worker
    vertices = np.flatnonzero(worker_of >= 0)
    sums = packets.sums
    partial, first = np.unique(sums.source, return_index=True)
    source = np.concatenate([vertices.astype(np.int32), partial])
    return source, np.concatenate([worker_of[vertices], worker_of[sums.vertex[sums.indptr[first]]]])


def _check_16_bits(what: str, numbers: NDArray[np.int64]) -> None:
    largest = int(numbers.max(initial=0))
    if largest > MAX_16_BITS:
        raise PlannerError(f"{largest} {what} are too many; at most {MAX_16_BITS} fit")
