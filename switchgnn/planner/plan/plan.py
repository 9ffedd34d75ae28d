"""A plan: the part of the switch and the parts of the workers."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.direction import Direction
from switchgnn.planner.plan.manifest import Manifest


@dataclass(frozen=True, eq=False)
class SwitchPart:
    """The tables of the switch: N sources, K entries and R results.

    A partial sum has an entry here, but none in the table of the switch, as it names its
    destination.
    """

    source_vertex: NDArray[np.uint32]  # [N], ascending: sources of boundary edges, then from 2^31
    source_worker: NDArray[np.uint16]  # [N], the sender; partial sums are sources, too
    entry_block: NDArray[np.uint16]  # [K], key; entries are sorted by block, source, hop
    entry_source: NDArray[np.uint32]  # [K], key: the Src_id of a packet
    entry_hop: NDArray[np.uint16]  # [K], key: 0, 1, ... for the first, second, ... pass
    entry_last: NDArray[np.bool_]  # [K], no further hop follows
    entry_count: NDArray[np.uint16]  # [K], the Count of the packet
    entry_slot: NDArray[np.uint32]  # [K, 8], per bank the slot to add to
    entry_expected: NDArray[np.uint16]  # [K, 8], the count that completes it; 0: bank not used
    entry_row: NDArray[np.uint8]  # [K, 8], the row of the bundle to add; 0 if it is none
    result_block: NDArray[np.uint16]  # [R], key; results are sorted by block, bank, slot
    result_bank: NDArray[np.uint8]  # [R], key
    result_slot: NDArray[np.uint32]  # [R], key
    result_vertex: NDArray[np.uint32]  # [R], the destination of the sum in the slot
    result_worker: NDArray[np.uint16]  # [R], its worker
    result_expected: NDArray[np.uint16]  # [R], the count that completes the slot


@dataclass(frozen=True, eq=False)
class WorkerPart:
    """The S packets that one worker sends and the Q sums that it receives, block by block.

    Rows of block b (from 1) are those from indptr[b - 1] to indptr[b].
    """

    worker: int
    vertices: NDArray[np.int64]  # [n], ascending; the position is the row in the feature matrix
    send_indptr: NDArray[np.int64]  # [B + 1]
    send_source: NDArray[np.uint32]  # [S], the Src_ids in sending order; from 2^31 partial sums
    send_destination: NDArray[np.uint32]  # [S], the Dst_ids of partial sums, 0 for vertices
    send_row_indptr: NDArray[np.int64]  # [S + 1]
    send_row: NDArray[np.int64]  # [...], the rows that each packet adds up; as many as its Count
    receive_indptr: NDArray[np.int64]  # [B + 1]
    receive_vertex: NDArray[np.uint32]  # [Q], the destinations, ascending within a block
    receive_row: NDArray[np.int64]  # [Q], their rows; the worker adds the sums of several blocks
    receive_count: NDArray[np.uint16]  # [Q], the Count of a complete sum
    neighbour_indptr: NDArray[np.int64]  # [Q + 1]
    neighbour_vertex: NDArray[np.uint32]  # [C], the vertices in each sum, ascending
    neighbour_worker: NDArray[np.uint16]  # [C], their workers
    # the rows whose sums hosts make, ascending; None if no worker leaves them any
    left_forward: NDArray[np.int64] | None = None
    left_backward: NDArray[np.int64] | None = None

    @property
    def leaves_any(self) -> bool:
        """Whether the plan leaves destinations of any worker to the hosts."""
        return self.left_forward is not None

    def left(self, direction: Direction) -> NDArray[np.int64]:
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
    assignment: NDArray[np.int32]  # [V], the worker of each vertex

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
