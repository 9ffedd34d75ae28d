"""Edge sets in one numbering of blocks, and the parts of switch and workers made of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Bools, Int32s, Int64s, Integers, UInt8s, UInt16s, UInt32s
from switchgnn.planner.base import arrays
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.blocks.mlgp import MAX_BLOCKS
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.plan.banks import BANKS, Placement
from switchgnn.planner.plan.plan import SwitchPart, WorkerPart
from switchgnn.planner.sending.bundles import Bundles, bundle_ids
from switchgnn.planner.sending.order import SendOrder
from switchgnn.planner.sending.packets import NO_SUMS, Packets, PartialSums, Sends, ones, wire_ids

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


def join_blocks(sets: Sequence[DirectionPlan]) -> DirectionPlan:
    """Return all blocks in one numbering, set by set; edges are sorted within a set only."""
    *before, blocks = np.cumsum([0, *(each.blocks for each in sets)]).tolist()
    if blocks > MAX_BLOCKS:
        raise PlannerError(
            f"{blocks} blocks are too many, at most {MAX_BLOCKS} fit; give the switch more slots."
        )
    if len(sets) == 1:
        return sets[0]
    sets = [_shifted(each, by) for each, by in zip(sets, before, strict=True)]
    return DirectionPlan(
        directions=tuple(direction for each in sets for direction in each.directions),
        whole=arrays.concatenate([each.whole for each in sets]),
        boundary=arrays.concatenate([each.boundary for each in sets]),
        block=np.concatenate([each.block for each in sets]),
        packets=_join_packets([each.packets for each in sets]),
        order=arrays.concatenate([each.order for each in sets]),
    )


def _shifted(each: DirectionPlan, by: int) -> DirectionPlan:
    """Return a set whose blocks come after that many others."""
    packets, order = each.packets, each.order
    sums = replace(packets.sums, block=packets.sums.block + by)
    return replace(
        each,
        block=each.block + by,
        packets=replace(packets, block=packets.block + by, sums=sums),
        order=replace(order, block=order.block + by),
    )


def _join_packets(sets: Sequence[Packets]) -> Packets:
    edges, sums = arrays.concatenate([each.edges for each in sets]), [each.sums for each in sets]
    summing = any(len(each.block) for each in sums)
    sizes = np.concatenate([np.diff(each.indptr) for each in sums])
    return Packets(
        vertices=sets[0].vertices,
        edges=edges,
        block=np.concatenate([each.block for each in sets]),
        count=np.concatenate([e.count for e in sets]) if summing else ones(len(edges)),
        sums=replace(arrays.concatenate(sums), indptr=arrays.indptr_of(sizes)),
    )


# Count, hop and Block_id have 16 bits, and the largest Count marks a released slot.
MAX_16_BITS = 65534


def switch_part(
    boundary: BoundaryEdges, packets: Packets, placement: Placement, bundles: Bundles | None = None
) -> SwitchPart:
    """Make the table entries of a single switch.

    Hop h of a source serves its h-th destination in each bank; so does that of a bundle. The switch
    knows all sources of boundary edges, since any may be fetched.
    """
    sources = _sources(boundary, packets.vertices, NO_SUMS if bundles else packets.sums)
    ids, senders = wire_ids(sources[0], packets.vertices), sources[1]
    if bundles is not None:
        ids = np.concatenate([ids, bundle_ids(bundles.numbers)])
        senders = np.concatenate([senders, bundles.senders])
    return fill_tables(
        ids,
        senders.astype(np.uint16),
        packets.count if bundles is None else bundles.count,
        placement,
        vertices=packets.vertices,
        row=None if bundles is None else bundles.row,
    )


def fill_tables(
    source_vertex: UInt32s,
    source_worker: UInt16s,
    count: Int64s,
    placement: Placement,
    *,
    vertices: int,
    row: UInt8s | None = None,
) -> SwitchPart:
    """Make the entries of a switch for the packets of a placement.

    `source_vertex`: uint32[N], all Src_ids of a FEATURE, ascending; `source_worker`: uint16[N],
    their senders; `count`: int64[C], the rows in the packet of each edge; `row`: uint8[C], the row
    of a bundle that the edge adds; None: there are no bundles.
    """
    _check_16_bits("in-neighbours of one vertex in one block", placement.expected)
    passes = placement.packet_passes
    _check_16_bits("passes of one source in one block", passes)
    first = arrays.indptr_of(passes)[:-1]
    keys = np.repeat(np.arange(len(passes), dtype=np.int32), passes)
    hops = np.arange(len(keys)) - first[keys]
    counts = np.empty(len(passes), dtype=np.uint16)
    counts[placement.packet] = count
    results = slot_order(placement)
    numbers = placement.packet_source
    ids = wire_ids(numbers, vertices) if row is None else bundle_ids(numbers)
    slots = placement.bank, placement.slot, placement.expected, placement.indptr
    edges, packet = placement.edges, placement.packet[placement.edges]
    packet_row = np.zeros(len(edges), np.uint8) if row is None else row[edges]
    entry_slot, entry_expected, entry_row = _fill_entries(
        results, *slots, packet, first, len(keys), packet_row, placement.banks
    )
    return SwitchPart(
        source_vertex=source_vertex,
        source_worker=source_worker,
        entry_block=placement.packet_block[keys].astype(np.uint16),
        entry_source=ids[keys],
        entry_hop=hops.astype(np.uint16),
        entry_last=np.append(hops, 0)[1:] == 0,
        entry_count=counts[keys],
        entry_slot=entry_slot,
        entry_expected=entry_expected,
        entry_row=entry_row,
        result_block=placement.block[results].astype(np.uint16),
        result_bank=placement.bank[results].astype(np.uint8),
        result_slot=placement.slot[results].astype(np.uint32),
        result_vertex=placement.vertex[results].astype(np.uint32),
        result_worker=placement.worker[results].astype(np.uint16),
        result_expected=placement.expected[results].astype(np.uint16),
    )


def slot_order(placement: Placement) -> Int64s:
    """Return the rows of a placement by block, bank and slot, as the results of a switch."""
    return np.lexsort((placement.slot, placement.bank, placement.block))


@dataclass(frozen=True, eq=False)
class AwaitedSums:
    """The edges in the sum of each slot."""

    placement: Placement  # the destinations of all blocks
    boundary: BoundaryEdges  # the boundary edges, length E
    indptr: Int64s  # [D + 1], the edges of each sum in `edges`
    edges: Int32s  # [E], the edges sorted by block, destination, source
    shared: bool = False  # whether the holders of all sources await a sum: replicas of one vertex

    def of(self, worker: int) -> tuple[Int64s, Int32s]:
        """Return the rows of the placement that a worker awaits, and its own vertex of each."""
        if not self.shared:
            mine = np.flatnonzero(self.placement.worker == worker)
            return mine, self.placement.vertex[mine]
        own = np.flatnonzero(self.boundary.source_worker[self.edges] == worker)
        return np.searchsorted(self.indptr, own, "right") - 1, self.boundary.source[self.edges[own]]


def awaited_sums(
    boundary: BoundaryEdges, block: Int32s, packets: Packets, placement: Placement
) -> AwaitedSums:
    """Return the boundary edges of the sum of each destination in each block."""
    if not len(packets.sums.block):
        return AwaitedSums(placement, boundary, placement.indptr, placement.edges)
    (rows, _), row = arrays.number_pairs(block, boundary.destination)
    return AwaitedSums(placement, boundary, *arrays.sort_by_key(row, len(rows)))


def worker_part(
    owns: Bools,
    sends: Sends,
    sums: AwaitedSums,
    *,
    worker: int,
    workers: int,
    blocks: int,
    rows: int = 1,
    left: Mapping[Direction, Bools] | None = None,
) -> WorkerPart:
    """Return the sends and receives of one worker; `owns` is bool[V], its vertices.

    A packet carries `rows`, if there are as many.
    """
    vertices = np.flatnonzero(owns)
    rows_left = {} if left is None else {d: np.flatnonzero(v[vertices]) for d, v in left.items()}
    sent = np.flatnonzero(sends.worker == worker)
    sizes = np.diff(sends.indptr)[sent]
    placement = sums.placement
    receives, own = sums.of(worker)
    numbers = np.arange(1, blocks + 2)
    counts = np.diff(sums.indptr)[receives]
    neighbours = sums.edges[arrays.ranges(sums.indptr[receives], counts)]
    send_indptr = np.searchsorted(sends.block[sent], numbers).astype(np.int64)
    source, place = wire_ids(sends.source[sent], len(owns)), np.arange(len(sent))
    if rows > 1:
        each = -(-np.diff(send_indptr) // rows)
        bundle = arrays.ranges(np.zeros(blocks, dtype=np.int64), each)
        source = bundle_ids((bundle * workers + worker).astype(np.int32))
        within = place - np.repeat(send_indptr[:-1], np.diff(send_indptr))
        before = arrays.indptr_of(each)
        place = np.repeat(before[:-1], np.diff(send_indptr)) * rows + within
        send_indptr = before
    row_sizes, destination = np.zeros((2, len(source) * rows), dtype=np.int64)
    row_sizes[place], destination[place] = sizes, sends.destination[sent]
    return WorkerPart(
        worker=worker,
        vertices=vertices.astype(np.int64),
        send_indptr=send_indptr,
        send_source=source,
        send_destination=destination.astype(np.uint32),
        send_row_indptr=arrays.indptr_of(row_sizes),
        send_row=np.searchsorted(
            vertices, sends.vertex[arrays.ranges(sends.indptr[sent], sizes)]
        ).astype(np.int64),
        receive_indptr=np.searchsorted(placement.block[receives], numbers).astype(np.int64),
        receive_vertex=placement.vertex[receives].astype(np.uint32),
        receive_row=np.searchsorted(vertices, own).astype(np.int64),
        receive_count=placement.expected[receives].astype(np.uint16),
        neighbour_indptr=arrays.indptr_of(counts),
        neighbour_vertex=sums.boundary.source[neighbours].astype(np.uint32),
        neighbour_worker=sums.boundary.source_worker[neighbours].astype(np.uint16),
        left_forward=rows_left.get(Direction.FORWARD),
        left_backward=rows_left.get(Direction.BACKWARD),
    )


def _sources(boundary: BoundaryEdges, vertices: int, sums: PartialSums) -> tuple[Int32s, Int32s]:
    worker_of = np.full(vertices, -1, dtype=np.int32)
    worker_of[boundary.source] = boundary.source_worker
    vertex = np.flatnonzero(worker_of >= 0)
    partial, first = np.unique(sums.source, return_index=True)
    source = np.concatenate([vertex.astype(np.int32), partial])
    return source, np.concatenate([worker_of[vertex], worker_of[sums.vertex[sums.indptr[first]]]])


@arrays.Compiled
def _fill_entries(  # noqa: PLR0917 - numba takes them by position
    rows: Int64s,
    bank: NDArray[np.int8],
    slot: Int32s,
    expected: Int64s,
    indptr: Int64s,
    packet: Int32s,
    first: Int64s,
    entries: int,
    packet_row: UInt8s,
    banks: int,
) -> tuple[UInt32s, UInt16s, UInt8s]:
    """Return `entry_slot`, `entry_expected` and `entry_row`, with each row in one entry per packet.

    `rows` are int64[D] in the order of their slots; `packet` is int32[E] by row, and `packet_row`
    uint8[E] its row in a bundle; `first` is int64[N], the first entry of each packet.
    """
    entry_slot = np.zeros((entries, BANKS), dtype=np.uint32)
    entry_expected = np.zeros((entries, BANKS), dtype=np.uint16)
    entry_row = np.zeros((entries, BANKS), dtype=np.uint8)
    hop = np.zeros((len(first), banks), dtype=np.uint16)
    for row in rows:
        b = bank[row]
        together = b % banks
        for at in range(indptr[row], indptr[row + 1]):
            who = packet[at]
            entry = first[who] + hop[who, together]
            entry_slot[entry, b] = slot[row]
            entry_expected[entry, b] = expected[row]
            entry_row[entry, b] = packet_row[at]
            hop[who, together] += 1
    return entry_slot, entry_expected, entry_row


def _check_16_bits(what: str, numbers: Integers) -> None:
    largest = int(numbers.max(initial=0))
    if largest > MAX_16_BITS:
        raise PlannerError(f"{largest} {what} are too many; at most {MAX_16_BITS} fit.")
