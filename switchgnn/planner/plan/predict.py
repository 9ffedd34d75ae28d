# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What an exchange of each direction will cost, counted in the parts of the plan."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID
from switchgnn.planner.plan.edge_sets import EdgeSet, OrderedBlocks
from switchgnn.planner.plan.manifest import DirectionRecord, Prediction
from switchgnn.planner.plan.plan import SwitchPart, WorkerPart


def direction_records(
    sets: Sequence[EdgeSet],
    ordered: Sequence[OrderedBlocks],
    switch: SwitchPart,
    parts: Sequence[WorkerPart],
) -> dict[str, DirectionRecord]:
    """Say what each direction costs, and which blocks it has.

    Args:
        sets: in the order in which their blocks were joined.
        ordered: the blocks of each set.
        switch: the joined blocks of all sets.
        parts: one per worker.

    Returns:
        A record for each direction, by its value.
    """
    records: dict[str, DirectionRecord] = {}
    first = 1
    for edges, blocks in zip(sets, ordered, strict=True):
        last = first + blocks.blocks - 1
        prediction = _predict(edges.whole, first, last, switch, parts)
        record = DirectionRecord(first, last, prediction)
        records.update({direction.value: record for direction in edges.directions})
        first = last + 1
    return records


def _predict(
    boundary: BoundaryEdges, first: int, last: int, switch: SwitchPart, parts: Sequence[WorkerPart]
) -> Prediction:
    copies_from, copies_to = boundary.host_copies()
    inside = (switch.entry_block >= first) & (switch.entry_block <= last)
    passes = int(np.count_nonzero(inside))
    partial = int(np.count_nonzero(switch.entry_source[inside] >= FIRST_RESERVED_ID))
    return Prediction(
        boundary_vertices=len(boundary.vertices()),
        boundary_edges=len(boundary),
        packets_up=tuple(_rows(part.send_indptr, first, last) for part in parts),
        packets_down=tuple(_rows(part.receive_indptr, first, last) for part in parts),
        host_packets_up=_per_worker(copies_from, len(parts)),
        host_packets_down=_per_worker(copies_to, len(parts)),
        passes=passes,
        contributions=int(np.count_nonzero(switch.entry_expected[inside])),
        entries=passes - partial,
    )


def _rows(indptr: NDArray[np.int64], first: int, last: int) -> int:
    """Return how many rows the blocks `first` to `last` have."""
    return int(indptr[last] - indptr[first - 1])


def _per_worker(rows: NDArray[np.int32], workers: int) -> tuple[int, ...]:
    return tuple(np.bincount(rows, minlength=workers).tolist())
