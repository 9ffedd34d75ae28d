"""The costs of a plan beside lower bounds and other transports: numbers only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from switchgnn.base.array_types import Int32s, Int64s, Integers
from switchgnn.planner.base import arrays
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.base.lanes import frame_bytes, row_frame_bytes, sum_frame_bytes
from switchgnn.planner.costs.flow import Flow, plan_flows
from switchgnn.planner.graphs.boundary import BoundaryEdges, holders
from switchgnn.planner.partition.leaf_spine import crossing_copies, crossing_sums
from switchgnn.planner.plan.leaf_spine import LeafSpinePart, LeafSpineParts
from switchgnn.planner.plan.manifest import DirectionRecord
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.sending.cover import cover_edges, packets_up

# A matching of more edges takes minutes, so it is left out and reported as such.
MATCHING_EDGES = 20_000_000


@dataclass(frozen=True, eq=False)
class PacketCounts:
    """Data packets of one exchange per fragment."""

    up: Int64s  # [W], sent by each worker
    down: Int64s  # [W], received by each worker

    @property
    def total(self) -> int:
        """All of them, up and down."""
        return int(self.up.sum() + self.down.sum())


def host_based(boundary: BoundaryEdges, workers: int) -> PacketCounts:
    """Count one copy of each source for each other worker that needs it, up and down."""
    sender, receiver = boundary.host_copies()
    return PacketCounts(_count(sender, workers), _count(receiver, workers))


def once_each(boundary: BoundaryEdges, workers: int) -> PacketCounts:
    """Count the least with multicast: each source once up, each destination once down."""
    return multicast_packets(boundary, np.ones(len(boundary), dtype=np.int32), workers)


def least_with_partial_sums(boundary: BoundaryEdges, workers: int) -> PacketCounts | None:
    """Count the fewest packets if workers may also send partial sums of their own.

    Up, a worker sends at least the minimum vertex cover of its edges, as large as their maximum
    matching (König); blocks can only add to that. Down, each destination comes at least once.
    """
    if len(boundary) > MATCHING_EDGES:
        return None
    block = np.ones(len(boundary), dtype=np.int32)
    sources, sums = packets_up(boundary, block, cover_edges(boundary, block))
    up = np.zeros(workers, dtype=np.int64)
    up[: len(sources)] = sources + sums
    return PacketCounts(up, once_each(boundary, workers).down)


def multicast_packets(boundary: BoundaryEdges, block: Integers, workers: int) -> PacketCounts:
    """Count each source once up and each destination once down in each of its blocks, int32[E]."""
    up = arrays.distinct_pairs(block, boundary.source)[1]
    down = arrays.distinct_pairs(block, boundary.destination)[1]
    return PacketCounts(
        _count(holders(boundary.source, boundary.source_worker)[up], workers),
        _count(holders(boundary.destination, boundary.destination_worker)[down], workers),
    )


def _count(owner: Integers, workers: int) -> Int64s:
    return np.bincount(owner, minlength=workers).astype(np.int64)


def simulate_pool(boundary: BoundaryEdges, slots: int, workers: int, seed: int) -> PacketCounts:
    """Simulate one exchange: sources in a random order, destinations compete for the slots.

    The contributions of a source arrive together, by ascending destination. The first one that
    finds a free slot takes it for its destination; the last one frees it. Contributions without a
    slot go to the worker of their destination. The product has a pool for each bank and overflows
    slightly more than this single pool. Sums and overflows count as packets down.
    """
    sources, source = arrays.number_ids(boundary.source)
    destinations, destination = arrays.number_ids(boundary.destination)
    holder = holders(destination, boundary.destination_worker)
    sender = holders(source, boundary.source_worker)
    fan_in = np.bincount(destination, minlength=len(destinations)).astype(np.int64)
    sent = _play(
        arrival_order(len(sources), seed),
        arrays.indptr_of_keys(source, len(sources)),
        destination,
        fan_in,
        slots,
    )
    down = np.bincount(holder, weights=sent, minlength=workers).astype(np.int64)
    up = np.bincount(sender, minlength=workers)
    return PacketCounts(up, down)


def arrival_order(sources: int, seed: int) -> Int64s:
    """Return the sources in order of arrival, numbered by their ids: int64[N]."""
    return np.random.default_rng(seed).permutation(sources)


@arrays.Compiled
def _play(order: Int64s, indptr: Int64s, destination: Int32s, fan_in: Int64s, slots: int) -> Int64s:
    held = np.zeros(len(fan_in), dtype=np.bool_)
    sent = np.zeros(len(fan_in), dtype=np.int64)
    left = fan_in.copy()
    free = slots
    for source in order:
        for at in range(indptr[source], indptr[source + 1]):
            who = destination[at]
            left[who] -= 1
            if not held[who] and free > 0:
                held[who] = True
                free -= 1
            if not held[who]:
                sent[who] += 1
            elif left[who] == 0:
                sent[who] += 1
                free += 1
    return sent


# The names of the rows of a report, beside those that the caller adds.
PLAN, HOST, STRAWMAN, ONCE, COVER = "plan", "host", "strawman", "once", "cover-bound"


@dataclass(frozen=True)
class Load:
    """Packets in one direction of all links, per fragment; bytes of an exchange of features.

    `*_max` are those of the busiest worker, `imbalance` is packets_max / packets_mean; bytes
    include headers and all fragments.
    """

    packets: int
    packets_max: int
    packets_mean: float
    imbalance: float
    bytes: int
    bytes_max: int
    bytes_mean: float


@dataclass(frozen=True)
class TransportCost:
    """The traffic of one transport."""

    up: Load  # sent by workers
    down: Load  # received by workers
    traffic_fraction: float  # packets up and down, as a share of those of host-based exchange


@dataclass(frozen=True)
class Occupancy:
    """Queue and slots over time with one order of the packets, in the model of `flow.py`."""

    steps: int  # until the last sum has left, all blocks one after another
    queue_max: int  # the most sums that wait to leave after a step
    slots_max: int  # the most slots that hold an unfinished sum after a step
    slots_mean: float  # of all steps
    share_max: float  # slots_max as a share of the switch's slots
    share_mean: float  # slots_mean as such a share


@dataclass(frozen=True)
class DirectionReport:
    """One direction of a plan."""

    boundary_vertices: int
    boundary_edges: int
    copies_per_vertex: float  # copies of a source in host-based exchange, on average
    blocks: int
    entries: int  # table entries of its blocks
    passes: int  # trips through ingress per fragment
    contributions: int  # additions per fragment
    passes_per_contribution: float  # their ratio; 0.125 is the least with 8 banks
    slots_used_max: int  # destinations of the fullest block
    slots_used_mean: float  # destinations of a block
    # by name: `plan`, `host`, `strawman`, the bounds `once` and `cover-bound`, and others
    ways: dict[str, TransportCost]
    orders: dict[str, Occupancy]  # `plan`, and the same packets as `gamr` and `random` order them
    left_out: list[str]  # transports, and `order NAME`, that were too large to compute


def report_direction(
    plan: Plan,
    direction: Direction,
    boundary: BoundaryEdges,
    frames: Sequence[int],
    others: Mapping[str, PacketCounts | None],
) -> DirectionReport:
    """Report one direction of a plan; `frames` are the bytes of those that carry a feature."""
    manifest, workers = plan.manifest, plan.manifest.workers
    record = manifest.direction(direction)
    said = record.prediction
    host = host_based(boundary, workers)
    pool = simulate_pool(boundary, manifest.slots, workers, manifest.strategy.seed)
    candidates: dict[str, PacketCounts | None] = {
        PLAN: PacketCounts(np.array(said.packets_up), np.array(said.packets_down)),
        HOST: host,
        **others,
        STRAWMAN: pool,
        ONCE: once_each(boundary, workers),
        COVER: least_with_partial_sums(boundary, workers),
    }
    first, last = record.first_block, record.last_block
    used = np.bincount(plan.switch.result_block, minlength=last + 1)[first : last + 1]
    sources = len(np.unique(boundary.source))
    flows = plan_flows(plan, direction)
    return DirectionReport(
        boundary_vertices=said.boundary_vertices,
        boundary_edges=said.boundary_edges,
        copies_per_vertex=_ratio(int(host.up.sum()), sources),
        blocks=len(record.block_numbers),
        entries=said.entries,
        passes=said.passes,
        contributions=said.contributions,
        passes_per_contribution=_ratio(said.passes, said.contributions),
        slots_used_max=int(used.max(initial=0)),
        slots_used_mean=_ratio(int(used.sum()), len(used)),
        ways={
            name: TransportCost(
                up=_load(packets.up, sum(frames)),
                down=_load(packets.down, sum(frames)),
                traffic_fraction=_ratio(packets.total, host.total),
            )
            for name, packets in candidates.items()
            if packets is not None
        },
        orders={
            name: _occupancy(flow, manifest.slots)
            for name, flow in flows.items()
            if flow is not None
        },
        left_out=[
            *(name for name, packets in candidates.items() if packets is None),
            *(f"order {name}" for name, flow in flows.items() if flow is None),
        ],
    )


def _occupancy(flow: Flow, slots: int) -> Occupancy:
    most = int(flow.occupancy.max(initial=0))
    mean = _ratio(int(flow.occupancy.sum()), len(flow.occupancy))
    return Occupancy(
        steps=flow.steps,
        queue_max=int(flow.largest_queue.max(initial=0)),
        slots_max=most,
        slots_mean=mean,
        share_max=most / slots,
        share_mean=mean / slots,
    )


def _load(packets: Int64s, weight: int) -> Load:
    total, largest, mean = int(packets.sum()), int(packets.max()), float(packets.mean())
    return Load(
        packets=total,
        packets_max=largest,
        packets_mean=mean,
        imbalance=_ratio(largest, mean),
        bytes=total * weight,
        bytes_max=largest * weight,
        bytes_mean=mean * weight,
    )


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


# The row of leaves that pass everything on, so that spines alone add.
SINGLE = "single"


@dataclass(frozen=True)
class LeafSpineLoad:
    """Packets per fragment and bytes of an exchange, on all links of leaves and spines."""

    packets_up: int
    packets_down: int
    bytes_up: int
    bytes_down: int


@dataclass(frozen=True)
class LeafSpineDirection:
    """One direction of a plan on a leaf-spine."""

    # `plan`; `host`; `single`, leaves that pass everything on; and the bound `once`
    ways: dict[str, LeafSpineLoad]
    packets_max: int  # the most that one link carries in one direction, per fragment
    control_bytes: int  # of barriers, up and down together
    control_share: float  # those, as a share of all bytes of the plan
    leaf_slots: tuple[int, ...]  # the most slots of each leaf that a block uses
    spine_slots: tuple[int, ...]  # the same of each spine


def report_leaf_spine_direction(
    parts: LeafSpineParts,
    record: DirectionRecord,
    boundary: BoundaryEdges,
    widths: Sequence[int],
    barrier_bytes: int,
    *,
    rows: int = 1,
    replicated: bool = False,
) -> LeafSpineDirection:
    """Report one direction of a plan on a leaf-spine, for fragments of these widths."""
    said, leaf_spine = predict_leaf_spine(parts, record, rows), parts.leaf_spine
    if replicated:  # each leaf gets the sums to which it has added
        said = replace(said, sums=said.partial_sums)
    copies = crossing_copies(boundary, leaf_spine)
    packets = {
        PLAN: (sum(map(sum, said.partial_sums)), sum(map(sum, said.sums))),
        ONCE: crossing_sums(boundary, leaf_spine),
        SINGLE: (sum(record.prediction.packets_up), sum(record.prediction.packets_down)),
        HOST: (copies, copies),
    }
    alone = sum(map(row_frame_bytes, widths))
    up_bytes, down_bytes = dict.fromkeys(packets, alone), dict.fromkeys(packets, alone)
    up_bytes[SINGLE] = sum(frame_bytes(each, rows) for each in widths)
    down_bytes[PLAN] = down_bytes[SINGLE] = sum(sum_frame_bytes(each, rows) for each in widths)
    ways = {
        name: LeafSpineLoad(up, down, up * up_bytes[name], down * down_bytes[name])
        for name, (up, down) in packets.items()
    }
    # Each leaf reports each fragment of a block once, and the scale; the spine answers each.
    meetings = 1 + len(record.block_numbers) * len(widths)
    control = 2 * meetings * leaf_spine.leaves * barrier_bytes
    data = ways[PLAN].bytes_up + ways[PLAN].bytes_down
    return LeafSpineDirection(
        ways=ways,
        packets_max=max(max(row) for row in (*said.partial_sums, *said.sums)),
        control_bytes=control,
        control_share=control / (control + data),
        leaf_slots=tuple(_slots_of_switches(leaf, record) for leaf in parts.leaves),
        spine_slots=tuple(_slots_of_switches(spine, record) for spine in parts.spines),
    )


def _slots_of_switches(part: LeafSpinePart, record: DirectionRecord) -> int:
    counts = np.bincount(part.switch.result_block, minlength=record.last_block + 1)
    return int(counts[record.first_block : record.last_block + 1].max(initial=0))


@dataclass(frozen=True)
class LeafSpinePrediction:
    """Data packets per fragment of one exchange without loss, by leaf, then spine."""

    partial_sums: tuple[tuple[int, ...], ...]  # from the leaf to the spine
    sums: tuple[tuple[int, ...], ...]  # from the spine to the leaf, in bundles if there are


def predict_leaf_spine(
    parts: LeafSpineParts, record: DirectionRecord, rows: int = 1
) -> LeafSpinePrediction:
    """Count the packets of a direction between leaves and spines."""
    up = [_results_to(leaf, record, behind=len(leaf.below)) for leaf in parts.leaves]
    down = [_results_to(spine, record, rows=rows) for spine in parts.spines]
    return LeafSpinePrediction(
        partial_sums=tuple(tuple(row[: parts.leaf_spine.spines]) for row in up),
        sums=tuple(zip(*(row[: parts.leaf_spine.leaves] for row in down), strict=True)),
    )


def _results_to(
    part: LeafSpinePart, record: DirectionRecord, behind: int = 0, rows: int = 1
) -> list[int]:
    """Count the results of these blocks by receiving neighbour, from number `behind` on.

    As many as `rows` for one worker in a block leave in one frame, and count once.
    """
    block, neighbour = part.switch.result_block, part.switch.result_worker
    inside = (block >= record.first_block) & (block <= record.last_block)
    inside[inside] = arrays.rank_within((block[inside], part.result_owner[inside])) % rows == 0
    size = len(part.below) + part.above
    counted: list[int] = np.bincount(neighbour[inside], minlength=size)[behind:].tolist()
    return counted
