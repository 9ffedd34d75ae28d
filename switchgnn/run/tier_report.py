# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a run put on the links between leaves and spines, and what other ways would."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.controller import Counters, Outcome
from switchgnn.host.header import BARRIER_FRAME_BYTES, FEATURE_FRAME_BYTES
from switchgnn.planner.between_leaves import copies_between
from switchgnn.planner.boundary import boundary_edges
from switchgnn.planner.direction import Direction
from switchgnn.planner.graph import Graph
from switchgnn.planner.manifest import Manifest
from switchgnn.planner.predict_tiers import TierPrediction, predict_tiers
from switchgnn.planner.racks import Racks
from switchgnn.planner.tiers import Tiers
from switchgnn.topologies import WireBytes


@dataclass(frozen=True)
class TierReport:
    """The links between leaves and spines, all together.

    Attributes:
        leaves, spines: how many.
        partial_sums: that the spines took, as they counted.
        planned_partial_sums: the same as the plan has it.
        bytes_up, bytes_down: as interfaces or relays counted; None where neither does.
        planned_bytes_up, planned_bytes_down: partial sums, sums and barriers of the plan, each
            once.
        single_bytes_up, single_bytes_down: data, if leaves passed everything on to spines.
        host_bytes_up, host_bytes_down: data of host-based exchange between leaves.
        faults_injected: frames that met a fault on purpose on a cable, by kind; they are among
            those of the whole run.
    """

    leaves: int
    spines: int
    partial_sums: int
    planned_partial_sums: int
    bytes_up: int | None
    bytes_down: int | None
    planned_bytes_up: int
    planned_bytes_down: int
    single_bytes_up: int
    single_bytes_down: int
    host_bytes_up: int
    host_bytes_down: int
    faults_injected: dict[str, int]


def report_tiers(
    tiers: Tiers,
    manifest: Manifest,
    *,
    host_copies: int,
    fragments: int,
    rounds: int,
    partial_sums: int,
    cables: WireBytes | None,
    faults_injected: dict[str, int],
) -> TierReport:
    """Set what was counted beside what was planned.

    Args:
        tiers: the parts of the switches.
        manifest: of the plan.
        host_copies: packets between leaves of a host-based exchange, per fragment.
        fragments: of a feature.
        rounds: that were run.
        partial_sums: that the spines have taken.
        cables: bytes on all cables, or None.
        faults_injected: on the cables, by kind.
    """
    record = manifest.direction(Direction.FORWARD)
    said: TierPrediction = predict_tiers(tiers, record)
    frames = rounds * fragments * FEATURE_FRAME_BYTES
    meetings = rounds * (1 + len(record.block_numbers) * fragments)
    barriers = meetings * tiers.racks.leaves * BARRIER_FRAME_BYTES
    up, down = sum(map(sum, said.partial_sums)), sum(map(sum, said.sums))
    return TierReport(
        leaves=tiers.racks.leaves,
        spines=tiers.racks.spines,
        partial_sums=partial_sums,
        planned_partial_sums=up * rounds * fragments,
        bytes_up=cables.up if cables else None,
        bytes_down=cables.down if cables else None,
        planned_bytes_up=up * frames + barriers,
        planned_bytes_down=down * frames + barriers,
        single_bytes_up=sum(record.prediction.packets_up) * frames,
        single_bytes_down=sum(record.prediction.packets_down) * frames,
        host_bytes_up=host_copies * frames,
        host_bytes_down=host_copies * frames,
        faults_injected=faults_injected,
    )


def copies_between_leaves(graph: Graph, assignment: NDArray[np.int32], racks: Racks) -> int:
    """Packets that host-based exchange sends from leaf to leaf, per fragment."""
    return copies_between(boundary_edges(graph, assignment), racks)


def partial_sums_taken(racks: Racks, before: Sequence[Counters], after: Sequence[Counters]) -> int:
    """How many partial sums the spines, the last of the switches, have let through."""
    return sum(
        new.outcomes[Outcome.AGGREGATED] - old.outcomes[Outcome.AGGREGATED]
        for old, new in zip(before[racks.leaves :], after[racks.leaves :], strict=True)
    )


def all_cables(
    before: Sequence[WireBytes] | None, after: Sequence[WireBytes] | None
) -> WireBytes | None:
    """What all cables together have carried in between."""
    if before is None or after is None:
        return None
    return WireBytes(
        sum(wire.up for wire in after) - sum(wire.up for wire in before),
        sum(wire.down for wire in after) - sum(wire.down for wire in before),
    )
