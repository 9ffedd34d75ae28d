"""The sections that reports share, each with its fields and its sentence."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from switchgnn.controller import Outcome
from switchgnn.host.host_baseline import Exchanges, HostTraffic
from switchgnn.host.registry import HOST, HOST_PARTIAL
from switchgnn.host.wire.header import BARRIER_FRAME_BYTES
from switchgnn.jobs.runner import FinishedWorkers
from switchgnn.planner import BoundaryEdges, Direction, Manifest
from switchgnn.planner.base.lanes import fragment_lanes
from switchgnn.planner.costs import report
from switchgnn.planner.plan.leaf_spine import LeafSpineParts
from switchgnn.softswitch.native.engine import Ahead


@dataclass(frozen=True)
class LeafSpineReport:
    """All links between leaves and spines together."""

    leaves: int
    spines: int
    partial_sums: int  # taken by the spines, as counted
    planned_partial_sums: int
    # as counted by interfaces or relays; None without either
    bytes_up: int | None
    bytes_down: int | None
    # partial sums, sums and barriers of the plan, each once
    planned_bytes_up: int
    planned_bytes_down: int
    # data, if only spines added
    single_bytes_up: int
    single_bytes_down: int
    host_mtu: int | str  # bytes of the largest IP packet between hosts alone, or `fragment`
    # copies between hosts alone, with acknowledgements
    host_bytes_up: int
    host_bytes_down: int
    # the same for copies or partial sums, whichever are fewer
    host_partial_bytes_up: int
    host_partial_bytes_down: int
    # frames of the cables with a fault, by kind; included in the run's
    faults_injected: dict[str, int]


_PLANNED = (
    *("planned_partial_sums", "planned_bytes_up", "planned_bytes_down"),
    *("single_bytes_up", "single_bytes_down"),
)


def plan_leaf_spine(
    parts: LeafSpineParts,
    manifest: Manifest,
    boundary: BoundaryEdges,
    direction: Direction,
    features: int,
) -> report.LeafSpineDirection:
    """Predict an exchange of features with this many numbers."""
    return report.report_leaf_spine_direction(
        parts,
        manifest.direction(direction),
        boundary.towards(direction),
        fragment_lanes(features, manifest.lanes, manifest.rows),
        BARRIER_FRAME_BYTES,
        rows=manifest.rows,
        replicated=manifest.replicated,
    )


def report_leaf_spine(
    parts: LeafSpineParts,
    manifest: Manifest,
    boundary: BoundaryEdges,
    exchanges: Iterable[Exchanges],
    alone: Mapping[str, HostTraffic],
    *,
    done: FinishedWorkers[Any],
) -> LeafSpineReport:
    """Compare the counts of all exchanges with the plan."""
    spines = slice(parts.leaf_spine.leaves, None)
    taken = [
        new.outcomes[Outcome.AGGREGATED] - old.outcomes[Outcome.AGGREGATED]
        for old, new in zip(done.before[spines], done.after[spines], strict=True)
    ]
    planned = Counter(dict.fromkeys(_PLANNED, 0))
    for each in exchanges:
        said = plan_leaf_spine(parts, manifest, boundary, each.direction, each.width)
        ours, single = said.ways[report.PLAN], said.ways[report.SINGLE]
        fragments = len(fragment_lanes(each.width, manifest.lanes, manifest.rows))
        numbers = (
            ours.packets_up * fragments,
            ours.bytes_up + said.control_bytes // 2,
            ours.bytes_down + said.control_bytes // 2,
            single.bytes_up,
            single.bytes_down,
        )
        for name, number in zip(_PLANNED, numbers, strict=True):
            planned[name] += each.times * number
    # Crossing frames go up one link and down another one.
    crossing = {name: each.between(parts.leaf_spine.leaf_of_worker) for name, each in alone.items()}
    return LeafSpineReport(
        leaves=parts.leaf_spine.leaves,
        spines=parts.leaf_spine.spines,
        partial_sums=sum(taken),
        **planned,
        bytes_up=done.cables.up if done.cables else None,
        bytes_down=done.cables.down if done.cables else None,
        host_mtu=alone[HOST.name].mtu,
        host_bytes_up=crossing[HOST.name],
        host_bytes_down=crossing[HOST.name],
        host_partial_bytes_up=crossing[HOST_PARTIAL.name],
        host_partial_bytes_down=crossing[HOST_PARTIAL.name],
        faults_injected=done.cable_faults,
    )


@dataclass(kw_only=True)
class Report:
    """A run or a training: where it ran, its graph and its plan."""

    reason: str  # what was chosen, and why
    backend: str | None = None  # `native` or `python` code of the embedded switch; None for others
    # why it is Python where native code was possible; None elsewhere
    backend_reason: str | None = None
    # close to 0 when the result was cached; None without `backend`
    compile_seconds: float | None = None
    # `native` or `python` code that takes frames apart; None without a network
    hosts: str | None = None
    workers: int
    vertices: int
    edges: int  # of the graph; an undirected edge counts twice
    strategy: str  # the preset that was asked for
    why: tuple[str, ...] = ()  # the reasons of its choices
    # as in the plan's manifest; None where the transport has no use for them
    partition: str | None = None
    block_strategy: str | None = None
    send: str | None = None
    weight: float | None = None  # the cost of a contribution in the send strategy, in packets
    order: str | None = None
    lanes: int | None = None  # numbers of the widest frame; None for transports without a plan
    # the links between leaves and spines, if sums cross them
    leaf_spine: LeafSpineReport | None = None

    def ran_on(self) -> str:
        """Return the choice, and the code of the program and of the hosts, as one sentence."""
        words = self.reason
        if self.backend is not None:
            words += f"; the program runs as {self.backend} code"
            if self.compile_seconds:
                words += f", compiled in {self.compile_seconds:.1f} s"
            if self.backend_reason is not None:
                words += f" ({self.backend_reason.rstrip('.')})"
        return f"{words}." if self.hosts is None else f"{words}; hosts run {self.hosts} code."

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data, for JSON."""
        return asdict(self)

    @property
    def strategies(self) -> str:
        """The strategies of the plan as words; empty without a plan."""
        names = {
            "partition": self.partition,
            "blocks": self.block_strategy,
            "send": self.send,
            "order": self.order,
        }
        return ", ".join(f"{part} {name}" for part, name in names.items() if name is not None)


def ran_ahead(ahead: Ahead | None) -> dict[str, Any]:
    """Return the fields of a report about compilation; none for BMv2."""
    if ahead is None:
        return {}
    return {
        "backend": ahead.backend.value,
        "backend_reason": ahead.reason,
        "compile_seconds": ahead.seconds,
    }


def strategy_names(manifest: Manifest) -> dict[str, Any]:
    """Return the strategies of a plan, by the reports' names for them."""
    strategy = manifest.strategy
    return {
        "partition": manifest.partition.method,
        "block_strategy": strategy.blocks,
        "send": strategy.send,
        "weight": strategy.weight,
        "order": strategy.order,
    }
