# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A plan: what the switch, and what each worker, has to know."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.arrays import indptr_of
from switchgnn.planner.direction import Direction
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.plan.manifest import Manifest


@dataclass(frozen=True, eq=False)
class SwitchPart:
    """What the switch adds where: the table entries of sources, packets and destinations.

    A partial sum has an entry here, with its only slot, and none in the table of the switch: it
    names its destination, whose entry has the slot.

    Attributes:
        source_vertex: uint32[N], every vertex with a remote neighbour that sums it, and behind
            them, from 2^31, the partial sums that are sent; ascending. The position is the
            source index: the place of the source in the switch's registers.
        source_worker: uint16[N], who may send it.
        entry_block: uint16[K], key of an entry; entries are sorted by block, source, hop.
        entry_source: uint32[K], key: the Src_id of a packet.
        entry_hop: uint16[K], key: 0, 1, ... for the first, second, ... pass.
        entry_last: bool[K], no further hop follows.
        entry_count: uint16[K], the Count that the packet must have.
        entry_slot: uint32[K, 8], per bank the slot to add to.
        entry_expected: uint16[K, 8], per bank the count that completes the slot; 0 where the
            bank is not used.
        result_block: uint16[R], key of a result; sorted by block, bank, slot.
        result_bank: uint8[R], key.
        result_slot: uint32[R], key.
        result_vertex: uint32[R], the destination whose sum the slot holds.
        result_worker: uint16[R], who gets it.
        result_expected: uint16[R], the count that completes the slot.
    """

    source_vertex: NDArray[np.uint32]
    source_worker: NDArray[np.uint16]
    entry_block: NDArray[np.uint16]
    entry_source: NDArray[np.uint32]
    entry_hop: NDArray[np.uint16]
    entry_last: NDArray[np.bool_]
    entry_count: NDArray[np.uint16]
    entry_slot: NDArray[np.uint32]
    entry_expected: NDArray[np.uint16]
    result_block: NDArray[np.uint16]
    result_bank: NDArray[np.uint8]
    result_slot: NDArray[np.uint32]
    result_vertex: NDArray[np.uint32]
    result_worker: NDArray[np.uint16]
    result_expected: NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class WorkerPart:
    """What one worker sends and receives, block by block.

    Rows of block b (from 1) are those from indptr[b - 1] to indptr[b].

    Attributes:
        worker: its number, from 0.
        vertices: int64[n], the ids of its vertices, ascending. The position is the row of
            the vertex in the worker's own feature matrix.
        send_indptr: int64[B + 1].
        send_source: uint32[S], the Src_id of each packet, in sending order: a vertex, or, from
            2^31, a partial sum.
        send_destination: uint32[S], the Dst_id of each packet: the vertex that a partial sum is
            for; 0 where the packet is a vertex.
        send_row_indptr: int64[S + 1].
        send_row: int64[...], the rows that each packet adds up; their number is its Count.
        receive_indptr: int64[B + 1].
        receive_vertex: uint32[Q], whose sum arrives, ascending within a block.
        receive_row: int64[Q], the row of that vertex. A vertex that occurs in several blocks
            receives partial sums, which the worker adds.
        receive_count: uint16[Q], the Count of a complete sum.
        neighbour_indptr: int64[Q + 1].
        neighbour_vertex: uint32[C], the vertices that each sum adds up in its block, ascending.
        neighbour_worker: uint16[C], who holds them.
        left_forward: int64[L], the rows whose forward sums the hosts make, ascending; None where
            the plan leaves no destination of any worker to the hosts.
        left_backward: int64[M], the same for backward sums.
    """

    worker: int
    vertices: NDArray[np.int64]
    send_indptr: NDArray[np.int64]
    send_source: NDArray[np.uint32]
    send_destination: NDArray[np.uint32]
    send_row_indptr: NDArray[np.int64]
    send_row: NDArray[np.int64]
    receive_indptr: NDArray[np.int64]
    receive_vertex: NDArray[np.uint32]
    receive_row: NDArray[np.int64]
    receive_count: NDArray[np.uint16]
    neighbour_indptr: NDArray[np.int64]
    neighbour_vertex: NDArray[np.uint32]
    neighbour_worker: NDArray[np.uint16]
    left_forward: NDArray[np.int64] | None = None
    left_backward: NDArray[np.int64] | None = None

    @property
    def leaves_any(self) -> bool:
        """Whether the plan leaves any destination, of this worker or another, to the hosts."""
        return self.left_forward is not None

    def left(self, direction: Direction) -> NDArray[np.int64]:
        """Return the rows whose sums the hosts make, ascending."""
        rows = self.left_forward if direction is Direction.FORWARD else self.left_backward
        return np.zeros(0, dtype=np.int64) if rows is None else rows


