"""The slot and bank of each destination."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Int32s, Int64s
from switchgnn.planner.base.arrays import Compiled, number_pairs, sort_by_key
from switchgnn.planner.base.lanes import BANK_LANES, banks_of_slot
from switchgnn.planner.graphs.boundary import BoundaryEdges

# The number of register arrays in the P4 program; a pass touches each at most once.
BANKS: Final = 8
# The banks of other switches: each of theirs is one, two, four or eight of these.
BANKS_OF_SWITCHES = (1, 2, 4, 8)
# The pools that the slots of a switch may be divided into: as many units are in flight at once.
MOST_POOLS = 4


@dataclass(frozen=True, eq=False)
class Placement:
    """The destinations of all blocks: one row per (block, destination), D rows."""

    block: Int32s  # [D], ascending
    vertex: Int32s  # [D], ascending within a block
    worker: Int32s  # [D], the holder of the vertex
    expected: Int64s  # [D], the rows that are added up for it in this block
    bank: NDArray[np.int8]  # [D]
    slot: Int32s  # [D]; no two rows of a block share (bank, slot)
    indptr: Int64s  # [D + 1], the edges of each row in `edges`
    edges: Int32s  # [E], the edges sorted by row, then source
    packet: Int32s  # [E], the packet of each edge
    packet_block: Int32s  # [N], the packets: one per (block, source), ascending
    packet_source: Int32s  # [N], ascending within a block
    packet_passes: Int32s  # [N], the destinations of the packet in its fullest bank
    banks: int = BANKS  # of the switch; `bank` b is part of its bank b mod `banks`


def slots_per_bank(slots: int, pools: int = 1) -> int:
    """Return the size of a bank: of all, rounded up, each pool has an equal share, at least 1."""
    return pools * max(1, -(-slots // BANKS) // pools)


def room_of(slots: int, lanes: int, pools: int) -> int:
    """Return the sums of that many numbers that have a slot of one pool at once."""
    of_banks = BANKS * (slots_per_bank(slots, pools) // pools)
    return min(slots // pools, of_banks) // banks_of_slot(lanes)


def place_destinations(
    boundary: BoundaryEdges,
    block: Int32s,
    slots: int,
    count: Int64s | None = None,
    *,
    banks: int = BANKS,
    lanes: int = BANK_LANES,
) -> Placement:
    """Give each destination of each block a slot, with few passes per source.

    A source needs as many passes as it has destinations in its fullest bank. Destinations are taken
    by falling number of sources; each goes to the bank where the fewest sources need one more pass,
    then with the fewest clashes, then to the emptiest. O(E) for each of the banks.

    The tables always have eight banks; in a switch with fewer, several of them share one bank, and
    a pass adds to one slot of them all. `count` is int64[E], the rows in each packet.
    """
    (row_block, row_vertex), row = number_pairs(block, boundary.destination)
    (packet_block, packet_source), packet = number_pairs(block, boundary.source)
    indptr, edges = sort_by_key(row, len(row_block))
    del row
    fan_in = np.diff(indptr)
    wide = banks_of_slot(lanes)
    apart = banks // wide
    per_bank = slots_per_bank(slots * wide)
    order, capacity = np.lexsort((-fan_in, row_block)), per_bank * (BANKS // banks)
    chosen, offset, passes = _choose_banks(
        order, row_block, indptr, packet[edges], len(packet_block), min(apart, slots), capacity
    )
    bank = (wide * (chosen + apart * (offset // per_bank))).astype(np.int8)
    starts = indptr[:-1]
    return Placement(
        block=row_block,
        vertex=row_vertex,
        worker=boundary.destination_worker[edges[starts]].astype(np.int32),
        expected=fan_in if count is None else np.add.reduceat(count[edges], starts),
        bank=bank,
        slot=offset % per_bank,
        indptr=indptr,
        edges=edges,
        packet=packet,
        packet_block=packet_block,
        packet_source=packet_source,
        packet_passes=passes,
        banks=banks,
    )


@Compiled
def _choose_banks(  # noqa: PLR0917 - numba takes them by position
    order: Int64s,
    block: Int32s,
    indptr: Int64s,
    packet: Int32s,
    packets: int,
    banks: int,
    capacity: int,
) -> tuple[NDArray[np.int8], Int32s, Int32s]:
    bank = np.empty(len(order), dtype=np.int8)
    slot = np.empty(len(order), dtype=np.int32)
    used = np.zeros((packets, banks), dtype=np.int32)
    passes = np.zeros(packets, dtype=np.int32)
    fill = np.zeros(banks, dtype=np.int64)
    more = np.zeros(banks, dtype=np.int64)
    clashes = np.zeros(banks, dtype=np.int64)
    now = -1
    for row in order:
        if block[row] != now:
            now = block[row]
            fill[:] = 0
        more[:] = 0
        clashes[:] = 0
        for at in range(indptr[row], indptr[row + 1]):
            who = packet[at]
            for b in range(banks):
                clashes[b] += used[who, b]
                more[b] += used[who, b] == passes[who]
        best = -1
        for b in range(banks):
            if fill[b] == capacity:
                continue
            if best < 0 or (more[b], clashes[b], fill[b]) < (more[best], clashes[best], fill[best]):
                best = b
        bank[row] = best
        slot[row] = fill[best]
        fill[best] += 1
        for at in range(indptr[row], indptr[row + 1]):
            who = packet[at]
            used[who, best] += 1
            passes[who] = max(passes[who], used[who, best])
    return bank, slot, passes
