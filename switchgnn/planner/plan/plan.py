"""A plan: the part of the switch and the parts of the workers."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import get_args, get_type_hints

import numpy as np

from switchgnn.base.array_types import Bools, Int32s, Int64s, UInt8s, UInt16s, UInt32s
from switchgnn.planner.direction import Direction
from switchgnn.planner.plan.manifest import Manifest


@dataclass(frozen=True, eq=False)
class SwitchPart:
    """The tables of the switch: N sources, K entries and R results.

    A partial sum has an entry here, but none in the table of the switch, as it names its
    destination.
    """

    source_vertex: UInt32s  # [N], ascending: sources of boundary edges, then from 2^31
    source_worker: UInt16s  # [N], the sender; partial sums are sources, too
    entry_block: UInt16s  # [K], key; entries are sorted by block, source, hop
    entry_source: UInt32s  # [K], key: the Src_id of a packet
    entry_hop: UInt16s  # [K], key: 0, 1, ... for the first, second, ... pass
    entry_last: Bools  # [K], no further hop follows
    entry_count: UInt16s  # [K], the Count of the packet
    entry_slot: UInt32s  # [K, 8], per bank the slot to add to
    entry_expected: UInt16s  # [K, 8], the count that completes it; 0: bank not used
    entry_row: UInt8s  # [K, 8], the row of the bundle to add; 0 if it is none
    result_block: UInt16s  # [R], key; results are sorted by block, bank, slot
    result_bank: UInt8s  # [R], key
    result_slot: UInt32s  # [R], key
    result_vertex: UInt32s  # [R], the destination of the sum in the slot
    result_worker: UInt16s  # [R], its worker
    result_expected: UInt16s  # [R], the count that completes the slot


@dataclass(frozen=True, eq=False)
class WorkerPart:
    """The S packets that one worker sends and the Q sums that it receives, block by block.

    Rows of block b (from 1) are those from indptr[b - 1] to indptr[b].
    """

    worker: int
    vertices: Int64s  # [n], ascending; the position is the row in the feature matrix
    send_indptr: Int64s  # [B + 1]
    send_source: UInt32s  # [S], the Src_ids in sending order; from 2^31 partial sums
    send_destination: UInt32s  # [S], the Dst_ids of partial sums, 0 for vertices
    send_row_indptr: Int64s  # [S + 1]
    send_row: Int64s  # [...], the rows that each packet adds up; as many as its Count
    receive_indptr: Int64s  # [B + 1]
    receive_vertex: UInt32s  # [Q], the destinations, ascending within a block
    receive_row: Int64s  # [Q], their rows; the worker adds the sums of several blocks
    receive_count: UInt16s  # [Q], the Count of a complete sum
    neighbour_indptr: Int64s  # [Q + 1]
    neighbour_vertex: UInt32s  # [C], the vertices in each sum, ascending
    neighbour_worker: UInt16s  # [C], their workers
    # the rows whose sums hosts make, ascending; None if no worker leaves them any
    left_forward: Int64s | None = None
    left_backward: Int64s | None = None

    @property
    def leaves_any(self) -> bool:
        """Whether the plan leaves destinations of any worker to the hosts."""
        return self.left_forward is not None

    def left(self, direction: Direction) -> Int64s:
        """Return the rows whose sums the hosts make, ascending."""
        rows = self.left_forward if direction is Direction.FORWARD else self.left_backward
        return np.zeros(0, dtype=np.int64) if rows is None else rows


def _types_of(part: type[SwitchPart | WorkerPart]) -> dict[str, str]:
    """Return NumPy's name for the type of each array of a part that every file has."""
    hints = get_type_hints(part)
    arrays = [it.name for it in fields(part) if it.name != "worker" and it.default is MISSING]
    # NDArray[X] is ndarray[..., dtype[X]], and from NumPy 2.5 on an alias with the argument X.
    last = {name: get_args(hints[name])[-1] for name in arrays}
    types = {name: next(iter(get_args(kind)), kind) for name, kind in last.items()}
    return {name: np.dtype(kind).newbyteorder("<").str for name, kind in types.items()}


SWITCH_ARRAYS: Mapping[str, str] = _types_of(SwitchPart)
WORKER_ARRAYS: Mapping[str, str] = _types_of(WorkerPart)
# Of a worker, in a plan that leaves destinations to the hosts; in no other.
LEFT_ARRAYS: Mapping[str, str] = {"left_forward": "<i8", "left_backward": "<i8"}
ASSIGNMENT_ARRAYS: Mapping[str, str] = {"assignment": "<i4"}


@dataclass(frozen=True, eq=False)
class Plan:
    """A whole plan; `write_plan` stores it, and each reader reads its own part."""

    manifest: Manifest
    switch: SwitchPart
    workers: tuple[WorkerPart, ...]  # one part per worker, in order
    assignment: Int32s  # [V], the worker of each vertex

    @property
    def leaves_any(self) -> bool:
        """Whether any destination is left to the hosts."""
        return any(part.leaves_any for part in self.workers)

    def left(self, direction: Direction) -> Bools:
        """Return bool[V], the destinations of a direction that are left to the hosts."""
        chosen = np.zeros(len(self.assignment), dtype=np.bool_)
        for part in self.workers:
            chosen[part.vertices[part.left(direction)]] = True
        return chosen