@dataclass(frozen=True, eq=False)
class Plan:
    """A whole plan; `write_plan` stores it, each reader reads its own part.

    Attributes:
        manifest: what was planned, for what, and what it will cost.
        switch: for the controller.
        workers: one part per worker, in order.
        assignment: int32[V], the worker of each vertex.
    """

    manifest: Manifest
    switch: SwitchPart
    workers: tuple[WorkerPart, ...]
    assignment: NDArray[np.int32]

    @property
    def leaves_any(self) -> bool:
        """Whether any destination is left to the hosts."""
        return any(part.leaves_any for part in self.workers)

    def left(self, direction: Direction) -> NDArray[np.bool_]:
        """Return bool[V], the destinations of a direction that are left to the hosts."""
        chosen = np.zeros(len(self.assignment), dtype=np.bool_)
        for part in self.workers:
            chosen[part.vertices[part.left(direction)]] = True
        return chosen


# How many table entries are looked at together: additions then fit a few tens of megabytes.
_TOGETHER = 1 << 18


class SlotNumbers:
    """A number for each slot that a block of the direction uses, without a search.

    Attributes:
        vertex: int64[N], whose sum the slot with that number makes; -1 for numbers of no slot.
    """

    def __init__(self, plan: Plan, direction: Direction) -> None:
        record, switch = plan.manifest.direction(direction), plan.switch
        self._first = record.first_block
        inside = _blocks(switch.result_block, record.first_block, record.last_block)
        bank = self._bank(switch.result_block[inside], switch.result_bank[inside])
        slot = switch.result_slot[inside].astype(np.int64)
        sizes = np.zeros(len(record.block_numbers) * BANKS, dtype=np.int64)
        np.maximum.at(sizes, bank, slot + 1)
        self._start = indptr_of(sizes)
        self.vertex = np.full(int(self._start[-1]), -1, dtype=np.int64)
        self.vertex[self._start[bank] + slot] = switch.result_vertex[inside]

    def of(
        self, block: NDArray[np.integer], bank: NDArray[np.integer], slot: NDArray[np.integer]
    ) -> NDArray[np.int64]:
        """Return the numbers of slots that are in use.

        `block`: integers[N], blocks of the direction; `bank`: integers[N], 0 <= bank < BANKS;
        `slot`: integers[N], in the bank; returns int64[N].
        """
        numbers: NDArray[np.int64] = self._start[self._bank(block, bank)] + slot
        return numbers

    def _bank(self, block: NDArray[np.integer], bank: NDArray[np.integer]) -> NDArray[np.int64]:
        return (block.astype(np.int64) - self._first) * BANKS + bank


def entries_of(plan: Plan, direction: Direction) -> slice:
    """Return where the table entries of a direction are."""
    record = plan.manifest.direction(direction)
    return _blocks(plan.switch.entry_block, record.first_block, record.last_block)


def slots_in_use(
    plan: Plan, direction: Direction, when: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the first and the last time that something is added to each slot, one per sum.

    `when`: integers[K], the time of each table entry of that direction; returns (first, last),
    int64[R] each, in the order of the slots' numbers.
    """
    switch, entries = plan.switch, entries_of(plan, direction)
    numbers = SlotNumbers(plan, direction)
    first = np.full(len(numbers.vertex), np.iinfo(np.int64).max, dtype=np.int64)
    last = np.full(len(numbers.vertex), -1, dtype=np.int64)
    for start in range(entries.start, entries.stop, _TOGETHER):
        some = slice(start, min(start + _TOGETHER, entries.stop))
        entry, bank = np.nonzero(switch.entry_expected[some])
        slot = switch.entry_slot[some][entry, bank]
        number = numbers.of(switch.entry_block[some][entry], bank, slot)
        time = when[some.start - entries.start : some.stop - entries.start][entry]
        np.minimum.at(first, number, time)
        np.maximum.at(last, number, time)
    used = numbers.vertex >= 0
    return first[used], last[used]


def _blocks(ascending: NDArray[np.integer], first: int, last: int) -> slice:
    low, high = np.searchsorted(ascending, [first, last + 1]).tolist()
    return slice(low, high)
