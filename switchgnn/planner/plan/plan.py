"""A plan: the part of the switch and the parts of the workers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, get_args, get_type_hints

import numpy as np

from switchgnn.base.array_types import Bools, Int32s, Int64s, UInt8s, UInt16s, UInt32s
from switchgnn.base.arrays import ArrayKind
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.plan.manifest import Manifest


def _of(shape: str, *, cuts: str = "", below: str = "", ascending: bool = False) -> ArrayKind:
    """Describe an array of a file, in the sizes of docs/plans.md, V vertices and W workers."""
    dims = (1 + shape.count(","),)
    return ArrayKind((), dims, shape=shape, cuts=cuts, below=below, ascending=ascending)


@dataclass(frozen=True, eq=False)
class SwitchPart:
    """The tables of the switch: N sources, K entries and R results.

    A partial sum has an entry here, but none in the table of the switch, as it names its
    destination.
    """

    # sources of boundary edges, then from 2^31 partial sums or bundles
    source_vertex: Annotated[UInt32s, _of("N", ascending=True)]
    source_worker: Annotated[UInt16s, _of("N", below="W")]  # the sender
    entry_block: Annotated[UInt16s, _of("K", below="B+1")]  # key; sorted by block, source, hop
    entry_source: Annotated[UInt32s, _of("K")]  # key: the Src_id of a packet
    entry_hop: Annotated[UInt16s, _of("K")]  # key: 0, 1, ... for the first, second, ... pass
    entry_last: Annotated[Bools, _of("K")]  # no further hop follows
    entry_count: Annotated[UInt16s, _of("K")]  # the Count of the packet
    entry_slot: Annotated[UInt32s, _of("K,8")]  # per bank the slot to add to
    # the count that completes it; 0: bank not used
    entry_expected: Annotated[UInt16s, _of("K,8")]
    # the row of the bundle to add; 0 if it is none
    entry_row: Annotated[UInt8s, _of("K,8", below="F")]
    result_block: Annotated[UInt16s, _of("R", below="B+1")]  # key; sorted by block, bank, slot
    result_bank: Annotated[UInt8s, _of("R", below="8")]  # key
    result_slot: Annotated[UInt32s, _of("R")]  # key
    result_vertex: Annotated[UInt32s, _of("R", below="V")]  # the destination of the sum
    result_worker: Annotated[UInt16s, _of("R", below="W")]  # its worker
    result_expected: Annotated[UInt16s, _of("R")]  # the count that completes the slot


@dataclass(frozen=True, eq=False)
class WorkerPart:
    """The S packets that one worker sends and the Q sums that it receives, block by block.

    Rows of block b (from 1) are those from indptr[b - 1] to indptr[b].
    """

    worker: int
    # the position is the row in the feature matrix
    vertices: Annotated[Int64s, _of("n", below="V", ascending=True)]
    send_indptr: Annotated[Int64s, _of("B+1", cuts="S")]
    send_source: Annotated[UInt32s, _of("S")]  # the Src_ids in sending order
    send_destination: Annotated[UInt32s, _of("S*F")]  # Dst_ids of partial sums, 0 for vertices
    send_row_indptr: Annotated[Int64s, _of("S*F+1", cuts="L")]
    # the rows that each packet adds up; as many as its Count
    send_row: Annotated[Int64s, _of("L", below="n")]
    receive_indptr: Annotated[Int64s, _of("B+1", cuts="Q")]
    # the destinations, ascending within a block
    receive_vertex: Annotated[UInt32s, _of("Q", below="V")]
    # their rows; the worker adds the sums of several blocks
    receive_row: Annotated[Int64s, _of("Q", below="n")]
    receive_count: Annotated[UInt16s, _of("Q")]  # the Count of a complete sum
    neighbour_indptr: Annotated[Int64s, _of("Q+1", cuts="C")]
    # the vertices in each sum, ascending
    neighbour_vertex: Annotated[UInt32s, _of("C", below="V")]
    neighbour_worker: Annotated[UInt16s, _of("C", below="W")]  # their workers
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


def _arrays_of(part: type[SwitchPart | WorkerPart]) -> dict[str, ArrayKind]:
    types, found = get_type_hints(part), {}
    for name, hint in get_type_hints(part, include_extras=True).items():
        for kind in getattr(hint, "__metadata__", ()):
            # NDArray[X] is ndarray[..., dtype[X]], and from NumPy 2.5 on an alias with X.
            last = get_args(types[name])[-1]
            dtype = np.dtype(next(iter(get_args(last)), last)).newbyteorder("<")
            found[name] = replace(kind, types=(dtype.str,))
    return found


SWITCH_ARRAYS: Mapping[str, ArrayKind] = _arrays_of(SwitchPart)
WORKER_ARRAYS: Mapping[str, ArrayKind] = _arrays_of(WorkerPart)
# Of a worker, in a plan that leaves destinations to the hosts; in no other.
LEFT_ARRAYS: Mapping[str, ArrayKind] = {
    name: ArrayKind(("<i8",), optional=True, below="n", ascending=True)
    for name in ("left_forward", "left_backward")
}
ASSIGNMENT_ARRAYS: Mapping[str, ArrayKind] = {
    "assignment": ArrayKind(("<i4",), shape="V", below="W")
}


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
