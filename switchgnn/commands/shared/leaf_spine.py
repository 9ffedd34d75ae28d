# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The load of the links between leaves and spines, of exchanges and of other ways."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Protocol

from rich.table import Table

from switchgnn.controller import Counters, Outcome
from switchgnn.host.direct.framing import FRAGMENT
from switchgnn.host.host_baseline import Exchanges, HostTraffic
from switchgnn.host.registry import HOST, HOST_PARTIAL
from switchgnn.host.wire.header import BARRIER_FRAME_BYTES, feature_frame_bytes
from switchgnn.planner.lanes import fragment_lanes
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.plan.leaf_spine import LeafSpineParts, predict_leaf_spine
from switchgnn.planner.plan.manifest import Manifest
from switchgnn.topologies import WireBytes, carried


@dataclass(frozen=True)
class LeafSpineReport:
    """All links between leaves and spines together.

    Attributes:
        partial_sums: taken by the spines, as counted.
        bytes_up, bytes_down: as counted by interfaces or relays; None without either.
        planned_bytes_up, planned_bytes_down: partial sums, sums and barriers of the plan, each
            once.
        single_bytes_up, single_bytes_down: data, if only spines added.
        host_mtu: bytes of the largest IP packet between hosts alone, or ``fragment``.
        host_bytes_up, host_bytes_down: copies between hosts alone, with acknowledgements.
        host_partial_bytes_up, host_partial_bytes_down: the same for copies or partial sums,
            whichever are fewer.
        faults_injected: frames of the cables with a fault, by kind; included in the run's.
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
    host_mtu: int | str
    host_bytes_up: int
    host_bytes_down: int
    host_partial_bytes_up: int
    host_partial_bytes_down: int
    faults_injected: dict[str, int]


class _CableCounts(Protocol):
    @property
    def partial_sums(self) -> int: ...
    @property
    def cables(self) -> WireBytes | None: ...
    @property
    def cable_faults(self) -> dict[str, int]: ...


def report_leaf_spine(
    parts: LeafSpineParts,
    manifest: Manifest,
    exchanges: Iterable[Exchanges],
    alone: Mapping[str, HostTraffic],
    counts: _CableCounts,
) -> LeafSpineReport:
    """Compare the counts of all exchanges with the plan."""
    planned = sum((_planned(parts, manifest, each) for each in exchanges), start=_PlannedLoad())
    # Crossing frames go up one link and down another one.
    crossing = {name: each.between(parts.leaf_spine.leaf_of_worker) for name, each in alone.items()}
    return LeafSpineReport(
        leaves=parts.leaf_spine.leaves,
        spines=parts.leaf_spine.spines,
        partial_sums=counts.partial_sums,
        planned_partial_sums=planned.partial_sums,
        bytes_up=counts.cables.up if counts.cables else None,
        bytes_down=counts.cables.down if counts.cables else None,
        planned_bytes_up=planned.partial_sum_bytes + planned.barrier_bytes,
        planned_bytes_down=planned.sum_bytes + planned.barrier_bytes,
        single_bytes_up=planned.single_up,
        single_bytes_down=planned.single_down,
        host_mtu=alone[HOST.name].mtu,
        host_bytes_up=crossing[HOST.name],
        host_bytes_down=crossing[HOST.name],
        host_partial_bytes_up=crossing[HOST_PARTIAL.name],
        host_partial_bytes_down=crossing[HOST_PARTIAL.name],
        faults_injected=counts.cable_faults,
    )


@dataclass(frozen=True)
class _PlannedLoad:
    """Bytes, and the number of partial sums."""

    partial_sums: int = 0
    partial_sum_bytes: int = 0
    sum_bytes: int = 0
    barrier_bytes: int = 0
    single_up: int = 0
    single_down: int = 0

    def __add__(self, other: "_PlannedLoad") -> "_PlannedLoad":
        return _PlannedLoad(*map(sum, zip(astuple(self), astuple(other), strict=True)))


def _planned(parts: LeafSpineParts, manifest: Manifest, exchanges: Exchanges) -> _PlannedLoad:
    record = manifest.direction(exchanges.direction)
    said = predict_leaf_spine(parts, record)
    widths = fragment_lanes(exchanges.width, manifest.lanes)
    fragments = len(widths)
    weight = exchanges.times * sum(map(feature_frame_bytes, widths))
    meetings = exchanges.times * (1 + len(record.block_numbers) * fragments)
    return _PlannedLoad(
        partial_sums=sum(map(sum, said.partial_sums)) * exchanges.times * fragments,
        partial_sum_bytes=sum(map(sum, said.partial_sums)) * weight,
        sum_bytes=sum(map(sum, said.sums)) * weight,
        barrier_bytes=meetings * parts.leaf_spine.leaves * BARRIER_FRAME_BYTES,
        single_up=sum(record.prediction.packets_up) * weight,
        single_down=sum(record.prediction.packets_down) * weight,
    )


def partial_sums_taken(
    leaf_spine: LeafSpine | None, before: Sequence[Counters], after: Sequence[Counters]
) -> int:
    """Return the growth of the partial sums at the spines, the last of the switches."""
    if leaf_spine is None:
        return 0
    return sum(
        new.outcomes[Outcome.AGGREGATED] - old.outcomes[Outcome.AGGREGATED]
        for old, new in zip(before[leaf_spine.leaves :], after[leaf_spine.leaves :], strict=True)
    )


def all_cables(
    before: Sequence[WireBytes] | None, after: Sequence[WireBytes] | None
) -> WireBytes | None:
    """Return the bytes of all cables together; None without counters."""
    cables = carried(before, after)
    if cables is None:
        return None
    return WireBytes(sum(wire.up for wire in cables), sum(wire.down for wire in cables))


def leaf_spine_table(
    report: LeafSpineReport, what: str = "Bytes", counted: str = "counted"
) -> Table:
    """Return bytes up and down: counted, planned, and of other ways."""
    frames = "fragments" if report.host_mtu == FRAGMENT else f"MTU {report.host_mtu:,}"
    table = Table(title=f"{what} between {report.leaves} leaves and {report.spines} spines")
    for name in ("", "up", "down"):
        table.add_column(name, justify="right")
    partial_down = report.host_partial_bytes_down
    rows: tuple[tuple[str, int | None, int | None], ...] = (
        (counted, report.bytes_up, report.bytes_down),
        ("planned", report.planned_bytes_up, report.planned_bytes_down),
        ("sums at spines only", report.single_bytes_up, report.single_bytes_down),
        (f"{HOST.name}, {frames}", report.host_bytes_up, report.host_bytes_down),
        (f"{HOST_PARTIAL.name}, {frames}", report.host_partial_bytes_up, partial_down),
    )
    for name, *columns in rows:
        table.add_row(name, *("-" if value is None else f"{value:,}" for value in columns))
    return table
